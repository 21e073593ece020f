"""`Cluster`: the interface of a test to a cluster, embedded or real."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, overload

from konverge._internal.cancellation import await_shielded
from konverge._internal.client import Client, Transport
from konverge._internal.client.sender import Sender, decode_object
from konverge._internal.crd import crd_manifest
from konverge._internal.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge._internal.operator import Operator, RunOptions
from konverge._internal.runtime.webhooks import WebhookEndpoint
from konverge.clock import Clock, SystemEntropy
from konverge.errors import ApiError, NotFoundError, TooManyRequestsError
from konverge_cluster._internal.testing.audit_requests import AuditedRequest
from konverge_cluster._internal.testing.polling import eventually
from konverge_cluster._internal.testing.steadiness import has_been_observed
from konverge_cluster._internal.testing.webhook_readiness import wait_for_webhooks

__all__ = ["Cluster", "ClusterServer"]

T = TypeVar("T")

_NAMESPACES = "/api/v1/namespaces"
_ADMIN_USER_AGENT = "konverge-testing"
_TIMEOUT_SECONDS = 30.0

# Clients of the control plane: their objects are deleted with the owners, or exist in every namespace. Claims have no
# owner.
_CONTROL_PLANE = ("kube-", "kwok")
_WITHOUT_OWNER = "persistentvolumeclaims"
_WRITES = frozenset({"create", "patch", "update"})
_NEVER_STEADY = frozenset({"events", "leases"})


class ClusterServer(Protocol):
    """A running cluster, as far as tests need it."""

    @property
    def name(self) -> str:
        """The kind of the cluster: ``embedded`` or ``real``."""

    @property
    def clock(self) -> Clock:
        """The clock of the cluster."""

    def open_transport(self) -> Transport:
        """Open a new connection of an administrator."""

    def list_requests(self) -> Iterable[AuditedRequest]:
        """Return the requests since the test began, in the order of the responses."""

    async def write_kubeconfig(self) -> Path:
        """Return the path of a kubeconfig with which other programs reach the server."""


class Cluster:
    """A cluster with a namespace for one test; all objects in the namespace are deleted when the test ends.

    The namespace itself remains: to delete a namespace, a server lists every kind that it serves, which takes longer
    than most tests. It disappears with the control plane.

    A test must delete the cluster-scoped objects that it creates, or give them unique names.

    Args:
        server: The cluster.
        namespace: The name of the namespace. It is created on entry. On exit its objects are deleted, without a wait
            until they are gone.

    Attributes:
        name: ``embedded`` or ``real``.
        namespace: The namespace.
        clock: The clock of the cluster: simulated on the embedded one.
        client: The client of an administrator; usable after entry.
    """

    def __init__(self, server: ClusterServer, namespace: str) -> None:
        self.name: str = server.name
        self.namespace = namespace
        self.clock: Clock = server.clock
        self._server = server
        self._closing = AsyncExitStack()
        self._transport = self.new_transport()
        self.client: Client = Client(self._transport, user_agent=_ADMIN_USER_AGENT, clock=self.clock)
        # Works without discovery: the client must not discover kinds before the test has installed its definitions.
        self._sender = Sender(self._transport, _ADMIN_USER_AGENT, _TIMEOUT_SECONDS, self.clock, SystemEntropy())

    async def __aenter__(self) -> Self:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        async with AsyncExitStack() as failing:
            failing.push_async_exit(self._closing)  # `__aexit__` does not run if this method fails
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
        """Return the paths of the namespace's collections that received writes."""
        pattern = re.compile(rf"(/.+)/([^/]+)/namespaces/{re.escape(self.namespace)}/([^/]+)")
        paths: dict[tuple[str, str], str] = {}  # one path for all versions of a kind
        for request in self._server.list_requests():
            path = pattern.match(request.path)
            if path is None or request.verb not in _WRITES:
                continue
            is_others = request.user_agent.startswith(_CONTROL_PLANE)
            if also_by_control_plane or path[3] == _WITHOUT_OWNER or not is_others:
                paths[path[1], path[3]] = path[0]
        return paths.values()

    def _list_changed_outside(self) -> set[str]:
        """Return the paths of the cluster-scoped objects that the test has changed."""
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
        # A controller would create it again.
        query = {"fieldSelector": "metadata.name!=kube-root-ca.crt"} if path.endswith("/configmaps") else {}
        with suppress(ApiError):  # no longer served, cannot be deleted as a collection, or already deleted
            await self._sender.send("DELETE", path, query=query)

    def new_client(self, user_agent: str) -> Client:
        """Return another client of an administrator; it is closed when the test ends.

        Args:
            user_agent: The user agent by which `list_requests` finds the requests of this client.
        """
        client = Client(self._server.open_transport(), user_agent=user_agent, clock=self.clock)
        self._closing.push_async_callback(client.close)
        return client

    def new_transport(self) -> Transport:
        """Return a bare connection of an administrator for requests that no client sends, closed when the test ends."""
        transport = self._server.open_transport()
        self._closing.push_async_callback(transport.close)
        return transport

    async def list_versions(self) -> Mapping[str, str]:
        """Return the resource version of each object written in the test's namespace, by path.

        The result includes the cluster-scoped objects that the test has changed. It excludes Events and Leases, which
        never stop changing.

        Raises:
            AssertionError: A controller of the cluster has not observed one of the objects yet.
        """
        versions = {}
        for path in (*self._list_written_paths(also_by_control_plane=True), *self._list_changed_outside()):
            if path.rpartition("/")[2] in _NEVER_STEADY:
                continue
            try:
                response = decode_object(await self._sender.send("GET", path), "GET", path)
            except NotFoundError:  # the object or its kind was deleted
                continue
            is_list = "items" in response
            resource = path.split("/")[-1 if is_list else -2]
            for obj in response["items"] or () if is_list else (response,):
                object_path = f"{path}/{obj['metadata']['name']}" if is_list else path
                if not has_been_observed(resource, obj, is_real=self.name == "real"):
                    raise AssertionError(f"{object_path}: the controller has not observed this object")
                versions[object_path] = obj["metadata"]["resourceVersion"]
        return versions

    async def wait_until_steady(self, *user_agents: str, seconds: float = 1.0, timeout_seconds: float = 90.0) -> None:
        """Wait until the cluster's controllers write nothing and the given clients send no requests.

        Call this before a test counts the writes of an operator: a late controller causes one more write of the
        operator, which is not an error.

        Args:
            user_agents: The user agents of the clients; their watches do not count.
            seconds: The period without any change of an object and without any request of a client. Before it, each
                controller must have observed each object.
            timeout_seconds: The deadline.

        Raises:
            AssertionError: The cluster was not steady in time; the message names the clients or objects.
        """
        __tracebackhide__ = True

        async def is_steady() -> bool:
            earlier = {client: self._list_requests(client) for client in user_agents}
            versions = await self.list_versions()
            await self.clock.sleep(seconds)
            for client in user_agents:
                if later := self._list_requests(client)[len(earlier[client]) :]:
                    sent = ", ".join(f"{request.verb} {request.path}" for request in later[:5])
                    raise AssertionError(f"{client} sends {sent}")
            now = await self.list_versions()
            if changed := {path for path, _ in versions.items() ^ now.items()}:
                raise AssertionError(f"a client writes {', '.join(sorted(changed)[:5])}")
            return True

        await self.eventually(is_steady, timeout_seconds=timeout_seconds, describe="the cluster is steady")

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
        """Wait on the cluster's clock until the check returns a truthy value, and return it (see `eventually`).

        Args:
            check: The check; plain or async.
            timeout_seconds: The deadline. The default is 30 seconds of simulated time, and 90 seconds with a real
                cluster, whose machine can be busy.
            describe: The awaited state, for the error message.

        Raises:
            AssertionError: The check did not succeed in time; the message contains the last result.
        """
        __tracebackhide__ = True
        if timeout_seconds is None:
            timeout_seconds = 90.0 if self.name == "real" else 30.0
        return await eventually(check, clock=self.clock, timeout_seconds=timeout_seconds, describe=describe)

    async def install(self, *definitions: Object) -> None:
        """Install kinds: apply their CustomResourceDefinitions and wait until the server serves all of them.

        The definitions remain when the test ends. `client` knows the kinds at once if its first use is after this call;
        otherwise its cached discovery can be one second old.

        Args:
            definitions: The manifests.

        Raises:
            AssertionError: The server did not serve the kinds in time.
        """
        # A separate client over the same connections: its discovery cache must not affect `client`.
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
        except TooManyRequestsError:  # the API server has not set up the storage yet
            return False
        await self.client.mapping(gvk)
        return True

    @asynccontextmanager
    async def run_operator(self, operator: Operator, options: RunOptions | None = None) -> AsyncIterator[None]:
        """Run an operator while the block runs, on the cluster's clock and with its CustomResourceDefinitions.

        The definitions remain when the test ends: they are the same for all tests of an operator. If the operator
        registers admission webhooks, the block begins when the API server calls them. The API server can begin to call
        conversion webhooks a moment later.

        Args:
            operator: The operator; its name is its user agent.
            options: The run options; by default the operator watches only the test's namespace.

        Raises:
            AssertionError: The API server did not call the admission webhooks in time.
            BaseException: The error that ended the operator before the block ended.
        """
        await self.install(*map(crd_manifest, operator.defined_resources))
        asked_before = len(self.list_requests(operator.name))
        client = self.new_client(operator.name)
        options = options or RunOptions(namespaces=(self.namespace,))
        running = asyncio.create_task(operator.run(client, options, clock=self.clock), name=operator.name)

        def list_new_requests() -> list[AuditedRequest]:
            if running.done():  # the block's end reports the error of the operator
                raise RuntimeError(f"operator {operator.name} ended before its webhooks were registered")
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
        """Wait until an object in the test's namespace has a condition, and return the condition.

        Args:
            gvk: The object's kind.
            name: The object's name.
            type: The condition's type.
            status: The condition's status.
            reason: The condition's reason; any reason by default.

        Raises:
            AssertionError: The condition was not met in time; the message contains the last condition.
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
        """Return the requests with this user agent since the test began, including every answered request.

        Discovery requests and the start of watches are included.
        """
        return [request for request in self._server.list_requests() if request.user_agent == user_agent]

    async def write_kubeconfig(self) -> Path:
        """Write an administrator's kubeconfig for other programs, and return its path.

        The embedded cluster then serves HTTP, which needs real time: mark such a test ``real_time``.
        """
        return await self._server.write_kubeconfig()
