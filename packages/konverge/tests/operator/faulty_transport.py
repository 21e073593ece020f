"""A transport that answers some requests itself, like a server that refuses requests, restarts or is absent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from konverge.client import Response, StreamingResponse, Transport

__all__ = ["ErrorResponse", "FaultyTransport", "Rule", "build_error_response"]


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An answer of 400 or more. It is both whole and a stream."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def build_error_response(code: int, message: str = "", reason: str = "") -> ErrorResponse:
    """A failure `Status`; without a message, the bare text of a server whose parts do not work yet."""
    if not message:
        return ErrorResponse(code, b"Internal Server Error", {"content-type": "text/plain"})
    status = {"kind": "Status", "status": "Failure", "code": code, "message": message, "reason": reason}
    return ErrorResponse(code, msgspec.json.encode(status), {"content-type": "application/json"})


Rule: TypeAlias = Callable[[str, str], ErrorResponse | Exception | None]
"""Gets the method and the path of a request; None lets it pass, an exception is raised in its place."""


class FaultyTransport:
    """Passes requests on, but for those that a rule answers.

    Args:
        inner: What really carries them.
        rule: Which requests go wrong, and how; may be replaced at any time.
    """

    def __init__(self, inner: Transport, rule: Rule) -> None:
        self._inner = inner
        self.rule = rule
        self.refused: list[str] = []
        """Method and path of each request that was not passed on."""

    def _answer(self, method: str, path: str) -> ErrorResponse | None:
        found = self.rule(method, path)
        if found is not None:
            self.refused.append(f"{method} {path}")
        if isinstance(found, Exception):
            raise found
        return found

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        timeout_seconds: float,
    ) -> Response:
        return self._answer(method, path) or await self._inner.request(
            method, path, query=query, headers=headers, body=body, timeout_seconds=timeout_seconds
        )

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        connect_timeout_seconds: float,
    ) -> AsyncIterator[StreamingResponse]:
        found = self._answer(method, path)
        if found is not None:
            yield ErrorStream(found)
            return
        opening = self._inner.stream(
            method, path, query=query, headers=headers, connect_timeout_seconds=connect_timeout_seconds
        )
        async with opening as response:
            yield response

    async def close(self) -> None:
        await self._inner.close()


class ErrorStream:
    """A refusal where a stream was asked for."""

    def __init__(self, answer: ErrorResponse) -> None:
        self._body = answer.body
        self.status, self.headers = answer.status, answer.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def body(self) -> bytes:
        return self._body
