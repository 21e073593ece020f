"""The order of the steps, pair by pair: what a step reads of a later one is refused, and two that swap are noticed.

A pass is run here on the embedded cluster with the steps in an order of the test's, over custom resources of three
fates: one for which everything succeeds, one that is denied, one whose call fails. What a pass did is what it asked of
the cluster, of a service and of a provider, in this order, and the status that it left.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import pytest

from konverge.client import ApplyResponse, Client, PatchType
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.component import ReconcileContext
from konverge.crd import crd_manifest
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge_box._internal.calls import Caller, CallRequest
from konverge_box._internal.calls.call_result import CallResult
from konverge_box._internal.file import find_file_errors, load_box
from konverge_box._internal.runtime import STEP_ORDER, box_reconciler
from konverge_box._internal.runtime.box_reconciler import BoxReconciler
from konverge_box._internal.runtime.pipeline import Pipeline
from konverge_box._internal.runtime.reconcile_state import ReconcileInputs, ReconcileState
from konverge_box._internal.runtime.resource_class import build_resource_class
from konverge_box._internal.runtime.step_order import PipelineStep
from konverge_box.providers import ItemRequest, ProviderPool, ProviderRegistry, ReconcileRequest
from konverge_cluster._internal.testing.polling import eventually
from konverge_cluster.embedded import LocalCluster
from tests.box.providers.fake_cloud import FakeCloud, FakeCloudProvider
from tests.box.running.box_harness import SHELF, build_box_text, build_config_map, build_custom_resource
from tests.box.steps.site_harness import UncachedReader

NAMES = [step.name for step in STEP_ORDER]
PAIRS = list(combinations(NAMES, 2))
ALWAYS = {"apiVersion", "kind", "metadata", "spec", "status"}

READS: dict[str, Callable[[str], dict[str, Any]]] = {
    "normalize": lambda text: {"normalize": {"spec": {"a": text}}},
    "mutation": lambda text: {"mutation": [{"field": "spec.a", "override": text}]},
    "validation": lambda text: {"validation": [{"field": text, "exists": True}]},
    "cross": lambda text: {"cross": [{"apiVersion": "v1", "kind": "Pod", "as": "other", "selector": {"name": text}}]},
    "external": lambda text: {"external": [{"name": "second", "url": f"https://example.com/{text}"}]},
    "forEach": lambda text: {
        "onReconcile": {
            "configMaps": [{**build_config_map("{{ item }}"), "forEach": {"field": text.strip("{} ")}}],
            "services": [{"name": "made", "port": 80}],
        }
    },
    "onCreate": lambda text: {"onCreate": {"configMaps": [build_config_map(a=text)]}},
    "onReconcile": lambda text: {"onReconcile": {"configMaps": [build_config_map(a=text)]}},
    "providers": lambda text: {"providers": {"cloud": [{"kind": "Machine", "name": "b", "spec": {"zone": text}}]}},
}
"""For each step with expressions: a declaration with an expression that reads the given text."""

MAKES: dict[str, tuple[dict[str, Any], str]] = {
    "cross": ({"cross": [{"apiVersion": "v1", "kind": "Node", "as": "seen", "selector": {"name": "x"}}]}, "cross.seen"),
    "external": ({"external": [{"name": "asked", "url": "https://example.com/"}]}, "external.asked"),
    "onCreate": ({"onCreate": {"secrets": [{"name": "made"}]}}, "children.secret"),
    "onReconcile": ({"onReconcile": {"services": [{"name": "made", "port": 80}]}}, "children.service"),
    "providers": ({"providers": {"cloud": [{"kind": "Machine", "name": "m"}]}}, "providers.cloud.m"),
}
"""For each step whose result has a name: a declaration of it, and the name."""

MAKES_NO_NAME = {
    "mutation": "it changes spec and labels, which all steps know: a step before it has them as they were",
    "validation": "it lets the object pass or not",
    "forEach": "its items are known inside of the resource that is repeated, and nowhere else",
    "marks": "it notes what was made once, for the next pass",
    "status": "its fields are in the status of the next pass",
    "report": "its conditions are in the status of the next pass",
    "laterGroups": "its objects are children, as those of onReconcile; no other step before it reads children",
}
"""For the other steps: the reason why no expression can read them too early; normalize is the first."""

HAS_NO_EXPRESSIONS = {
    "marks": "nothing of it is declared",
    "status": "nothing with a name is made after it",
}

RUNS_LATER = {("onCreate", "providers"), ("onReconcile", "providers")}
"""The steps whose groups may read the later step: such groups run in the step laterGroups."""


def refusals() -> list[tuple[str, str]]:
    return [pair for pair in PAIRS if pair[0] in READS and pair[1] in MAKES and pair not in RUNS_LATER]


def test_each_pair_is_refused_when_it_is_loaded_or_it_is_known_why_not() -> None:
    left = [pair for pair in PAIRS if pair not in refusals()]

    assert len(PAIRS) == len(NAMES) * (len(NAMES) - 1) / 2
    unknown = [pair for pair in left if pair[1] not in MAKES_NO_NAME and pair[0] not in HAS_NO_EXPRESSIONS]
    assert set(unknown) == RUNS_LATER
    assert {after for _, after in refusals()} == set(MAKES)
    assert {before for before, _ in refusals()} == set(READS) - {"providers", "onReconcile"}  # none with a name follows


@pytest.mark.parametrize(("before", "after"), refusals(), ids="-".join)
def test_an_expression_that_reads_what_a_later_step_makes_is_refused_with_its_path(before: str, after: str) -> None:
    made, name = MAKES[after]
    reading = READS[before]("{{ " + name + ".any }}")
    (step,) = reading

    found = [
        each
        for each in find_file_errors(build_box_text(shelf=build_custom_resource("Shelf", **{**made, **reading})))
        if name in str(each)
    ]

    assert [each.path.startswith(f"spec.crds.shelf.{step}") for each in found] == [True]
    assert name.partition(".")[0] in found[0].message


def build_scope_config_map(name: str) -> dict[str, Any]:
    """Return a ConfigMap with everything that is known at this step."""
    return build_config_map(name, trace="{{ spec.trace }}/{{ cross.seen.data.word }}/{{ external.asked.word }}")


BOX = build_box_text(
    shelf=build_custom_resource(
        "Shelf",
        normalize={"spec": {"trace": "{{ spec.trace }}n"}},
        mutation=[{"field": "spec.trace", "override": "{{ spec.trace }}m"}],
        validation=[
            {"field": "spec.trace", "prefix": "-", "action": "warn", "message": "{{ spec.trace }}v"},
            {"field": "spec.trace", "notPrefix": "bad"},
        ],
        cross=[{"apiVersion": "v1", "kind": "ConfigMap", "as": "seen", "selector": {"name": "{{ spec.trace }}"}}],
        external=[{"name": "asked", "url": "https://example.com/{{ spec.trace }}/{{ cross.seen.data.word }}"}],
        onCreate={"configMaps": [build_scope_config_map("{{ metadata.name }}-created")]},
        onReconcile=[
            {
                "configMaps": [
                    {
                        **build_scope_config_map("{{ metadata.name }}-{{ item }}"),
                        "forEach": {"field": "external.asked.items"},
                    }
                ],
                "jobs": [{"name": "{{ metadata.name }}-job", "image": "a:1"}],
            },
            {
                "name": "late",
                "secrets": [
                    {
                        "name": "{{ metadata.name }}-late",
                        "stringData": {"id": "{{ providers.cloud.m.outputs.id }}", "job": "{{ children.job.kind }}"},
                    }
                ],
            },
        ],
        providers={"cloud": [{"kind": "Machine", "name": "m", "spec": {"zone": "{{ external.asked.word }}"}}]},
        status={
            "fields": [
                {"path": "trace", "value": "{{ spec.trace }}"},
                {"path": "zone", "value": "{{ cross.seen.data.word }}{{ external.asked.word }}"},
                {"path": "made", "value": "{{ children.configMaps | len }}"},
                {"path": "machine", "value": "{{ providers.cloud.m.state }}"},
                {"path": "late", "value": "{{ children.secrets | len }}"},
            ]
        },
    )
).replace("spec:\n", "spec:\n  providers: {cloud: {}}\n", 1)

FATES = {"good": "good", "bad": "bad", "lost": "lost"}
"""Names of custom resources, with their specs."""


class Journal(UncachedReader):
    """The client of a reconcile, which records its requests."""

    def __init__(self, client: Client, entries: list[str]) -> None:
        super().__init__(client)
        self.client = client
        self.entries = entries

    def without_read_tracking(self) -> Journal:
        return self

    def note(self, *words: object) -> None:
        self.entries.append(" ".join(map(str, words)))

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        self.note("get", gvk.kind, key.name)
        return await super().get(gvk, key, live=live)

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        return await super().mapping(gvk)

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResponse:
        self.note("apply", obj["kind"], obj["metadata"]["name"], json.dumps(obj.get("data")))
        return await self.client.apply(obj, field_manager=field_manager)

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        self.note("update", obj["kind"], obj["metadata"]["name"], subresource)
        return await self.client.update(obj, subresource=subresource)

    async def patch(self, gvk: GroupVersionKind, key: ObjectKey, body: Any, *, patch_type: PatchType) -> Object:
        self.note("patch", gvk.kind, key.name, sorted(body["metadata"].get("annotations", ())))
        return await self.client.patch(gvk, key, body, patch_type=patch_type)

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str, propagation: str = "Background") -> None:
        raise AssertionError("nothing is to be deleted here")


@dataclass
class Context(ReconcileContext):
    """The context of a reconcile, as the runtime creates it."""

    @property
    def cluster(self) -> Any:
        return self.client


class Service(Caller):
    """A service that responds with the work to do, or not at all."""

    def __init__(self, entries: list[str]) -> None:
        super().__init__(environment={})
        self.entries = entries

    async def call(self, request: CallRequest) -> CallResult:
        self.entries.append(f"call {request.url}")
        if "lost" in str(request.url):
            return CallResult(error="no server listens")
        return CallResult(fields={"status": 200, "json": {"word": "z", "items": ["a", "b"]}})


class ShelfNamespace:
    """Shelves with all outcomes on an embedded cluster, and reconciles of them in any order of steps."""

    def __init__(self, client: Client, clock: SimulatedClock) -> None:
        self.client = client
        self.clock = clock
        self.rounds = 0

    async def outcome(self, order: tuple[PipelineStep, ...]) -> dict[str, Any]:
        """Reconcile a new shelf of each outcome with that order, and return the effects."""
        self.rounds += 1
        namespace = f"round-{self.rounds}"
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        for word in ("goodnm", "lostnm", "badnm"):
            metadata = {"name": word, "namespace": namespace}
            await self.client.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"word": "w"}}
            )
        return {name: await self._reconcile_once(order, name, namespace, trace) for name, trace in FATES.items()}

    async def _reconcile_once(self, order: tuple[PipelineStep, ...], name: str, namespace: str, trace: str) -> Any:
        entries: list[str] = []
        owner = await self.client.create(
            {
                "apiVersion": SHELF.api_version,
                "kind": SHELF.kind,
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"trace": trace},
            }
        )
        # The condition of a group of an earlier file: its writers are read from the server.
        stale = {
            "type": "OldReady",
            "status": "True",
            "reason": "Healthy",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        owner["status"] = {"conditions": [{**stale, "message": ""}]}
        owner = await self.client.update(owner, subresource="status")
        cloud = FakeCloudProvider(FakeCloud())

        def record_call(request: ItemRequest) -> None:
            assert isinstance(request, ReconcileRequest)
            entries.append(f"provider {request.name} {request.spec.zone}")

        cloud.during = record_call
        pool = ProviderPool(ProviderRegistry.from_providers([cloud]))
        ctx: Any = Context(client=Journal(self.client, entries), owner=owner, clock=self.clock)
        async with Service(entries) as caller:
            inputs = ReconcileInputs(
                pipeline=Pipeline(load_box(BOX), "shelf", pool),
                ctx=ctx,
                caller=caller,
                entropy=SeededEntropy(3),
                is_unique=lambda path, value: True,
                now=self.clock.now(),
            )
            one = BoxReconciler(inputs)
            error = ""
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(box_reconciler, "STEP_ORDER", order)
                try:
                    await one.reconcile()
                except Exception as failure:  # noqa: BLE001  # a wrong order can raise any error
                    error = str(failure)
        await pool.close()
        status = (await self.client.get(SHELF, ObjectKey(namespace, name)))["status"]
        return _without_times({"did": entries, "status": status, "error": error})


def _without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_times(each) for name, each in value.items() if name != "lastTransitionTime"}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


@asynccontextmanager
async def shelves() -> AsyncIterator[ShelfNamespace]:
    clock = SimulatedClock()
    async with (
        LocalCluster(clock=clock, entropy=SeededEntropy()) as cluster,
        Client(cluster.transport(), clock=clock) as client,
    ):
        await client.create(crd_manifest(build_resource_class(load_box(BOX).spec.crds["shelf"])))

        async def is_served() -> bool:
            await client.list(SHELF)
            return True

        await eventually(is_served, clock=clock)
        yield ShelfNamespace(client, clock)


def swap_steps(one: str, other: str) -> tuple[PipelineStep, ...]:
    steps = {step.name: step for step in STEP_ORDER}
    steps[one], steps[other] = steps[other], steps[one]
    return tuple(steps.values())


@pytest.mark.slow
@pytest.mark.anyio
async def test_any_two_steps_that_swap_make_another_pass_of_it() -> None:
    async with shelves() as there:
        usual = await there.outcome(STEP_ORDER)

        assert await there.outcome(STEP_ORDER) == usual
        assert [pair for pair in PAIRS if await there.outcome(swap_steps(*pair)) == usual] == []


@pytest.mark.anyio
async def test_the_scope_of_a_step_has_the_names_of_earlier_steps_alone() -> None:
    known: dict[str, set[str]] = {}

    def record_scope(step: PipelineStep) -> PipelineStep:
        async def run(inputs: ReconcileInputs, state: ReconcileState) -> None:
            known.setdefault(step.name, set(state.scope.names) - ALWAYS)
            await step.run(inputs, state)

        return replace(step, run=run)

    async with shelves() as there:
        await there.outcome(tuple(record_scope(step) for step in STEP_ORDER))

    made = {"cross": {"cross"}, "external": {"external"}, "providers": {"providers"}, "status": {"children"}}
    earlier = {
        name: set().union(*(made.get(each, set()) for each in NAMES[:place])) for place, name in enumerate(NAMES)
    }
    assert known == earlier
