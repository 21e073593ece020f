"""A running box in a simulated cluster, with its operator's writes and its idle state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from konverge._internal.cancellation import await_shielded
from konverge._internal.client import Client, Transport
from konverge._internal.crd import crd_manifest, find_definition
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, find_condition, is_deleting
from konverge._internal.operator import RunOptions
from konverge._internal.operator.placeholder_definitions import install_placeholders
from konverge._internal.runtime import Process
from konverge.clock import Clock, Entropy
from konverge.errors import (
    ConflictError,
    KindNotServedError,
    KonvergeError,
    NotFoundError,
    TooManyRequestsError,
    format_error,
)
from konverge_box._internal.calls.scripted_answers import ScriptedAnswer, ScriptedCaller
from konverge_box._internal.file import KINDS, OperatorBox
from konverge_box._internal.providers import ProviderPool
from konverge_box._internal.runtime import BoxController
from konverge_box._internal.runtime.box_health import BoxReconcileResult
from konverge_box._internal.simulation.recording_transport import RecordingTransport
from konverge_box._internal.simulation.step_report import RecordedOperation

__all__ = ["SimulatedBox", "SimulatedCluster", "start_simulated_box"]

_FIELD_MANAGER = "konverge-simulate"
_POLL_SECONDS = 0.02
_SERVED_TIMEOUT_SECONDS = 30.0
_CACHE_TIMEOUT_SECONDS = 10.0
_IDLE_TIMEOUT_SECONDS = 60.0
_DELETION_TIMEOUT_SECONDS = 30.0
_CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

_ObjectId = tuple[GroupVersionKind, ObjectKey]


@dataclass(frozen=True)
class SimulatedCluster:
    """The cluster in which a simulation runs.

    Args:
        client: A client with full permissions.
        transport: A separate transport for the operator.
        clock: The cluster's clock.
        entropy: The operator's source of randomness.
        namespace: The namespace for objects without one; it is created if it does not exist.
        is_embedded: Whether its time is simulated and it has no other users: hours pass at once, and cleanup is
            unnecessary.
    """

    client: Client
    transport: Transport
    clock: Clock
    entropy: Entropy
    namespace: str
    is_embedded: bool


class SimulatedBox:
    """A running box; created by `start_simulated_box`.

    Args:
        cluster: The cluster.
        running: The controller of the box.
        recording: The transport of its operator.
        answers: The responses to calls.

    Attributes:
        answers: The current responses to calls, by name.
        task: The task of its operator; None before the start.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        running: BoxController,
        recording: RecordingTransport,
        answers: dict[str, ScriptedAnswer],
    ) -> None:
        self.cluster = cluster
        self.answers = answers
        self._running = running
        self._recording = recording
        self.task: asyncio.Task[None] | None = None
        self._applied: list[_ObjectId] = []

    @property
    def owner_kinds(self) -> frozenset[str]:
        """The kinds of the box's custom resources."""
        return frozenset(pipeline.gvk.kind for pipeline in self._running.active.pipelines.values())

    @property
    def operations(self) -> list[RecordedOperation]:
        """The changes that the operator has made so far."""
        return self._recording.operations

    @property
    def failed_reconciles(self) -> int:
        """The number of reconciles that have failed so far."""
        return sum(
            health.results[BoxReconcileResult.ERROR]
            for run in self._running.active.runs
            for health in run.health.resources.values()
        )

    def list_last_errors(self) -> list[str]:
        """Return the last error of each custom resource of the box."""
        errors = [health.last_error for run in self._running.active.runs for health in run.health.resources.values()]
        return [text for text in errors if text]

    async def apply(self, obj: Object) -> None:
        """Apply an object with its status, and wait until the operator's caches contain it."""
        gvk, key = await self._resolve_object(GroupVersionKind.of(obj), obj["metadata"])
        status = obj.get("status")
        body = {**obj, "metadata": {**obj["metadata"], **({"namespace": key.namespace} if key.namespace else {})}}
        body.pop("status", None)
        client = self.cluster.client
        live = (await client.apply(body, field_manager=_FIELD_MANAGER)).object
        if status is not None:
            live = await client.patch(gvk, key, {"status": status}, patch_type="merge", subresource="status")
        if (gvk, key) not in self._applied:
            self._applied.append((gvk, key))
        if gvk == _CRD:
            await _wait_until_served(self.cluster, _list_kinds(obj))
        await self._wait_for_caches(gvk, key, live)

    async def patch(self, gvk: GroupVersionKind, name: str, namespace: str, body: Mapping[str, Any]) -> None:
        """Merge a patch into an object and its status, and wait until the operator's caches contain it."""
        gvk, key = await self._resolve_object(gvk, {"name": name, "namespace": namespace})
        client = self.cluster.client
        parts = [({key: value for key, value in body.items() if key != "status"}, "")]
        parts += [({"status": body["status"]}, "status")] if "status" in body else []
        for part, subresource in parts:
            if part:
                live = await client.patch(gvk, key, part, patch_type="merge", subresource=subresource)
                await self._wait_for_caches(gvk, key, live)

    async def delete(self, gvk: GroupVersionKind, name: str, namespace: str) -> None:
        """Delete an object, and wait until the operator's caches reflect it."""
        gvk, key = await self._resolve_object(gvk, {"name": name, "namespace": namespace})
        live = await self.cluster.client.get(gvk, key)
        await self.cluster.client.delete(gvk, key, uid=live["metadata"]["uid"])
        await self._wait_for_caches(gvk, key, None, uid=live["metadata"]["uid"])

    async def find(self, gvk: GroupVersionKind, name: str, namespace: str) -> Object | None:
        """Return an object from the server; None if there is none."""
        try:
            gvk, key = await self._resolve_object(gvk, {"name": name, "namespace": namespace})
            return await self.cluster.client.get(gvk, key)
        except (NotFoundError, KindNotServedError):
            return None

    async def wait_until_idle(self) -> None:
        """Wait until no reconcile is running or due.

        Raises:
            konverge.errors.KonvergeError: The operator has stopped, or does not become idle.
        """
        try:
            async with asyncio.timeout(_IDLE_TIMEOUT_SECONDS):
                while self._is_busy():
                    await self.sleep_briefly()
        except TimeoutError:
            problem = f"expected the operator to be idle within {_IDLE_TIMEOUT_SECONDS:g} s, found further reconciles"
            raise KonvergeError(problem) from None

    async def reconcile_all(self) -> list[RecordedOperation]:
        """Reconcile every custom resource once more, and return the changes of these reconciles."""
        before = len(self.operations)
        for run in self._running.active.runs:
            for pipeline in self._running.active.pipelines.values():
                owners = run.process.list_owners(pipeline.gvk)
                run.process.enqueue(pipeline.gvk, owners, reason="the simulation requests another reconcile")
        await self.wait_until_idle()
        return self.operations[before:]

    async def describe_ready_conditions(self) -> list[str]:
        """Return the Ready condition of each custom resource, one text each."""
        texts: list[str] = []
        for run in self._running.active.runs:
            for pipeline in self._running.active.pipelines.values():
                for key in sorted(run.process.list_owners(pipeline.gvk)):
                    texts += await self._describe_ready(pipeline.gvk, key)
        return texts

    async def delete_applied(self) -> None:
        """Delete the applied objects, custom resources first, while the operator can still finalize them."""
        owners = [each for each in self._applied if each[0].kind in self.owner_kinds]
        others = [each for each in reversed(self._applied) if each not in owners]
        for gvk, key in (*owners, *others):
            with suppress(NotFoundError, KindNotServedError, ConflictError):
                live = await self.cluster.client.get(gvk, key)
                await self.cluster.client.delete(gvk, key, uid=live["metadata"]["uid"])
            if (gvk, key) in owners:
                await self._wait_for_deletion(gvk, key)

    async def _describe_ready(self, gvk: GroupVersionKind, key: ObjectKey) -> list[str]:
        live = await self.find(gvk, key.name, key.namespace)
        if live is None:
            return []
        ready = find_condition(live, "Ready")
        text = "no Ready condition" if ready is None else f"Ready {ready.status} {ready.reason}"
        more = "" if ready is None or ready.status == "True" or not ready.message else f": {ready.message}"
        return [f"{gvk.kind}/{key.name}: {text}{more}"]

    async def _resolve_object(self, gvk: GroupVersionKind, metadata: Mapping[str, Any]) -> _ObjectId:
        namespaced = (await self.cluster.client.mapping(gvk)).namespaced
        namespace = str(metadata.get("namespace") or self.cluster.namespace) if namespaced else ""
        return gvk, ObjectKey(namespace, str(metadata["name"]))

    async def _wait_for_caches(
        self, gvk: GroupVersionKind, key: ObjectKey, live: Object | None, *, uid: str = ""
    ) -> None:
        """Wait until the operator's caches reflect a change, if they contain objects of its kind."""
        with suppress(TimeoutError):  # a cache that does not cover the object
            async with asyncio.timeout(_CACHE_TIMEOUT_SECONDS):
                while not all(self._has_seen(run.process, gvk, key, live, uid) for run in self._running.active.runs):
                    await self.sleep_briefly()

    def _has_seen(self, process: Process, gvk: GroupVersionKind, key: ObjectKey, live: Object | None, uid: str) -> bool:
        if gvk not in process.informers.running:
            return True
        cached = process.get_cached(gvk, key)
        if live is None:
            return cached is None or cached["metadata"]["uid"] != uid or is_deleting(cached)
        return cached is not None and _get_version(cached) >= _get_version(live)

    async def _wait_for_deletion(self, gvk: GroupVersionKind, key: ObjectKey) -> None:
        with suppress(TimeoutError):  # a finalizer blocks the deletion; the object stays in the cluster
            async with asyncio.timeout(_DELETION_TIMEOUT_SECONDS):
                while await self.find(gvk, key.name, key.namespace) is not None:
                    await self.sleep_briefly()

    def _is_busy(self) -> bool:
        now = self.cluster.clock.monotonic()
        for run in self._running.active.runs:
            for controller in run.process.controllers.values():
                wait = controller.queue.compute_wait_seconds(now)
                if controller.queue.running or (wait is not None and wait <= 0):
                    return True
        return False

    async def sleep_briefly(self) -> None:
        """Sleep for one polling interval.

        Raises:
            konverge.errors.KonvergeError: The operator has stopped.
        """
        if self.task is not None and self.task.done():
            self.task.result()
            raise KonvergeError("the operator has stopped")
        await self.cluster.clock.sleep(_POLL_SECONDS)


