"""A box at work in a cluster, as a simulation sees it: what its operator writes, and when it has come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from konverge.cancellation import await_shielded
from konverge.client import Client, Transport
from konverge.clock import Clock, Entropy
from konverge.crd import crd_manifest, find_definition
from konverge.errors import (
    ConflictError,
    KindNotServedError,
    KonvergeError,
    NotFoundError,
    TooManyRequestsError,
    format_error,
)
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition, is_deleting
from konverge.operator import RunOptions
from konverge.runtime import Process
from konverge_box.calls.scripted_answers import ScriptedAnswer, ScriptedCaller
from konverge_box.file import KINDS, OperatorBox
from konverge_box.providers import ProviderPool
from konverge_box.runtime import BoxController
from konverge_box.runtime.box_health import BoxReconcileResult
from konverge_box.simulation.recording_transport import RecordingTransport
from konverge_box.simulation.step_report import RecordedOperation

__all__ = ["SimulatedBox", "SimulatedCluster", "start_simulated_box"]

_FIELD_MANAGER = "konverge-simulate"
_POLL_SECONDS = 0.02
_SERVED_TIMEOUT_SECONDS = 30.0
_CACHE_TIMEOUT_SECONDS = 10.0
_IDLE_TIMEOUT_SECONDS = 60.0
_DELETION_TIMEOUT_SECONDS = 30.0
_CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

_Which = tuple[GroupVersionKind, ObjectKey]


@dataclass(frozen=True)
class SimulatedCluster:
    """Where a simulation runs.

    Args:
        client: An administrator's.
        transport: Another connection, for the operator.
        clock: The cluster's time.
        entropy: The operator's randomness.
        namespace: Where objects go that name none; it is made if it is not there.
        is_embedded: Its time is simulated, and nobody else uses it: hours pass at once, and nothing is cleaned up.
    """

    client: Client
    transport: Transport
    clock: Clock
    entropy: Entropy
    namespace: str
    is_embedded: bool


class SimulatedBox:
    """A running box; `start_simulated_box` makes one.

    Args:
        cluster: The cluster.
        running: The box at work.
        recording: What its operator sends.
        answers: What calls are answered.

    Attributes:
        answers: What calls are answered from now on, by name.
        task: Its operator; None before it is started.
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
        self._applied: list[_Which] = []

    @property
    def owner_kinds(self) -> frozenset[str]:
        """The kinds of the box's custom resources."""
        return frozenset(pipeline.gvk.kind for pipeline in self._running.active.pipelines.values())

    @property
    def operations(self) -> list[RecordedOperation]:
        """What the operator has done so far."""
        return self._recording.operations

    @property
    def failed_reconciles(self) -> int:
        """How many passes have failed so far."""
        return sum(
            found.results[BoxReconcileResult.ERROR]
            for run in self._running.active.runs
            for found in run.health.resources.values()
        )

    def list_last_errors(self) -> list[str]:
        """What the last failures were, of each custom resource of the box."""
        found = [health.last_error for run in self._running.active.runs for health in run.health.resources.values()]
        return [text for text in found if text]

    async def apply(self, obj: Object) -> None:
        """Apply an object with its status, and wait until the operator knows, if it looks at such objects."""
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
        """Merge this into an object and its status, and wait until the operator knows."""
        gvk, key = await self._resolve_object(gvk, {"name": name, "namespace": namespace})
        client = self.cluster.client
        parts = [({key: value for key, value in body.items() if key != "status"}, "")]
        parts += [({"status": body["status"]}, "status")] if "status" in body else []
        for part, subresource in parts:
            if part:
                live = await client.patch(gvk, key, part, patch_type="merge", subresource=subresource)
                await self._wait_for_caches(gvk, key, live)

    async def delete(self, gvk: GroupVersionKind, name: str, namespace: str) -> None:
        """Delete an object, and wait until the operator knows."""
        gvk, key = await self._resolve_object(gvk, {"name": name, "namespace": namespace})
        live = await self.cluster.client.get(gvk, key)
        await self.cluster.client.delete(gvk, key, uid=live["metadata"]["uid"])
        await self._wait_for_caches(gvk, key, None, uid=live["metadata"]["uid"])

    async def find(self, gvk: GroupVersionKind, name: str, namespace: str) -> Object | None:
        """An object as the server has it; None when there is none."""
        try:
            gvk, key = await self._resolve_object(gvk, {"name": name, "namespace": namespace})
            return await self.cluster.client.get(gvk, key)
        except (NotFoundError, KindNotServedError):
            return None

    async def wait_until_idle(self) -> None:
        """Wait until no pass is under way or due.

        Raises:
            konverge.errors.KonvergeError: The operator has ended, or does not come to rest.
        """
        try:
            async with asyncio.timeout(_IDLE_TIMEOUT_SECONDS):
                while self._is_busy():
                    await self.sleep_briefly()
        except TimeoutError:
            raise KonvergeError(f"the operator has not come to rest within {_IDLE_TIMEOUT_SECONDS:g} s") from None

    async def reconcile_all(self) -> list[RecordedOperation]:
        """Have one more pass over every custom resource, and answer what was written in it."""
        before = len(self.operations)
        for run in self._running.active.runs:
            for pipeline in self._running.active.pipelines.values():
                owners = run.process.list_owners(pipeline.gvk)
                run.process.enqueue(pipeline.gvk, owners, reason="the simulation asks for another pass")
        await self.wait_until_idle()
        return self.operations[before:]

    async def describe_ready_conditions(self) -> list[str]:
        """What Ready says of each custom resource."""
        found: list[str] = []
        for run in self._running.active.runs:
            for pipeline in self._running.active.pipelines.values():
                for key in sorted(run.process.list_owners(pipeline.gvk)):
                    found += await self._describe_ready(pipeline.gvk, key)
        return found

    async def delete_applied(self) -> None:
        """Delete what was applied, the custom resources first, while the operator still finalizes them."""
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
        said = "no Ready" if ready is None else f"Ready {ready.status} {ready.reason}"
        more = "" if ready is None or ready.status == "True" or not ready.message else f": {ready.message}"
        return [f"{gvk.kind}/{key.name}: {said}{more}"]

    async def _resolve_object(self, gvk: GroupVersionKind, metadata: Mapping[str, Any]) -> _Which:
        namespaced = (await self.cluster.client.mapping(gvk)).namespaced
        namespace = str(metadata.get("namespace") or self.cluster.namespace) if namespaced else ""
        return gvk, ObjectKey(namespace, str(metadata["name"]))

    async def _wait_for_caches(
        self, gvk: GroupVersionKind, key: ObjectKey, live: Object | None, *, uid: str = ""
    ) -> None:
        """Wait until the operator's caches know of a change, if they hold such objects at all."""
        with suppress(TimeoutError):  # a cache that does not cover it
            async with asyncio.timeout(_CACHE_TIMEOUT_SECONDS):
                while not all(self._has_seen(run.process, gvk, key, live, uid) for run in self._running.active.runs):
                    await self.sleep_briefly()

    def _has_seen(self, process: Process, gvk: GroupVersionKind, key: ObjectKey, live: Object | None, uid: str) -> bool:
        if gvk not in process.informers.running:
            return True
        held = process.get_cached(gvk, key)
        if live is None:
            return held is None or held["metadata"]["uid"] != uid or is_deleting(held)
        return held is not None and _get_version(held) >= _get_version(live)

    async def _wait_for_deletion(self, gvk: GroupVersionKind, key: ObjectKey) -> None:
        with suppress(TimeoutError):  # what holds it is told by nobody here; the cluster keeps it
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
        """Wait a moment.

        Raises:
            konverge.errors.KonvergeError: The operator has ended meanwhile.
        """
        if self.task is not None and self.task.done():
            self.task.result()
            raise KonvergeError("the operator has ended")
        await self.cluster.clock.sleep(_POLL_SECONDS)


