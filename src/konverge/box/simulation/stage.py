"""A box at work in a cluster, as a simulation sees it: what its operator writes, and when it has come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from konverge.box.calls.known_answers import KnownAnswer, ScriptedCaller
from konverge.box.file import KINDS, OperatorBox
from konverge.box.providers import ProviderPool
from konverge.box.running import RunningBox
from konverge.box.running.health import PassResult
from konverge.box.simulation.recording import RecordingTransport
from konverge.box.simulation.report import Operation
from konverge.cancellation import to_its_end
from konverge.client import Client, Transport
from konverge.clock import Clock, Entropy
from konverge.crd import crd_manifest, definition_of
from konverge.errors import (
    ConflictError,
    KindNotServedError,
    KonvergeError,
    NotFoundError,
    TooManyRequestsError,
    describe,
)
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition, is_deleting
from konverge.operator import RunOptions
from konverge.runtime import Process

__all__ = ["SimulatedCluster", "Stage", "on_stage"]

_FIELD_MANAGER = "konverge-simulate"
_POLL_SECONDS = 0.02
_SERVED_SECONDS = 30.0
_SEEN_SECONDS = 10.0
_REST_SECONDS = 60.0
_GONE_SECONDS = 30.0
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


class Stage:
    """A running box; `on_stage` makes one.

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
        running: RunningBox,
        recording: RecordingTransport,
        answers: dict[str, KnownAnswer],
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
        return frozenset(pipeline.gvk.kind for pipeline in self._running.pipelines.values())

    @property
    def operations(self) -> list[Operation]:
        """What the operator has done so far."""
        return self._recording.operations

    @property
    def failed_passes(self) -> int:
        """How many passes have failed so far."""
        return sum(found.passes[PassResult.ERROR] for run in self._running.runs for found in run.health.of.values())

    def last_errors(self) -> list[str]:
        """What the last failures were, of each custom resource of the box."""
        found = [health.last_error for run in self._running.runs for health in run.health.of.values()]
        return [text for text in found if text]

    async def apply(self, obj: Object) -> None:
        """Apply an object with its status, and wait until the operator knows, if it looks at such objects."""
        gvk, key = await self._which(GroupVersionKind.of(obj), obj["metadata"])
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
            await _until_served(self.cluster, _kinds_in(obj))
        await self._until_seen(gvk, key, live)

    async def patch(self, gvk: GroupVersionKind, name: str, namespace: str, body: Mapping[str, Any]) -> None:
        """Merge this into an object and its status, and wait until the operator knows."""
        gvk, key = await self._which(gvk, {"name": name, "namespace": namespace})
        client = self.cluster.client
        parts = [({key: value for key, value in body.items() if key != "status"}, "")]
        parts += [({"status": body["status"]}, "status")] if "status" in body else []
        for part, subresource in parts:
            if part:
                live = await client.patch(gvk, key, part, patch_type="merge", subresource=subresource)
                await self._until_seen(gvk, key, live)

    async def delete(self, gvk: GroupVersionKind, name: str, namespace: str) -> None:
        """Delete an object, and wait until the operator knows."""
        gvk, key = await self._which(gvk, {"name": name, "namespace": namespace})
        live = await self.cluster.client.get(gvk, key)
        await self.cluster.client.delete(gvk, key, uid=live["metadata"]["uid"])
        await self._until_seen(gvk, key, None, uid=live["metadata"]["uid"])

    async def find(self, gvk: GroupVersionKind, name: str, namespace: str) -> Object | None:
        """An object as the server has it; None when there is none."""
        try:
            gvk, key = await self._which(gvk, {"name": name, "namespace": namespace})
            return await self.cluster.client.get(gvk, key)
        except (NotFoundError, KindNotServedError):
            return None

    async def rest(self) -> None:
        """Wait until no pass is under way or due.

        Raises:
            konverge.errors.KonvergeError: The operator has ended, or does not come to rest.
        """
        try:
            async with asyncio.timeout(_REST_SECONDS):
                while self._is_busy():
                    await self.pause()
        except TimeoutError:
            raise KonvergeError(f"the operator has not come to rest within {_REST_SECONDS:g} s") from None

    async def another_pass(self) -> list[Operation]:
        """Have one more pass over every custom resource, and answer what was written in it."""
        before = len(self.operations)
        for run in self._running.runs:
            for pipeline in self._running.pipelines.values():
                owners = run.process.owners_of(pipeline.gvk)
                run.process.wake(pipeline.gvk, owners, reason="the simulation asks for another pass")
        await self.rest()
        return self.operations[before:]

    async def conditions(self) -> list[str]:
        """What Ready says of each custom resource."""
        found: list[str] = []
        for run in self._running.runs:
            for pipeline in self._running.pipelines.values():
                for key in sorted(run.process.owners_of(pipeline.gvk)):
                    found += await self._told(pipeline.gvk, key)
        return found

    async def clear(self) -> None:
        """Delete what was applied, the custom resources first, while the operator still finalizes them."""
        owners = [each for each in self._applied if each[0].kind in self.owner_kinds]
        others = [each for each in reversed(self._applied) if each not in owners]
        for gvk, key in (*owners, *others):
            with suppress(NotFoundError, KindNotServedError, ConflictError):
                live = await self.cluster.client.get(gvk, key)
                await self.cluster.client.delete(gvk, key, uid=live["metadata"]["uid"])
            if (gvk, key) in owners:
                await self._until_gone(gvk, key)

    async def _told(self, gvk: GroupVersionKind, key: ObjectKey) -> list[str]:
        live = await self.find(gvk, key.name, key.namespace)
        if live is None:
            return []
        ready = find_condition(live, "Ready")
        said = "no Ready" if ready is None else f"Ready {ready.status} {ready.reason}"
        more = "" if ready is None or ready.status == "True" or not ready.message else f": {ready.message}"
        return [f"{gvk.kind}/{key.name}: {said}{more}"]

    async def _which(self, gvk: GroupVersionKind, metadata: Mapping[str, Any]) -> _Which:
        namespaced = (await self.cluster.client.mapping(gvk)).namespaced
        namespace = str(metadata.get("namespace") or self.cluster.namespace) if namespaced else ""
        return gvk, ObjectKey(namespace, str(metadata["name"]))

    async def _until_seen(self, gvk: GroupVersionKind, key: ObjectKey, live: Object | None, *, uid: str = "") -> None:
        """Wait until the operator's caches know of a change, if they hold such objects at all."""
        with suppress(TimeoutError):  # a cache that does not cover it
            async with asyncio.timeout(_SEEN_SECONDS):
                while not all(self._sees(run.process, gvk, key, live, uid) for run in self._running.runs):
                    await self.pause()

    def _sees(self, process: Process, gvk: GroupVersionKind, key: ObjectKey, live: Object | None, uid: str) -> bool:
        if gvk not in process.informers.running:
            return True
        held = process.held(gvk, key)
        if live is None:
            return held is None or held["metadata"]["uid"] != uid or is_deleting(held)
        return held is not None and _version(held) >= _version(live)

    async def _until_gone(self, gvk: GroupVersionKind, key: ObjectKey) -> None:
        with suppress(TimeoutError):  # what holds it is told by nobody here; the cluster keeps it
            async with asyncio.timeout(_GONE_SECONDS):
                while await self.find(gvk, key.name, key.namespace) is not None:
                    await self.pause()

    def _is_busy(self) -> bool:
        now = self.cluster.clock.monotonic()
        for run in self._running.runs:
            for controller in run.process.controllers.values():
                wait = controller.queue.wait_seconds(now)
                if controller.queue.running or (wait is not None and wait <= 0):
                    return True
        return False

    async def pause(self) -> None:
        """Wait a moment.

        Raises:
            konverge.errors.KonvergeError: The operator has ended meanwhile.
        """
        if self.task is not None and self.task.done():
            self.task.result()
            raise KonvergeError("the operator has ended")
        await self.cluster.clock.sleep(_POLL_SECONDS)


