"""`Cluster`: what a test sees of a cluster, whichever it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, overload

from konverge.client import Client, Transport
from konverge.clock import Clock
from konverge.crd import crd_manifest, definition_of
from konverge.errors import KindNotServedError, NotFoundError, TooManyRequestsError
from konverge.kube import Condition, GroupVersionKind, ObjectKey, find_condition
from konverge.operator import Operator, RunOptions
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

    @asynccontextmanager
    async def running(self, operator: Operator, options: RunOptions | None = None) -> AsyncIterator[None]:
        """Run an operator within the block, in the cluster's time, with its CustomResourceDefinitions installed.

        The definitions stay when the test ends: they are the same for all tests of an operator.

        Args:
            operator: The operator; its name is its user agent.
            options: How to run it; in the test's own namespace when not given.

        Raises:
            BaseException: What the operator ended with before the block did.
        """
        for cls in operator.defined_resources:
            await self.client.apply(crd_manifest(cls), field_manager=_ADMIN_USER_AGENT)
            gvk = definition_of(cls).gvk
            await self.eventually(lambda gvk=gvk: self._is_served(gvk), describe=f"{gvk} is served")  # type: ignore[misc]
        client = self.new_client(operator.name)
        options = options or RunOptions(namespaces=(self.namespace,))
        running = asyncio.create_task(operator.run(client, options, clock=self.clock), name=operator.name)
        try:
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def _is_served(self, gvk: GroupVersionKind) -> bool:
        try:
            await self.client.list_page(gvk, namespace=self.namespace, limit=1)
        except (KindNotServedError, TooManyRequestsError):  # the second: its storage is not set up yet
            return False
        return True

    async def until_condition(
        self, gvk: GroupVersionKind, name: str, *, type: str = "Ready", status: str = "True", reason: str = ""
    ) -> Condition:
        """Wait until an object of the test's namespace has a condition.

        Args:
            gvk: The object's kind.
            name: Its name.
            type: The condition's type.
            status: Its status.
            reason: Its reason; any when not given.

        Raises:
            AssertionError: It was not so in time; the message holds the condition as it was last.
        """
        __tracebackhide__ = True

        async def found() -> Condition:
            condition = find_condition(await self.client.get(gvk, ObjectKey(self.namespace, name)), type)
            if condition is None:
                raise AssertionError(f"{gvk.kind} {name} has no condition {type}")
            if condition.status != status or reason not in ("", condition.reason):
                raise AssertionError(f"{type} {condition.status} {condition.reason}: {condition.message}")
            return condition

        return await self.eventually(found, describe=f"{gvk.kind} {name} has {type} {status} {reason}".rstrip())

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
