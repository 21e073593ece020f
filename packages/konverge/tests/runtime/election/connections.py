"""A client whose connection a test can cut."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from konverge.client import Client
from konverge.errors import ConnectionFailedError
from konverge.kube import GroupVersionKind, Object, ObjectKey

__all__ = ["InterruptibleClient"]

T = TypeVar("T")


class InterruptibleClient:
    """The client methods that elections need, over a connection that may be cut.

    Attributes:
        is_cut: No request arrives, and no request gets a response.
        loses_answers: Requests are performed, and their responses are lost.
        refusal: Raised instead of sending a request.
        other_answer: Returned instead of each response, as from a proxy; no request is sent.
        is_closed: Whether the client has been closed.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.is_cut = False
        self.loses_answers = False
        self.refusal: Exception | None = None
        self.other_answer: Any = None
        self.is_closed = False

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        return await self._through(lambda: self._client.get(gvk, key))

    async def create(self, obj: Object) -> Object:
        return await self._through(lambda: self._client.create(obj))

    async def update(self, obj: Object) -> Object:
        return await self._through(lambda: self._client.update(obj))

    async def list(self, gvk: GroupVersionKind, *, namespace: str, label_selector: str) -> Any:
        return await self._through(lambda: self._client.list(gvk, namespace=namespace, label_selector=label_selector))

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str | None = None) -> object:
        return await self._through(lambda: self._client.delete(gvk, key, uid=uid))

    async def close(self) -> None:
        """Only record the call: the cluster closes the clients that it created."""
        self.is_closed = True

    async def _through(self, send: Callable[[], Awaitable[T]]) -> T:
        if self.refusal is not None:
            raise self.refusal
        if self.other_answer is not None:
            answered: T = self.other_answer
            return answered
        if self.is_cut:
            await asyncio.Event().wait()
        answer = await send()
        if self.loses_answers:
            raise ConnectionFailedError("the connection broke")
        return answer