@asynccontextmanager
async def on_stage(
    box: OperatorBox,
    cluster: SimulatedCluster,
    given: Iterable[Object],
    answers: Mapping[str, KnownAnswer],
    *,
    pool: ProviderPool | None = None,
) -> AsyncIterator[Stage]:
    """A box that runs in the cluster, whose definitions it has installed, beside what is given.

    On leaving, the operator is stopped; in a cluster that others use, what was applied is deleted before. So it is for
    one who is cancelled, also while leaving.

    Raises:
        konverge.errors.KonvergeError: The cluster refuses a definition or an object, or the operator ends.
    """
    known = dict(answers)
    running = RunningBox(
        box, pool=pool, make_caller=lambda clock, entropy: ScriptedCaller(known, clock=clock, entropy=entropy)
    )
    client = cluster.client
    with suppress(ConflictError):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace}})
    for cls in running.operator.defined_resources:
        await client.apply(crd_manifest(cls), field_manager=_FIELD_MANAGER)
    await _until_served(cluster, [definition_of(cls).gvk for cls in running.operator.defined_resources])
    recording = RecordingTransport(cluster.transport, cluster.namespace)
    stage = Stage(cluster, running, recording, known)
    try:
        # Only the caches of a cluster of our own are sure to hold nothing of others; events would be theirs to clear.
        options = RunOptions(grace=timedelta(seconds=5), records_events=cluster.is_embedded)
        operator_client = Client(recording, user_agent=f"konverge-simulate ({box.metadata.name})", clock=cluster.clock)
        for obj in given:
            await stage.apply(obj)
        made = {gvk for pipeline in running.pipelines.values() for gvk in pipeline.groups.kinds}
        for gvk in made | {kind.gvk for kind in KINDS.values() if kind.gvk is not None}:
            with suppress(KindNotServedError):
                recording.name_kind((await client.mapping(gvk)).plural, gvk.kind)
        work = running.operator.run(operator_client, options, clock=cluster.clock, entropy=cluster.entropy)
        stage.task = asyncio.create_task(work, name=f"simulated {box.metadata.name}")
        await _until_at_work(stage, running)
        yield stage
    finally:
        await to_its_end(_leave(stage))