@asynccontextmanager
async def start_simulated_box(
    box: OperatorBox,
    cluster: SimulatedCluster,
    given: Iterable[Object],
    answers: Mapping[str, ScriptedAnswer],
    *,
    pool: ProviderPool | None = None,
    later: Iterable[Object] = (),
) -> AsyncIterator[SimulatedBox]:
    """Run a box in the cluster, with its definitions and the given objects.

    The embedded cluster also gets definitions for the other kinds of the box and of the given objects, unless one of
    the objects, or one that the simulation applies later, is their definition.

    On exit, the operator is stopped; in a shared cluster, the applied objects are deleted before. Both also happen if
    the caller is cancelled, even during the exit.

    Raises:
        konverge.errors.KonvergeError: The cluster rejects a definition or an object, or the operator stops.
    """
    responses = dict(answers)
    running = BoxController(
        box, pool=pool, make_caller=lambda clock, entropy: ScriptedCaller(responses, clock=clock, entropy=entropy)
    )
    client = cluster.client
    with suppress(ConflictError):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace}})
    for cls in running.operator.defined_resources:
        await client.apply(crd_manifest(cls), field_manager=_FIELD_MANAGER)
    await _wait_until_served(cluster, [find_definition(cls).gvk for cls in running.operator.defined_resources])
    given = list(given)
    if cluster.is_embedded:
        defined = {gvk for obj in (*given, *later) if GroupVersionKind.of(obj) == _CRD for gvk in _list_kinds(obj)}
        wanted = {GroupVersionKind.of(obj): bool(obj["metadata"].get("namespace")) for obj in given}
        wanted |= running.operator.registered.assumed_kinds
        kinds = {gvk: is_namespaced for gvk, is_namespaced in wanted.items() if gvk not in defined}
        await _wait_until_served(cluster, await install_placeholders(client, kinds))
    recording = RecordingTransport(cluster.transport, cluster.namespace)
    simulated = SimulatedBox(cluster, running, recording, responses)
    try:
        # Only in a cluster without other users do the caches contain no foreign objects; elsewhere events would remain.
        options = RunOptions(grace=timedelta(seconds=5), records_events=cluster.is_embedded)
        operator_client = Client(recording, user_agent=f"konverge-simulate ({box.metadata.name})", clock=cluster.clock)
        for obj in given:
            await simulated.apply(obj)
        created = {gvk for pipeline in running.active.pipelines.values() for gvk in pipeline.groups.kinds}
        for gvk in created | {kind.gvk for kind in KINDS.values() if kind.gvk is not None}:
            with suppress(KindNotServedError):
                recording.register_kind((await client.mapping(gvk)).plural, gvk.kind)
        work = running.operator.run(operator_client, options, clock=cluster.clock, entropy=cluster.entropy)
        simulated.task = asyncio.create_task(work, name=f"simulated {box.metadata.name}")
        await _wait_until_started(simulated, running)
        yield simulated
    finally:
        await await_shielded(_stop_box(simulated))


