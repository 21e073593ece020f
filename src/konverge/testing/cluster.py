"""`Cluster`: what a test sees of a cluster, whichever it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, overload

from konverge.client import Client, Transport
from konverge.clock import Clock
from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, ObjectKey
from konverge.testing.requests import Request
from konverge.testing.waiting import eventually

__all__ = ["Cluster", "Server"]

T = TypeVar("T")

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_ADMIN_USER_AGENT = "konverge-testing"


class Server(Protocol):
    """A running cluster, as far as tests need one."""

    @property
    def name(self) -> str:
        """``embedded`` or ``real``."""

    @property
    def clock(self) -> Clock:
        """The time that the cluster lives in."""

    def transport(self) -> Transport:
        """A new connection of an administrator."""

    def requests(self) -> Iterable[Request]:
        """What was asked of the server since the test began, in the order of the answers."""

    async def kubeconfig(self) -> Path:
        """A file with which other programs reach the server."""


class Cluster:
    """A cluster with a namespace of the test's own; everything in the namespace goes with it.

    Cluster-scoped objects that a test creates are the test's to delete, or to name so that nobody minds them.

    Args:
        server: The cluster.
        namespace: The name of the namespace, made on entry and deleted on exit, without waiting until it is gone.

    Attributes:
        name: ``embedded`` or ``real``.
        namespace: The namespace.
        clock: The time that the cluster lives in: simulated on the embedded one.
        client: An administrator's client; usable after entry.
    """

    def __init__(self, server: Server, namespace: str) -> None:
        self.name = server.name
        self.namespace = namespace
        self.clock = server.clock
        self._server = server
        self._closing = AsyncExitStack()
        self.client = self.new_client(_ADMIN_USER_AGENT)

    async def __aenter__(self) -> Self:
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._closing:
            with suppress(NotFoundError):  # the test may have done it
                await self.client.delete(_NAMESPACE, ObjectKey("", self.namespace))

    def new_client(self, user_agent: str) -> Client:
        """A further client of an administrator, closed when the test ends.

        Args:
            user_agent: By which `requests` tells it from others.
        """
        client = Client(self._server.transport(), user_agent=user_agent, clock=self.clock)
        self._closing.push_async_callback(client.close)
        return client

    def new_transport(self) -> Transport:
        """A bare connection of an administrator, for requests that no client makes; closed when the test ends."""
        transport = self._server.transport()
        self._closing.push_async_callback(transport.close)
        return transport

    @overload
    async def eventually(
        self, check: Callable[[], Awaitable[T | None]], timeout_seconds: float = 30.0, describe: str = ""
    ) -> T: ...

    @overload
    async def eventually(
        self, check: Callable[[], T | None], timeout_seconds: float = 30.0, describe: str = ""
    ) -> T: ...

    async def eventually(self, check: Callable[[], Any], timeout_seconds: float = 30.0, describe: str = "") -> Any:
        """Wait on the cluster's clock until the check's answer is truthy, and return it (see `eventually`).

        Raises:
            AssertionError: It was not so in time; the message holds the last answer.
        """
        __tracebackhide__ = True
        return await eventually(check, clock=self.clock, timeout_seconds=timeout_seconds, describe=describe)

    def requests(self, user_agent: str) -> list[Request]:
        """What was asked with that user agent since the test began; whoever has an answer finds its request here.

        Discovery and the opening of watches are requests too.
        """
        return [request for request in self._server.requests() if request.user_agent == user_agent]

    async def kubeconfig(self) -> Path:
        """A kubeconfig of an administrator, for other programs.

        The embedded cluster begins to serve HTTP for it; that needs real time, so mark such a test ``real_time``.
        """
        return await self._server.kubeconfig()
