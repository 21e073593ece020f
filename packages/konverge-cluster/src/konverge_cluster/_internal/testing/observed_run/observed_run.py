"""The run: sample owners are created, live for an hour, and are deleted, on one embedded cluster in simulated time."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from konverge._internal.cancellation import await_shielded
from konverge._internal.cli.source_files import list_module_files
from konverge._internal.client import Client
from konverge._internal.crd import build_sample_objects, crd_manifest, find_definition
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.message_text import to_printable
from konverge._internal.operator import Operator, RunOptions
from konverge._internal.operator.observed_access import Observation, ObservedAccess
from konverge._internal.operator.placeholder_definitions import install_placeholders
from konverge.clock import SeededEntropy, SimulatedClock, SimulatedLoop
from konverge.errors import ApiError, KonvergeError, format_error
from konverge_cluster._internal.embedded import LocalCluster
from konverge_cluster._internal.testing.cluster import Cluster
from konverge_cluster._internal.testing.cluster_servers import EmbeddedServer
from konverge_cluster._internal.testing.observed_run.function_runs import FunctionRuns, wrap_functions
from konverge_cluster._internal.testing.observed_run.reached_lines import AwaitingLine, LineRecorder, find_unreached
from konverge_cluster._internal.testing.observed_run.request_recorder import RecordingTransport, build_accesses

__all__ = ["observe_operator"]

_NAMESPACE = "konverge-observed"
_SAMPLES = 16
_LIFE = timedelta(hours=1)
_DELETION = timedelta(minutes=30)
_MAX_DELAY = timedelta(days=1)
_MAX_LINES = 5
_MAX_ERROR = 200
_DEFINITION = "CustomResourceDefinition"
_ADVICE = "or declare its access with operator.uses(...)"


def observe_operator(
    operator: Operator,
    objects: Sequence[Object],
    *,
    in_namespaces: bool = False,
    records_events: bool = True,
    modules: Iterable[object] = (),
) -> Observation:
    """Run the operator for sample owners, and return the access that it used.

    The functions of the operator are wrapped from then on.

    Args:
        operator: The operator.
        objects: Owners from files, and other objects that exist before them. Kinds without an owner among them get
            samples from their schema.
        in_namespaces: True if the operator watches only the namespaces of its owners, each of which has a role.
        records_events: True if the operator records events.
        modules: The imported modules, for the files of the author.
    """
    recorder = LineRecorder(list_module_files(modules))
    run = _ObservedRun(operator, objects, in_namespaces, records_events)
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner, recorder.record():
        accesses = runner.run(run.observe())
    return Observation(tuple(accesses), tuple(run.list_gaps(sorted(find_unreached(recorder)))))


class _ObservedRun:
    """One run of an operator."""

    def __init__(
        self, operator: Operator, objects: Sequence[Object], in_namespaces: bool, records_events: bool
    ) -> None:
        self._operator = operator
        self._in_namespaces = in_namespaces
        self._records_events = records_events
        self._functions = wrap_functions(operator.registered)
        self._kinds = {find_definition(cls).gvk: cls for cls in operator.custom_resources}
        self._definitions = [obj for obj in objects if obj.get("kind") == _DEFINITION]
        given = [copy.deepcopy(obj) for obj in objects if obj.get("kind") not in (_DEFINITION, "Namespace")]
        self._owners = [obj for obj in given if self._find_class(obj) is not None]
        self._surroundings = [obj for obj in given if _find_gvk(obj) is not None and self._find_class(obj) is None]
        self._add_samples()
        self._rejections: dict[type, str] = {}
        self._problem = ""

    def _find_class(self, obj: Object) -> type[Any] | None:
        gvk = _find_gvk(obj)
        return None if gvk is None else self._kinds.get(gvk)

    def _add_samples(self) -> None:
        given = {_find_gvk(owner) for owner in self._owners}
        number = 0
        for gvk, cls in self._kinds.items():
            if gvk in given or cls not in self._operator.defined_resources:
                continue
            for sample in build_sample_objects(find_definition(cls), _SAMPLES).objects:
                number += 1
                metadata = {"name": f"sample-{number}"}
                if find_definition(cls).namespaced:
                    metadata["namespace"] = f"sample-{number}"
                self._owners.append({**sample, "metadata": metadata})

    async def observe(self) -> list[ObservedAccess]:
        """Run the operator, and return the access that it used, sorted."""
        clock = SimulatedClock()
        async with LocalCluster(clock=clock, entropy=SeededEntropy()) as local:
            with EmbeddedServer(local, clock) as server:
                async with Cluster(server, _NAMESPACE) as cluster:
                    await self._prepare(cluster)
                    transport = RecordingTransport(local.transport())
                    async with Client(transport, user_agent=self._operator.name, clock=clock) as client:
                        await self._run(cluster, client)
                    namespaces = self._list_namespaces() if self._in_namespaces else None
                    return build_accesses(transport.requests, await cluster.client.mappings(), namespaces)

    async def _prepare(self, cluster: Cluster) -> None:
        for obj in (*self._owners, *self._surroundings):
            self._complete_metadata(obj)
        await cluster.install(*self._definitions, *map(crd_manifest, self._operator.defined_resources))
        await install_placeholders(cluster.client, self._operator.registered.assumed_kinds)
        for namespace in self._list_namespaces(self._surroundings):
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await cluster.client.apply(manifest, field_manager=_NAMESPACE)
        for obj in self._surroundings:
            await self._create(cluster, obj)

    def _complete_metadata(self, obj: Object) -> None:
        metadata = dict(obj["metadata"]) if isinstance(obj.get("metadata"), dict) else {}
        cls = self._find_class(obj)
        if cls is not None and find_definition(cls).namespaced:
            metadata.setdefault("namespace", "default")
        for name in ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"):
            metadata.pop(name, None)
        obj["metadata"] = metadata

    def _list_namespaces(self, others: Iterable[Object] = ()) -> list[str]:
        found = {obj["metadata"].get("namespace") for obj in (*self._owners, *others)}
        return sorted({namespace for namespace in found if isinstance(namespace, str) and namespace})

    async def _create(self, cluster: Cluster, obj: Object) -> bool:
        try:
            if (
                "namespace" not in obj["metadata"]
                and (await cluster.client.mapping(GroupVersionKind.of(obj))).namespaced
            ):
                obj["metadata"]["namespace"] = "default"
            await cluster.client.create(obj)
        except KonvergeError as error:
            cls = self._find_class(obj)
            problem = to_printable(" ".join(format_error(error).split()), _MAX_ERROR)
            if cls is None:
                self._problem = self._problem or problem
            else:
                self._rejections.setdefault(cls, problem)
            return False
        return True

    async def _run(self, cluster: Cluster, client: Client) -> None:
        namespaces = tuple(self._list_namespaces()) if self._in_namespaces else ()
        options = RunOptions(namespaces, records_events=self._records_events, diagnoses=False)
        running = asyncio.create_task(
            self._operator.run(client, options, clock=cluster.clock, entropy=SeededEntropy()), name=self._operator.name
        )
        try:
            created = [owner for owner in self._owners if await self._create(cluster, owner)]
            delays = [task.initial_delay or timedelta(minutes=1) for task in self._operator.registered.tasks]
            await self._wait(cluster, running, _LIFE + min(max(delays, default=timedelta(0)), _MAX_DELAY))
            for owner in created:
                with suppress(ApiError):
                    await cluster.client.delete(GroupVersionKind.of(owner), ObjectKey.of(owner))
            await self._wait(cluster, running, _DELETION)
        finally:
            running.cancel()
            await await_shielded(asyncio.wait([running]))

    async def _wait(self, cluster: Cluster, running: asyncio.Task[None], time: timedelta) -> None:
        """Let the operator run for some time; it may end before."""
        await asyncio.wait([running], timeout=time.total_seconds())
        if running.done() and not running.cancelled() and (error := running.exception()) is not None:
            self._problem = f"the operator ended: {to_printable(format_error(error), _MAX_ERROR)}"

    def list_gaps(self, unreached: Sequence[AwaitingLine]) -> Iterator[str]:
        """Yield one sentence for each function that did not run, and for lines that were not reached."""
        for function in self._functions:
            if not function.begun:
                yield f"{function.owner.__name__}: {function.name} was not run: {self._explain(function)}; {_ADVICE}"
        errors = {function.name: function.error for function in self._functions if function.error}
        by_function: dict[tuple[str, str], list[AwaitingLine]] = {}
        for line in unreached:
            by_function.setdefault((line.file, line.function), []).append(line)
        for (_, name), lines in by_function.items():
            listed = ", ".join(f"line {line.line} ({line.text})" for line in lines[:_MAX_LINES])
            more = f" and {len(lines) - _MAX_LINES} more" if len(lines) > _MAX_LINES else ""
            error = f"; it failed: {errors[name]}" if name in errors else ""
            yield (
                f"{name}: no sample owner reached {listed}{more}{error}; give an owner, and the objects that it needs, "
                f"with --sample, {_ADVICE}"
            )

    def _explain(self, function: FunctionRuns) -> str:
        definition = find_definition(function.owner)
        if function.owner in self._rejections:
            return f"the server rejects the samples ({self._rejections[function.owner]}): give one with --sample"
        if self._problem:
            return self._problem
        if not any(_find_gvk(owner) == definition.gvk for owner in self._owners):
            return f"there is no sample of {definition.gvk}: give one with --sample"
        if function.purpose == "finalizer":
            return f"no sample of {definition.gvk} had the finalizer when it was deleted: give one with --sample"
        return f"nothing called it for {len(self._owners)} samples: give another one with --sample"


def _find_gvk(obj: Object) -> GroupVersionKind | None:
    if isinstance(obj.get("apiVersion"), str) and isinstance(obj.get("kind"), str):
        return GroupVersionKind.of(obj)
    return None
