"""A test of any operator without a test file: sample owners live and die on an embedded cluster, in simulated time.

For each owner, the operator must become steady without an error, write nothing after a restart, and leave nothing after
the deletion. An owner that the server rejects is only reported.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from konverge._internal.client.sender import Sender, decode_object
from konverge._internal.component.ownership import has_own_entry
from konverge._internal.crd import build_sample_objects, find_definition
from konverge._internal.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge._internal.operator import Operator
from konverge._internal.operator.placeholder_definitions import install_placeholders
from konverge.clock import SeededEntropy, SimulatedClock, SimulatedLoop
from konverge.errors import ApiError, ConfigurationError, KonvergeError, NotFoundError, format_error
from konverge_cluster._internal.embedded import LocalCluster
from konverge_cluster._internal.testing.audit_requests import AuditedRequest
from konverge_cluster._internal.testing.cluster import Cluster
from konverge_cluster._internal.testing.cluster_servers import EmbeddedServer

__all__ = ["OwnerReport", "list_owners", "run_owner"]

_NAMESPACE = "test"
# Longer than every backoff and probe: an operator that sends something once a minute is not steady.
_STEADY_SECONDS = 120.0
_DEADLINE_SECONDS = 900.0
_READS = frozenset({"get", "list", "watch"})
# Events, and the check of the operator's own permissions.
_UNCOUNTED = re.compile(r"/events(/|$)|^/apis/authorization\.k8s\.io/")
_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class OwnerReport:
    """The result for one owner.

    Args:
        owner: The owner.
        condition: The status and reason of its last condition; empty without one.
        problems: The expectations that are not met.
        rejection: The error with which the server rejects the owner; empty if it accepts the owner.
    """

    owner: Object
    condition: str = ""
    problems: tuple[str, ...] = ()
    rejection: str = ""


def list_owners(operator: Operator, given: Sequence[Object], limit: int) -> list[Object]:
    """Return the owners of the files, then samples from the schemas of the kinds without any.

    Args:
        operator: The operator.
        given: The owners of files.
        limit: The number of samples of each kind.

    Raises:
        konverge.errors.ConfigurationError: An object of a file is no owner of the operator, or has no name.
    """
    kinds = {find_definition(entry.cls).gvk: entry for entry in operator.registered.classes}
    owners = list(given)
    for obj in given:
        found = GroupVersionKind.of(obj) if {"apiVersion", "kind"} <= obj.keys() else None
        if found not in kinds:
            expected = ", ".join(f"{gvk.api_version} {gvk.kind}" for gvk in kinds) or "none"
            actual = "another object" if found is None else f"{found.api_version} {found.kind}"
            raise ConfigurationError(f"--sample: expected owners of the operator ({expected}), found {actual}")
        metadata = obj.get("metadata")
        if not (isinstance(metadata, dict) and isinstance(metadata.get("name"), str)):
            raise ConfigurationError(f"--sample: {obj['kind']}: metadata.name: expected a name, found none")
    given_kinds = {GroupVersionKind.of(obj) for obj in given}
    for cls in operator.defined_resources:
        definition = find_definition(cls)
        if definition.gvk not in given_kinds:
            owners += build_sample_objects(definition, limit).objects
    return owners


def run_owner(operator: Operator, owner: Object, definitions: Iterable[Object]) -> OwnerReport:
    """Run the operator over one owner, on a cluster of its own.

    Args:
        operator: The operator.
        owner: The owner.
        definitions: CustomResourceDefinitions of other operators.
    """
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(_run_owner(operator, owner, definitions))


async def _run_owner(operator: Operator, owner: Object, definitions: Iterable[Object]) -> OwnerReport:
    clock = SimulatedClock()
    async with LocalCluster(clock=clock, entropy=SeededEntropy()) as local:
        with EmbeddedServer(local, clock) as server:
            async with Cluster(server, _NAMESPACE) as cluster:
                await cluster.install(*definitions)
                await install_placeholders(cluster.client, operator.registered.assumed_kinds)
                return await _Run(cluster, operator, owner).report()


class _Run:
    """The life of one owner."""

    def __init__(self, cluster: Cluster, operator: Operator, owner: Object) -> None:
        self._cluster = cluster
        self._operator = operator
        self._gvk = GroupVersionKind.of(owner)
        [registration] = [entry for entry in operator.registered.classes if find_definition(entry.cls).gvk == self._gvk]
        self._condition_type = registration.condition_type
        self._owner = _build_owner(owner, is_namespaced=find_definition(registration.cls).namespaced)
        self._key = ObjectKey.of(self._owner)
        # Works without discovery, for the paths of requests.
        self._sender = Sender(cluster.new_transport(), "konverge-test", 30.0, cluster.clock, SeededEntropy())

    async def report(self) -> OwnerReport:
        """Create the owner, restart the operator, delete the owner, and return the problems."""
        problems: list[str] = []
        try:
            async with self._cluster.run_operator(self._operator):
                try:
                    await self._cluster.client.create(self._owner)
                except ApiError as error:
                    return OwnerReport(self._owner, rejection=format_error(error))
                unsteadiness = await self._find_unsteadiness("")
                condition = await self._read_condition()
                if condition is not None and condition.reason == "Error":
                    problems.append(f"{condition.type} is {condition.status} (Error): {condition.message}")
                    return OwnerReport(self._owner, problems=tuple(problems))
                problems += unsteadiness
            sent = len(self._list_writes())
            async with self._cluster.run_operator(self._operator):
                problems += await self._find_unsteadiness("after a restart, ")
                if writes := self._list_writes()[sent:]:
                    problems.append(f"after a restart, expected no write, found {_format_requests(writes)}")
                owner = await self._cluster.client.get(self._gvk, self._key)
                await self._cluster.client.delete(self._gvk, self._key)
                problems += await self._find_remains(owner)
        except KonvergeError as error:
            return OwnerReport(self._owner, problems=(*problems, f"the operator ends: {format_error(error)}"))
        text = "" if condition is None else f"{condition.status} {condition.reason}"
        return OwnerReport(self._owner, text, tuple(problems))

    async def _find_unsteadiness(self, prefix: str) -> list[str]:
        try:
            await self._cluster.wait_until_steady(
                self._operator.name, seconds=_STEADY_SECONDS, timeout_seconds=_DEADLINE_SECONDS
            )
        except AssertionError as error:
            return [f"{prefix}not steady within {_DEADLINE_SECONDS / 60:g} minutes: {' '.join(str(error).split())}"]
        return []

    async def _find_remains(self, owner: Object) -> list[str]:
        """Wait until the owner is gone, and return a problem for each object that is left and should not be."""
        try:
            await self._cluster.eventually(self._is_gone, timeout_seconds=_DEADLINE_SECONDS)
            await self._cluster.wait_until_steady(timeout_seconds=_DEADLINE_SECONDS)
        except AssertionError:
            condition = await self._read_condition()
            message = f": {condition.message}" if condition is not None else ""
            return [f"deletion: not gone within {_DEADLINE_SECONDS / 60:g} minutes{message}"]
        paths = {request.path for request in self._list_writes() if request.verb in ("patch", "update")}
        remains = [path for path in sorted(paths) if not path.endswith("/status") and await self._remains(path, owner)]
        return [f"deletion: left behind: {', '.join(remains[:_MAX_LISTED])}"] if remains else []

    async def _is_gone(self) -> bool:
        try:
            await self._cluster.client.get(self._gvk, self._key)
        except NotFoundError:
            return True
        return False

    async def _remains(self, path: str, owner: Object) -> bool:
        """Return True if the object exists, and no component declares that it outlives the owner."""
        try:
            live = decode_object(await self._sender.send("GET", path), "GET", path)
        except NotFoundError:
            return False
        return not _is_kept(live, owner)

    async def _read_condition(self) -> Condition | None:
        return find_condition(await self._cluster.client.get(self._gvk, self._key), self._condition_type)

    def _list_writes(self) -> list[AuditedRequest]:
        requests = self._cluster.list_requests(self._operator.name)
        return [request for request in requests if request.verb not in _READS and not _UNCOUNTED.search(request.path)]


def _build_owner(owner: Object, *, is_namespaced: bool) -> Object:
    """Return the owner as a user creates it."""
    found = {name: value for name, value in copy.deepcopy(owner).items() if name != "status"}
    metadata = found["metadata"]
    kept = {name: metadata[name] for name in ("name", "labels", "annotations") if name in metadata}
    return {**found, "metadata": {**kept, **({"namespace": _NAMESPACE} if is_namespaced else {})}}


def _is_kept(live: Object, owner: Object) -> bool:
    """Return True if a component of the owner has applied the object as `unowned`.

    A component gives each other object a reference to the owner, except one that Kubernetes permits none: an object of
    the cluster, of an owner in a namespace. Such an object is for the operator to delete.
    """
    metadata = live["metadata"]
    if "namespace" in owner["metadata"] and "namespace" not in metadata:
        return False
    references = metadata.get("ownerReferences") or ()
    is_owned = any(reference.get("uid") == owner["metadata"]["uid"] for reference in references)
    return not is_owned and has_own_entry(live, owner, "")


def _format_requests(requests: Sequence[AuditedRequest]) -> str:
    listed = ", ".join(f"{request.verb} {request.path}" for request in requests[:_MAX_LISTED])
    return listed if len(requests) <= _MAX_LISTED else f"{listed} and {len(requests) - _MAX_LISTED} more"