@asynccontextmanager
async def start_simulated_box(
    box: OperatorBox,
    cluster: SimulatedCluster,
    given: Iterable[Object],
    answers: Mapping[str, ScriptedAnswer],
    *,
    pool: ProviderPool | None = None,
) -> AsyncIterator[SimulatedBox]:
    """A box that runs in the cluster, whose definitions it has installed, beside what is given.

    On leaving, the operator is stopped; in a cluster that others use, what was applied is deleted before. So it is for
    one who is cancelled, also while leaving.

    Raises:
        konverge.errors.KonvergeError: The cluster refuses a definition or an object, or the operator ends.
    """
    known = dict(answers)
    running = BoxController(
        box, pool=pool, make_caller=lambda clock, entropy: ScriptedCaller(known, clock=clock, entropy=entropy)
    )
    client = cluster.client
    with suppress(ConflictError):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace}})
    for cls in running.operator.defined_resources:
        await client.apply(crd_manifest(cls), field_manager=_FIELD_MANAGER)
    await _wait_until_served(cluster, [find_definition(cls).gvk for cls in running.operator.defined_resources])
    recording = RecordingTransport(cluster.transport, cluster.namespace)
    stage = SimulatedBox(cluster, running, recording, known)
    try:
        # Only the caches of a cluster of our own are sure to hold nothing of others; events would be theirs to clear.
        options = RunOptions(grace=timedelta(seconds=5), records_events=cluster.is_embedded)
        operator_client = Client(recording, user_agent=f"konverge-simulate ({box.metadata.name})", clock=cluster.clock)
        for obj in given:
            await stage.apply(obj)
        made = {gvk for pipeline in running.active.pipelines.values() for gvk in pipeline.groups.kinds}
        for gvk in made | {kind.gvk for kind in KINDS.values() if kind.gvk is not None}:
            with suppress(KindNotServedError):
                recording.register_kind((await client.mapping(gvk)).plural, gvk.kind)
        work = running.operator.run(operator_client, options, clock=cluster.clock, entropy=cluster.entropy)
        stage.task = asyncio.create_task(work, name=f"simulated {box.metadata.name}")
        await _wait_until_started(stage, running)
        yield stage
    finally:
        await await_shielded(_stop_box(stage))


async def _stop_box(stage: SimulatedBox) -> None:
    try:
        if not stage.cluster.is_embedded:
            await stage.delete_applied()
    finally:
        if stage.task is not None:
            stage.task.cancel()
            await asyncio.wait([stage.task])


async def _wait_until_started(stage: SimulatedBox, running: BoxController) -> None:
    try:
        async with asyncio.timeout(_SERVED_TIMEOUT_SECONDS):
            while not (running.active.runs and all(run.process.controllers for run in running.active.runs)):
                await stage.sleep_briefly()
    except TimeoutError:
        raise KonvergeError(f"the operator has not started within {_SERVED_TIMEOUT_SECONDS:g} s") from None


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
            raise KonvergeError(f"{gvk} is not served after {_SERVED_TIMEOUT_SECONDS:g} s: {problem}") from None


def _list_kinds(definition: Object) -> list[GroupVersionKind]:
    spec = definition.get("spec") or {}
    versions = [each["name"] for each in spec.get("versions") or () if each.get("served")]
    return [GroupVersionKind(spec["group"], version, spec["names"]["kind"]) for version in versions]


def _get_version(obj: Object) -> int:
    text = str(obj["metadata"].get("resourceVersion") or "0")
    return int(text) if text.isdigit() else 0
