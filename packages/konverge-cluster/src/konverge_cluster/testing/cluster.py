"""`Cluster`: what a test sees of a cluster, whichever it is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, overload

from konverge.cancellation import await_shielded
from konverge.client import Client, Transport
from konverge.client.sender import Sender, decode_object
from konverge.clock import Clock, SystemEntropy
from konverge.crd import crd_manifest
from konverge.errors import ApiError, NotFoundError, TooManyRequestsError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge.operator import Operator, RunOptions
from konverge.runtime.webhooks import WebhookEndpoint
from konverge_cluster.testing.audit_requests import AuditedRequest
from konverge_cluster.testing.polling import eventually
from konverge_cluster.testing.steadiness import has_been_observed
from konverge_cluster.testing.webhook_readiness import wait_for_webhooks

__all__ = ["Cluster", "ClusterServer"]

T = TypeVar("T")

_NAMESPACES = "/api/v1/namespaces"
_ADMIN_USER_AGENT = "konverge-testing"
_TIMEOUT_SECONDS = 30.0

# Who writes for others: what these have made goes with its owners, or belongs to every namespace. Claims have no owner.
_CONTROL_PLANE = ("kube-", "kwok")
_WITHOUT_OWNER = "persistentvolumeclaims"
_WRITES = frozenset({"create", "patch", "update"})
_NEVER_STEADY = frozenset({"events", "leases"})


class ClusterServer(Protocol):
    """A running cluster, as far as tests need one."""

    @property
    def name(self) -> str:
        """``embedded`` or ``real``."""

    @property
    def clock(self) -> Clock:
        """The time that the cluster lives in."""

    def open_transport(self) -> Transport:
        """A new connection of an administrator."""

    def list_requests(self) -> Iterable[AuditedRequest]:
        """What was asked of the server since the test began, in the order of the answers."""

    async def write_kubeconfig(self) -> Path:
        """A file with which other programs reach the server."""


class Cluster:
    """A cluster with a namespace of the test's own; everything that is in the namespace goes when the test ends.

    The namespace itself stays: a server that is asked to delete one looks for each kind that it serves, which costs
    more than most tests. It goes with the control plane.

    Cluster-scoped objects that a test creates are the test's to delete, or to name so that nobody minds them.

    Args:
        server: The cluster.
        namespace: The name of the namespace, made on entry; on exit what was written in it is deleted, without waiting
            until it is gone.

    Attributes:
        name: ``embedded`` or ``real``.
        namespace: The namespace.
        clock: The time that the cluster lives in: simulated on the embedded one.
        client: An administrator's client; usable after entry.
    """

    def __init__(self, server: ClusterServer, namespace: str) -> None:
        self.name = server.name
        self.namespace = namespace
        self.clock = server.clock
        self._server = server
        self._closing = AsyncExitStack()
        self._transport = self.new_transport()
        self.client = Client(self._transport, user_agent=_ADMIN_USER_AGENT, clock=self.clock)
        # Asks without discovery: what the client learns of the server's kinds has to wait for what a test installs.
        self._sender = Sender(self._transport, _ADMIN_USER_AGENT, _TIMEOUT_SECONDS, self.clock, SystemEntropy())

    async def __aenter__(self) -> Self:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        async with AsyncExitStack() as failing:
            failing.push_async_exit(self._closing)  # nobody leaves what was not entered
            await self._sender.send("POST", _NAMESPACES, body=namespace)
            failing.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._closing, asyncio.TaskGroup() as clearing:
            for path in self._list_written_paths():
                clearing.create_task(self._clear(path))

    def _list_written_paths(self, *, also_by_control_plane: bool = False) -> Iterable[str]:
        """The paths of the namespace's collections that something was written to."""
        pattern = re.compile(rf"(/.+)/([^/]+)/namespaces/{re.escape(self.namespace)}/([^/]+)")
        found: dict[tuple[str, str], str] = {}  # one path for all versions of a kind
        for request in self._server.list_requests():
            path = pattern.match(request.path)
            if path is None or request.verb not in _WRITES:
                continue
            is_others = request.user_agent.startswith(_CONTROL_PLANE)
            if also_by_control_plane or path[3] == _WITHOUT_OWNER or not is_others:
                found[path[1], path[3]] = path[0]
        return found.values()

    def _list_changed_outside(self) -> set[str]:
        """The paths of the objects without a namespace that the test has changed."""
        pattern = re.compile(r"(/api/[^/]+|/apis/[^/]+/[^/]+)/[^/]+/[^/]+$")
        return {
            request.path
            for request in self._server.list_requests()
            if request.verb in ("patch", "update")
            and request.code < 400
            and not request.user_agent.startswith(_CONTROL_PLANE)
            and pattern.match(request.path)
            and not request.path.startswith(_NAMESPACES)
        }

    async def _clear(self, path: str) -> None:
        # The controllers would make it again.
        query = {"fieldSelector": "metadata.name!=kube-root-ca.crt"} if path.endswith("/configmaps") else {}
        with suppress(ApiError):  # not served any more, not to be deleted together, or the test has done it
            await self._sender.send("DELETE", path, query=query)

    def new_client(self, user_agent: str) -> Client:
        """A further client of an administrator, closed when the test ends.

        Args:
            user_agent: By which `requests` tells it from others.
        """
        client = Client(self._server.open_transport(), user_agent=user_agent, clock=self.clock)
        self._closing.push_async_callback(client.close)
        return client

    def new_transport(self) -> Transport:
        """A bare connection of an administrator, for requests that no client makes; closed when the test ends."""
        transport = self._server.open_transport()
        self._closing.push_async_callback(transport.close)
        return transport

    async def list_versions(self) -> Mapping[str, str]:
        """The resource version of each object that anybody has written in the test's namespace, by path.

        Also of those without a namespace that the test has changed. Not of Events and Leases, which change for ever.

        Raises:
            AssertionError: A controller of the cluster has not been at one of them yet.
        """
        found = {}
        for path in (*self._list_written_paths(also_by_control_plane=True), *self._list_changed_outside()):
            if path.rpartition("/")[2] in _NEVER_STEADY:
                continue
            try:
                answer = decode_object(await self._sender.send("GET", path), "GET", path)
            except NotFoundError:  # it has gone, or its kind has
                continue
            is_list = "items" in answer
            resource = path.split("/")[-1 if is_list else -2]
            for obj in answer["items"] or () if is_list else (answer,):
                which = f"{path}/{obj['metadata']['name']}" if is_list else path
                if not has_been_observed(resource, obj, is_real=self.name == "real"):
                    raise AssertionError(f"its controller has not been at {which}")
                found[which] = obj["metadata"]["resourceVersion"]
        return found

    async def wait_until_steady(self, *user_agents: str, seconds: float = 1.0, timeout_seconds: float = 90.0) -> None:
        """Wait until the cluster's controllers have nothing left to write, and some clients nothing to ask for.

        To be called before what an operator writes is counted: a controller that comes late is a reason for one more
        write, and no fault of the operator.

        Args:
            user_agents: The clients; their watches do not count.
            seconds: How long no object of the test may change, and no client ask for anything. Each controller has been
                at each object before.
            timeout_seconds: The deadline.

        Raises:
            AssertionError: They did not come to rest in time; the message says who did not.
        """
        __tracebackhide__ = True

        async def is_steady() -> bool:
            asked = {each: self._list_requests(each) for each in user_agents}
            versions = await self.list_versions()
            await self.clock.sleep(seconds)
            for each in user_agents:
                if later := self._list_requests(each)[len(asked[each]) :]:
                    raise AssertionError(f"{each} asks for {', '.join(f'{it.verb} {it.path}' for it in later[:5])}")
            now = await self.list_versions()
            if changed := {path for path, _ in versions.items() ^ now.items()}:
                raise AssertionError(f"somebody writes {', '.join(sorted(changed)[:5])}")
            return True

        await self.eventually(is_steady, timeout_seconds=timeout_seconds, describe="the cluster comes to rest")

    def _list_requests(self, user_agent: str) -> list[AuditedRequest]:
        return [request for request in self.list_requests(user_agent) if request.verb != "watch"]

    @overload
    async def eventually(
        self, check: Callable[[], Awaitable[T | None]], timeout_seconds: float | None = None, describe: str = ""
    ) -> T: ...

    @overload
    async def eventually(
        self, check: Callable[[], T | None], timeout_seconds: float | None = None, describe: str = ""
    ) -> T: ...

    async def eventually(
        self, check: Callable[[], Any], timeout_seconds: float | None = None, describe: str = ""
    ) -> Any:
        """Wait on the cluster's clock until the check's answer is truthy, and return it (see `eventually`).

        Args:
            check: What is asked; plain or async.
            timeout_seconds: The deadline. Without one it is 30 seconds of simulated time, and 90 with a real cluster,
                whose machine may have other things to do as well.
            describe: What is awaited, for the failure's message.

        Raises:
            AssertionError: It was not so in time; the message holds the last answer.
        """
        __tracebackhide__ = True
        if timeout_seconds is None:
            timeout_seconds = 90.0 if self.name == "real" else 30.0
        return await eventually(check, clock=self.clock, timeout_seconds=timeout_seconds, describe=describe)

    async def install(self, *definitions: Object) -> None:
        """Have kinds served: apply their CustomResourceDefinitions and wait until all may be asked for.

        The definitions stay when the test ends. `client` knows the kinds at once if it is first used after this; else
        it may take another second, because that old its knowledge of a server's kinds may be.

        Args:
            definitions: The manifests.

        Raises:
            AssertionError: They were not served in time.
        """
        # A client of its own over the same connections, whose knowledge does not count.
        other = Client(self._transport, user_agent=_ADMIN_USER_AGENT, clock=self.clock)
        for definition in definitions:
            await other.apply(definition, field_manager=_ADMIN_USER_AGENT, force=True)
        for definition in definitions:
            group, names = definition["spec"]["group"], definition["spec"]["names"]
            for version in definition["spec"]["versions"]:
                if version["served"]:
                    path = f"/apis/{group}/{version['name']}/{names['plural']}"
                    gvk = GroupVersionKind(group, version["name"], names["kind"])
                    await self.eventually(partial(self._is_served, gvk, path), describe=f"{gvk} is served")

    async def _is_served(self, gvk: GroupVersionKind, path: str) -> bool:
        try:
            await self._sender.send("GET", path, query={"limit": "1"})
        except TooManyRequestsError:  # its storage is not set up yet
            return False
        await self.client.mapping(gvk)
        return True

    @asynccontextmanager
    async def run_operator(self, operator: Operator, options: RunOptions | None = None) -> AsyncIterator[None]:
        """Run an operator within the block, in the cluster's time, with its CustomResourceDefinitions installed.

        The definitions stay when the test ends: they are the same for all tests of an operator. Where the operator
        registers webhooks for admission, the block begins when the API server asks them; one that converts objects
        between versions may be asked a moment later.

        Args:
            operator: The operator; its name is its user agent.
            options: How to run it; in the test's own namespace when not given.

        Raises:
            AssertionError: The API server did not come to ask its webhooks in time.
            BaseException: What the operator ended with before the block did.
        """
        await self.install(*map(crd_manifest, operator.defined_resources))
        asked_before = len(self.list_requests(operator.name))
        client = self.new_client(operator.name)
        options = options or RunOptions(namespaces=(self.namespace,))
        running = asyncio.create_task(operator.run(client, options, clock=self.clock), name=operator.name)

        def list_new_requests() -> list[AuditedRequest]:
            if running.done():  # its own error, if there is one, is told when the block has ended
                raise RuntimeError(f"operator {operator.name} has ended before its webhooks were registered")
            return self.list_requests(operator.name)[asked_before:]

        try:
            if options.webhooks is not None and options.registers_webhooks:
                registered = operator.registered.build_webhook_manifests(WebhookEndpoint(""))
                await wait_for_webhooks(
                    self.client, registered, list_new_requests, namespace=self.namespace, clock=self.clock
                )
            yield
        finally:
            running.cancel()
            await await_shielded(asyncio.wait([running]))
            if not running.cancelled():
                running.result()

    async def wait_for_condition(
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

        async def get_condition() -> Condition:
            condition = find_condition(await self.client.get(gvk, ObjectKey(self.namespace, name)), type)
            if condition is None:
                raise AssertionError(f"{gvk.kind} {name} has no condition {type}")
            if condition.status != status or reason not in ("", condition.reason):
                raise AssertionError(f"{type} {condition.status} {condition.reason}: {condition.message}")
            return condition

        return await self.eventually(get_condition, describe=f"{gvk.kind} {name} has {type} {status} {reason}".rstrip())

    def list_requests(self, user_agent: str) -> list[AuditedRequest]:
        """What was asked with that user agent since the test began; whoever has an answer finds its request here.

        Discovery and the opening of watches are requests too.
        """
        return [request for request in self._server.list_requests() if request.user_agent == user_agent]

    async def write_kubeconfig(self) -> Path:
        """A kubeconfig of an administrator, for other programs.

        The embedded cluster begins to serve HTTP for it; that needs real time, so mark such a test ``real_time``.
        """
        return await self._server.write_kubeconfig()