async def _stop_box(simulated: SimulatedBox) -> None:
    try:
        if not simulated.cluster.is_embedded:
            await simulated.delete_applied()
    finally:
        if simulated.task is not None:
            simulated.task.cancel()
            await asyncio.wait([simulated.task])


async def _wait_until_started(simulated: SimulatedBox, running: BoxController) -> None:
    try:
        async with asyncio.timeout(_SERVED_TIMEOUT_SECONDS):
            while not (running.active.runs and all(run.process.controllers for run in running.active.runs)):
                await simulated.sleep_briefly()
    except TimeoutError:
        problem = f"expected the operator to start within {_SERVED_TIMEOUT_SECONDS:g} s, found no controllers"
        raise KonvergeError(problem) from None


async def _wait_until_served(cluster: SimulatedCluster, kinds: Iterable[GroupVersionKind]) -> None:
    for gvk in kinds:
        problem = ""
        try:
            async with asyncio.timeout(_SERVED_TIMEOUT_SECONDS):
                while True:
                    try:
                        await cluster.client.list(gvk, namespace=cluster.namespace)
                    except (KindNotServedError, NotFoundError, TooManyRequestsError) as error:
                        problem = format_error(error)
                        await cluster.clock.sleep(_POLL_SECONDS * 5)
                    else:
                        break
        except TimeoutError:
            problem = f"expected the server to serve it within {_SERVED_TIMEOUT_SECONDS:g} s, found: {problem}"
            raise KonvergeError(f"{gvk}: {problem}") from None


def _list_kinds(definition: Object) -> list[GroupVersionKind]:
    spec = definition.get("spec") or {}
    versions = [each["name"] for each in spec.get("versions") or () if each.get("served")]
    return [GroupVersionKind(spec["group"], version, spec["names"]["kind"]) for version in versions]


def _get_version(obj: Object) -> int:
    text = str(obj["metadata"].get("resourceVersion") or "0")
    return int(text) if text.isdigit() else 0