async def _leave(stage: Stage) -> None:
    try:
        if not stage.cluster.is_embedded:
            await stage.clear()
    finally:
        if stage.task is not None:
            stage.task.cancel()
            await asyncio.wait([stage.task])


async def _until_at_work(stage: Stage, running: RunningBox) -> None:
    try:
        async with asyncio.timeout(_SERVED_SECONDS):
            while not (running.runs and all(run.process.controllers for run in running.runs)):
                await stage.pause()
    except TimeoutError:
        raise KonvergeError(f"the operator has not started within {_SERVED_SECONDS:g} s") from None


async def _until_served(cluster: SimulatedCluster, kinds: Iterable[GroupVersionKind]) -> None:
    for gvk in kinds:
        problem = ""
        try:
            async with asyncio.timeout(_SERVED_SECONDS):
                while True:
                    try:
                        await cluster.client.list(gvk, namespace=cluster.namespace)
                    except (KindNotServedError, NotFoundError, TooManyRequestsError) as error:
                        problem = describe(error)
                        await cluster.clock.sleep(_POLL_SECONDS * 5)
                    else:
                        break
        except TimeoutError:
            raise KonvergeError(f"{gvk} is not served after {_SERVED_SECONDS:g} s: {problem}") from None


def _kinds_in(definition: Object) -> list[GroupVersionKind]:
    spec = definition.get("spec") or {}
    versions = [each["name"] for each in spec.get("versions") or () if each.get("served")]
    return [GroupVersionKind(spec["group"], version, spec["names"]["kind"]) for version in versions]


def _version(obj: Object) -> int:
    text = str(obj["metadata"].get("resourceVersion") or "0")
    return int(text) if text.isdigit() else 0
