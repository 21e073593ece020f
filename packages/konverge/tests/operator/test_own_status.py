"""The status of an author under `manages`: its fields, its single write, and statuses that cannot be written."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Literal, cast

import click
import pytest

from konverge import Condition, Metadata, Operator, OwnerContext, Result, custom_resource
from konverge._internal.cli.diff_text import format_diff, format_status_change
from konverge._internal.cli.explain_text import format_explanation
from konverge._internal.operator.dry_run import dry_run_owner
from konverge.component import Component, ComponentBuilder
from konverge.crd import crd_manifest, encode, find_definition, list_map
from konverge.errors import BuildError
from konverge.kube import GroupVersionKind, Object, find_condition
from konverge.operator import RunOptions, StatusFunction
from konverge.prerequisites import depends_on
from konverge.primitives import ConfigMap
from konverge_cluster.testing import Cluster
from tests.operator.sample_operator import CONFIG_MAP, OperatorHarness, Shop

pytestmark = pytest.mark.anyio


@dataclass
class StoreSpec:
    greeting: str = "Hello"


@dataclass
class StoreStatus:
    phase: Literal["New", "Open"] = "New"
    banner: str | None = None
    visitors: int | None = None


@custom_resource(group="operator.konverge.test", version="v1")
@dataclass
class Store:
    metadata: Metadata
    spec: StoreSpec
    status: StoreStatus = field(default_factory=StoreStatus)


STORE = find_definition(Store).gvk
EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
THEIRS = Condition("Theirs", "True", "Kept", "")


def settings(store: Store) -> Component:
    obj = {"metadata": _metadata(store, "settings"), "data": {"greeting": store.spec.greeting}}
    return ComponentBuilder("settings", condition_type="SettingsReady").with_resource(ConfigMap(obj)).build()


def signs(store: Store) -> Component:
    obj = {"metadata": _metadata(store, "signs")}
    return (
        ComponentBuilder("signs", condition_type="SignsReady")
        .with_resource(ConfigMap(obj))
        .with_prerequisite(depends_on("Painted"))
        .build()
    )


def _metadata(store: Store, part: str) -> Object:
    return {"name": f"{store.metadata.name}-{part}", "namespace": store.metadata.namespace}


def report(store: Store, ctx: OwnerContext) -> StoreStatus:
    live = ctx.components["settings"].find("v1/ConfigMap")
    banner = None if live is None else live["data"]["greeting"]
    return StoreStatus(phase="Open" if ctx.components.are_ready else "New", banner=banner)


class StoreHarness(OperatorHarness):
    """A cluster with stores in it."""

    async def create(self, name: str = "corner", **spec: Any) -> None:
        await self.client.create(encode(Store(Metadata(name=name, namespace=self.namespace), StoreSpec(**spec))))

    async def owner(self, name: str = "corner") -> Object:
        return await self.client.get(STORE, self.key(name))

    async def wait_for(self, holds: Callable[[dict[str, Any]], object], describe: str) -> dict[str, Any]:
        async def status() -> dict[str, Any] | None:
            found: dict[str, Any] = (await self.owner()).get("status") or {}
            return found if holds(found) else None

        return await self.cluster.eventually(status, describe=describe)

    async def wait_for_reason(self, reason: str, condition_type: str = "Ready") -> Condition:
        return await self.wait_for_condition("corner", reason, condition_type, STORE)

    def status_writes(self) -> int:
        return sum(request.path.endswith("/status") for request in self.writes())


@pytest.fixture
async def stores(cluster: Cluster) -> StoreHarness:
    harness = StoreHarness(cluster)
    await cluster.install(crd_manifest(Store))
    return harness


def managing(*parts: Any, status: StatusFunction[Store] | None = report) -> Operator:
    operator = Operator("stores")
    operator.manages(Store, *parts, status=status)
    return operator


def own_fields(status: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in status.items() if name != "conditions"}


async def test_fields_and_conditions_are_written_at_once_with_the_generation(stores: StoreHarness) -> None:
    async with stores.running_operator(managing(settings)):
        await stores.create(greeting="Ahoy")
        status = await stores.wait_for(lambda status: status.get("phase") == "Open", "the store is open")
        await stores.wait_until_quiet()

    assert own_fields(status) == {"observedGeneration": 1, "phase": "Open", "banner": "Ahoy"}
    assert stores.status_writes() == 1


async def test_a_change_is_followed_and_a_steady_owner_sends_nothing(stores: StoreHarness) -> None:
    async with stores.running_operator(managing(settings)):
        await stores.create()
        await stores.wait_for(lambda status: status.get("phase") == "Open", "the store is open")
        await stores.client.patch(STORE, stores.key("corner"), {"spec": {"greeting": "Bye"}}, patch_type="merge")
        status = await stores.wait_for(lambda status: status.get("banner") == "Bye", "the banner follows")
        await stores.wait_until_quiet()
        writes = len(stores.writes())

    assert status["observedGeneration"] == 2
    async with stores.running_operator(managing(settings)):
        await stores.wait_until_quiet()
    assert len(stores.writes()) == writes, "after a restart too"


async def test_a_field_that_becomes_none_is_removed_and_fields_of_others_stay(stores: StoreHarness) -> None:
    async with stores.running_operator(managing(settings)):
        await stores.create()
        await stores.wait_for(lambda status: status.get("banner") == "Hello", "the banner is set")

    def bare(store: Store, ctx: OwnerContext) -> StoreStatus:
        return StoreStatus(phase="Open")

    owner = await stores.owner()
    owner["status"]["conditions"].append({**THEIRS.to_object(), "lastTransitionTime": "2026-01-01T00:00:00Z"})
    await stores.client.update(owner, subresource="status")
    async with stores.running_operator(managing(settings, status=bare)):
        status = await stores.wait_for(lambda status: "banner" not in status, "the banner is gone")

    assert find_condition({"status": status}, "Theirs") is not None


async def test_a_field_of_a_newer_version_survives_this_one(stores: StoreHarness) -> None:
    manifest = crd_manifest(Store)
    declared = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    declared["motto"] = {"type": "string"}
    await stores.cluster.install(manifest)
    await stores.create()
    owner = await stores.owner()
    await stores.client.update({**owner, "status": {"motto": "Always open"}}, subresource="status")

    async with stores.running_operator(managing(settings)):
        status = await stores.wait_for(lambda status: status.get("phase") == "Open", "the store is open")

    assert status["motto"] == "Always open"


async def test_a_faster_writer_of_another_field_loses_nothing(stores: StoreHarness) -> None:
    async def meanwhile(store: Store, ctx: OwnerContext) -> None:
        if store.status.banner is None:
            status = {"conditions": [{**THEIRS.to_object(), "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
            await stores.client.patch(
                STORE, stores.key("corner"), {"status": status}, patch_type="merge", subresource="status"
            )

    async with stores.running_operator(managing(meanwhile, settings)):
        await stores.create()
        status = await stores.wait_for(lambda status: status.get("banner") == "Hello", "the banner is set")

    assert find_condition({"status": status}, "Theirs") is not None
    assert status["phase"] == "Open"


async def test_an_async_status_function_can_read_the_cluster(stores: StoreHarness) -> None:
    async def count(store: Store, ctx: OwnerContext) -> StoreStatus:
        listed = await ctx.cluster.list(CONFIG_MAP, namespace=stores.namespace)
        return StoreStatus(visitors=len([obj for obj in listed if obj["metadata"]["name"].startswith("corner-")]))

    async with stores.running_operator(managing(settings, status=count)):
        await stores.create()
        await stores.wait_for(lambda status: status.get("visitors") == 1, "the objects are counted")


def _raises(store: Store, ctx: OwnerContext) -> StoreStatus:
    raise LookupError("no map of this town")


def _is_nonsense(store: Store, ctx: OwnerContext) -> object:
    return "Open"


def _forgets(store: Store, ctx: OwnerContext) -> object:
    StoreStatus(phase="Open")
    return None


def _misspells(store: Store, ctx: OwnerContext) -> object:
    status = StoreStatus()
    status.phse = "Open"  # type: ignore[attr-defined]  # the mistake
    return status


def _is_too_large(store: Store, ctx: OwnerContext) -> object:
    return StoreStatus(banner="x" * 300_000)


def _cannot_be_encoded(store: Store, ctx: OwnerContext) -> object:
    return StoreStatus(banner="\udcff")


def _is_refused(store: Store, ctx: OwnerContext) -> object:
    return StoreStatus(phase="Closed")  # type: ignore[arg-type]  # the mistake


def _asks_for_a_stranger(store: Store, ctx: OwnerContext) -> object:
    return StoreStatus(banner=str(ctx.components["setting"].condition))


def _assigns(store: Store, ctx: OwnerContext) -> object:
    store.status.visitors = 3
    return StoreStatus()


async def _hangs(store: Store, ctx: OwnerContext) -> object:
    return await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (_raises, "LookupError: no map of this town"),
        (_is_nonsense, "status: expected StoreStatus, found str"),
        (_forgets, "status: expected StoreStatus, found NoneType; is there a return at the end of the function?"),
        (_misspells, "status.phse: expected a field of StoreStatus, found no such field; did you mean 'phase'?"),
        (_is_too_large, "status: expected at most 262144 bytes of JSON, found 300"),
        (_cannot_be_encoded, "status.banner: expected text that UTF-8 can encode"),
        (_is_refused, "status.phase"),
        (_asks_for_a_stranger, 'component "setting" was not reconciled: expected one of settings; did you mean'),
        (_assigns, "Store: status.visitors: expected no assignment to the owner, because nothing writes it"),
        (_hangs, "_hangs did not end within 1.8 s"),
    ],
)
async def test_a_status_that_cannot_be_written_is_reported_and_nothing_else_is_lost(
    stores: StoreHarness, function: Any, problem: str
) -> None:
    async with stores.running_operator(managing(settings)):
        await stores.create()
        await stores.wait_for(lambda status: status.get("phase") == "Open", "the store is open")
    operator = Operator("stores")
    operator.manages(Store, settings, status=function, timeout=timedelta(seconds=2))
    async with stores.running_operator(operator, RunOptions((stores.namespace,), records_events=True)):
        await stores.client.patch(STORE, stores.key("corner"), {"spec": {"greeting": "Bye"}}, patch_type="merge")
        ready = await stores.wait_for_reason("Error")
        await stores.wait_for_data("corner-settings", greeting="Bye")
        status = await stores.wait_for(
            lambda status: getattr(find_condition({"status": status}, "SettingsReady"), "observed_generation", 0) == 2,
            "the component reports",
        )

        async def is_recorded() -> bool:
            events = await stores.client.list(EVENT, namespace=stores.namespace)
            return any(event["reason"] == "ReconcileFailed" and problem in event["note"] for event in events.items)

        await stores.cluster.eventually(is_recorded, describe="a Warning event with the problem")

    assert problem in ready.message
    assert own_fields(status) == {"observedGeneration": 1, "phase": "Open", "banner": "Hello"}


async def test_a_steady_error_of_the_status_writes_nothing_more(stores: StoreHarness) -> None:
    async with stores.running_operator(managing(settings, status=_raises)):
        await stores.create()
        first = await stores.wait_for_reason("Error")
        await stores.clock.sleep(1.0)
        writes = stores.status_writes()
        await stores.clock.sleep(5.0)

    assert stores.status_writes() == writes == 1
    assert await stores.condition("corner", gvk=STORE) == first


async def test_a_definition_without_a_field_is_reported_and_followed_when_it_gets_it(stores: StoreHarness) -> None:
    manifest = crd_manifest(Store)
    declared = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    banner = declared.pop("banner")
    await stores.cluster.install(manifest)
    async with stores.running_operator(managing(settings)):
        await stores.create()
        ready = await stores.wait_for_reason("Error")
        assert "the server dropped status.banner" in ready.message
        assert "apply the output of konverge crd" in ready.message
        await stores.clock.sleep(5.0)
        version = (await stores.owner())["metadata"]["resourceVersion"]
        await stores.clock.sleep(5.0)
        assert (await stores.owner())["metadata"]["resourceVersion"] == version, "the condition does not alternate"
        assert await stores.condition("corner", "SettingsReady", STORE) is not None

        declared["banner"] = banner
        await stores.cluster.install(manifest)
        await stores.client.patch(STORE, stores.key("corner"), {"spec": {"greeting": "Bye"}}, patch_type="merge")
        await stores.wait_for(lambda status: status.get("banner") == "Bye", "the field is stored")
        await stores.wait_for_reason("Healthy")


async def test_functions_run_between_components_in_order(stores: StoreHarness) -> None:
    order: list[str] = []

    async def before(store: Store, ctx: OwnerContext) -> None:
        order.append("before")
        assert not ctx.components

    async def paint(store: Store, ctx: OwnerContext) -> Result:
        order.append("between")
        assert list(ctx.components) == ["settings"]
        ctx.stage(Condition("Painted", "True", "Done", "", ctx.owner_generation))
        return Result(requeue_after=timedelta(hours=1))

    async def after(store: Store, ctx: OwnerContext) -> None:
        order.append("after")
        assert list(ctx.components) == ["settings", "signs"]

    async with stores.running_operator(managing(before, settings, paint, signs, after)):
        await stores.create()
        await stores.wait_for_reason("Healthy")

    assert order[:3] == ["before", "between", "after"]
    assert await stores.exists(CONFIG_MAP, "corner-signs")


async def test_a_function_that_fails_is_reported_and_stops_nothing(stores: StoreHarness) -> None:
    async def paint(store: Store, ctx: OwnerContext) -> None:
        raise OSError("out of paint")

    async def answers(store: Store, ctx: OwnerContext) -> Any:
        return "done"

    async with stores.running_operator(managing(paint, answers, settings)):
        await stores.create()
        ready = await stores.wait_for_reason("Error")
        await stores.wait_for_condition("corner", "Healthy", "SettingsReady", STORE)
        status = await stores.wait_for(lambda status: status.get("banner") == "Hello", "the status is written")

    assert "paint: OSError: out of paint" in ready.message
    assert "answers: TypeError: the function answers returned a str" in ready.message
    assert status["phase"] == "Open", "the status function runs after every part"


async def test_an_assignment_to_the_owner_is_an_error_without_a_status_function(stores: StoreHarness) -> None:
    def assigns(store: Store) -> Component:
        store.status.phase = "Open"
        return settings(store)

    async with stores.running_operator(managing(assigns, status=None)):
        await stores.create()
        ready = await stores.wait_for_reason("Error")

    assert (
        "Store: status.phase: expected no assignment to the owner, because nothing writes it; return" in ready.message
    )


async def test_a_status_is_staged_and_written_in_a_function_of_ones_own(stores: StoreHarness) -> None:
    operator = Operator("stores")

    @operator.reconciles(Store)
    async def reconcile(store: Store, ctx: OwnerContext) -> None:
        await settings(store).reconcile(ctx)
        ctx.stage_status(StoreStatus(phase="Open" if ctx.components["settings"].is_ready else "New"))

    async with stores.running_operator(operator):
        await stores.create()
        status = await stores.wait_for(lambda status: status.get("phase") == "Open", "the store is open")
        await stores.wait_until_quiet()

    assert own_fields(status) == {"observedGeneration": 1, "phase": "Open"}
    assert stores.status_writes() == 1


async def test_an_error_of_a_function_of_ones_own_is_a_condition_until_it_succeeds(stores: StoreHarness) -> None:
    operator, is_broken = Operator("stores"), [True]

    @operator.reconciles(Store)
    async def reconcile(store: Store, ctx: OwnerContext) -> None:
        ctx.stage(Condition("Seen", "True", "Seen", store.spec.greeting))
        ctx.stage_status(StoreStatus(banner="Ahoy"))
        if is_broken[0]:
            raise ValueError("the till is empty")

    async with stores.running_operator(operator):
        await stores.create()
        ready = await stores.wait_for_reason("Error")
        status = (await stores.owner())["status"]
        assert stores.status_writes() == 1
        is_broken[0] = False
        await stores.wait_for(lambda status: find_condition({"status": status}, "Ready") is None, "the error is gone")

    assert ready.message == "The reconcile failed: ValueError: the till is empty"
    assert find_condition({"status": status}, "Seen") is not None, "what was staged is not lost"
    assert status["banner"] == "Ahoy"


async def test_an_error_that_a_function_reports_itself_stays(stores: StoreHarness) -> None:
    operator = Operator("stores")

    @operator.reconciles(Store)
    async def reconcile(store: Store, ctx: OwnerContext) -> None:
        async with ctx.flushing_status():
            ctx.stage(Condition("Ready", "False", "NoTill", "buy one"))
            raise ValueError("the till is empty")

    async with stores.running_operator(operator):
        await stores.create()
        await stores.wait_for_reason("NoTill")
        await stores.clock.sleep(2.0)

    assert stores.status_writes() == 1


async def test_a_function_of_ones_own_that_hangs_is_reported(stores: StoreHarness) -> None:
    operator = Operator("stores")

    @operator.reconciles(Store, timeout=timedelta(seconds=1))
    async def reconcile(store: Store, ctx: OwnerContext) -> None:
        await asyncio.Event().wait()

    async with stores.running_operator(operator):
        await stores.create()
        ready = await stores.wait_for_reason("Error")

    assert ready.message == "The reconcile failed: the function reconcile did not end within 0.9 s"


@pytest.mark.parametrize("phase", ["Open", "Closed"])
async def test_a_finalizer_reports_its_status_too(stores: StoreHarness, phase: Any) -> None:
    operator, is_done = managing(settings), [False]

    @operator.finalizes(Store)
    async def close(store: Store, ctx: OwnerContext) -> Result | None:
        ctx.stage_status(StoreStatus(phase=phase, banner="Closing down"))
        return None if is_done[0] else Result(requeue_after=timedelta(seconds=1))

    async with stores.running_operator(operator):
        await stores.create()
        await stores.wait_for(lambda status: status.get("phase") == "Open", "the store is open")
        await stores.client.delete(STORE, stores.key("corner"))
        if phase == "Open":
            await stores.wait_for(lambda status: status.get("banner") == "Closing down", "the finalizer reports")
            await stores.wait_for_reason("Deleting")
        else:
            ready = await stores.wait_for_reason("Error")
            assert "status.phase" in ready.message
            assert (await stores.owner())["status"]["banner"] == "Hello", "a refused status loses nothing"
        is_done[0] = True

        async def is_gone() -> bool:
            return not await stores.exists(STORE, "corner")

        await stores.cluster.eventually(is_gone, describe="the store is gone")


async def test_a_dry_run_has_the_status_that_would_be_written(stores: StoreHarness) -> None:
    async def paint(store: Store, ctx: OwnerContext) -> None:
        ctx.stage(Condition("Painted", "True", "Done"))

    operator = managing(settings, paint, signs)
    async with stores.running_operator(operator):
        await stores.create()
        await stores.wait_for(lambda status: status.get("phase") == "Open", "the store is open")
    registration = operator.registered.classes[0]

    steady = await dry_run_owner(registration, await stores.owner(), stores.client, clock=stores.clock)
    await stores.client.patch(STORE, stores.key("corner"), {"spec": {"greeting": "Bye"}}, patch_type="merge")
    changed = await dry_run_owner(registration, await stores.owner(), stores.client, clock=stores.clock)

    assert (steady.status, steady.errors) == ((), ())
    lines = ['.status.banner: "Hello" → "Bye"', ".status.observedGeneration: 1 → 2"]
    assert [click.unstyle(format_status_change(field)) for field in changed.status] == lines
    assert [click.unstyle(line).strip() for line in format_diff(changed)][-2:] == lines
    explained = click.unstyle("\n".join(format_explanation(changed, stores.clock.now())))
    assert all(line in explained for line in lines)
    assert own_fields((await stores.owner())["status"])["banner"] == "Hello", "nothing is written"


async def one_argument(store: Store) -> None: ...


def two_arguments(store: Store, ctx: OwnerContext) -> Component:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("parts", "status", "problem"),
    [
        ((settings, one_argument), None, "one_argument: expected a function of the owner and the context"),
        ((two_arguments,), None, "use async def for a function that gets the owner and the context"),
        ((settings, "signs"), None, "expected a function, found 'signs'"),
        ((settings,), settings, "settings: expected a function of the owner and the context"),
        ((settings,), "Open", "status: expected a function, found 'Open'"),
        ((), None, "manages needs at least one function that builds a component"),
    ],
)
async def test_a_wrong_part_is_refused_at_registration(parts: Any, status: Any, problem: str) -> None:
    with pytest.raises(BuildError) as refused:
        Operator("stores").manages(Store, *parts, status=status)
    assert problem in str(refused.value)


async def test_a_class_without_a_status_has_no_status_function() -> None:
    with pytest.raises(BuildError, match="status: Shop has no field status: expected one with a default"):
        Operator("shops").manages(Shop, lambda _: ComponentBuilder("c", condition_type="C").build(), status=report)  # type: ignore[arg-type]  # the mistake


@dataclass
class Shelf:
    name: str
    items: int = 0


@dataclass
class Floor:
    area: int = 0
    lamps: int | None = None


@dataclass
class BuildingStatus:
    phase: str = "New"
    floor: Floor | None = None
    rooms: dict[str, Floor] = field(default_factory=dict)
    shelves: Annotated[list[Shelf], list_map("name")] = field(default_factory=list)
    notes: list[Shelf] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)


@dataclass
class StampStatus:
    phase: Literal["New", "Open"] = "New"
    stamp: Floor = field(default_factory=Floor)
    shelves: Annotated[list[Shelf], list_map("name")] = field(default_factory=list)


@custom_resource(group="operator.konverge.test", version="v1")
@dataclass
class Depot:
    metadata: Metadata
    spec: StoreSpec
    status: StampStatus = field(default_factory=StampStatus)


@custom_resource(group="operator.konverge.test", version="v1")
@dataclass
class Building:
    metadata: Metadata
    spec: StoreSpec
    status: BuildingStatus = field(default_factory=BuildingStatus)


NEWER_STATUS = {
    "phase": "New",
    "tenants": {"first": "A"},
    "floor": {"area": 1, "lamps": 3, "plan": {"scale": 50}, "walls": [1, 2]},
    "rooms": {"a": {"area": 1, "door": "oak"}, "b": {"area": 2}},
    "shelves": [{"name": "left", "items": 1, "wood": "pine"}, {"name": "right", "items": 2, "wood": "ash"}],
    "notes": [{"name": "x", "items": 0, "author": "z"}],
    "labels": {"old": "1"},
}


def stage_building(stored: Object, status: BuildingStatus) -> Object:
    """Return the status after an older version of the operator has staged its own."""
    owner: Object = {
        **encode(Building(Metadata(name="b", namespace="shop", generation=2), StoreSpec())),
        "status": stored,
    }
    ctx = OwnerContext(client=cast("Any", None), owner=copy.deepcopy(owner), owner_class=Building)
    ctx.stage_status(status)
    staged: Object = ctx.owner["status"]
    return staged


def test_an_older_version_keeps_the_fields_of_a_newer_one_at_any_depth() -> None:
    status = BuildingStatus(
        phase="Open",
        floor=Floor(area=7),
        rooms={"a": Floor(area=8), "c": Floor(area=9)},
        shelves=[Shelf("right", 5), Shelf("new")],
        notes=[Shelf("y")],
        labels={"new": "2"},
    )

    assert stage_building(NEWER_STATUS, status) == {
        "observedGeneration": 2,
        "phase": "Open",
        "tenants": {"first": "A"},
        "floor": {"area": 7, "plan": {"scale": 50}, "walls": [1, 2]},
        "rooms": {"a": {"area": 8, "door": "oak"}, "c": {"area": 9}},
        "shelves": [{"name": "right", "items": 5, "wood": "ash"}, {"name": "new", "items": 0}],
        "notes": [{"name": "y", "items": 0}],
        "labels": {"new": "2"},
    }


def test_a_field_that_is_none_is_removed_with_the_fields_of_a_newer_version() -> None:
    assert "floor" not in stage_building(NEWER_STATUS, BuildingStatus())


@pytest.mark.parametrize(
    "stored", [{"floor": 3, "rooms": [], "shelves": {}}, {"shelves": [4, None], "rooms": {"a": 1}}]
)
def test_a_stored_status_of_another_form_is_replaced(stored: Object) -> None:
    status = BuildingStatus(floor=Floor(1), rooms={"a": Floor(2)}, shelves=[Shelf("left")])

    staged = stage_building(stored, status)

    assert (staged["floor"], staged["rooms"], staged["shelves"]) == (
        {"area": 1},
        {"a": {"area": 2}},
        [{"name": "left", "items": 0}],
    )


async def test_a_downgraded_operator_keeps_a_nested_field_in_the_cluster(stores: StoreHarness) -> None:
    """The definition is that of the newer version, whose class has one field more."""

    definition = crd_manifest(Depot)
    older = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    stamp = older["properties"]["stamp"]["properties"]
    stamp["plan"] = {"type": "string"}
    await stores.cluster.install(definition)
    depot = find_definition(Depot).gvk
    created = await stores.client.create(
        encode(Depot(Metadata(name="corner", namespace=stores.namespace), StoreSpec()))
    )
    newer = {**created, "status": {"phase": "Open", "stamp": {"area": 1, "plan": "round"}}}
    await stores.client.update(newer, subresource="status")
    operator = Operator("depots")

    def ledger(owner: Depot) -> Component:
        obj = {"metadata": {"name": "ledger", "namespace": owner.metadata.namespace}}
        return ComponentBuilder("ledger", condition_type="LedgerReady").with_resource(ConfigMap(obj)).build()

    operator.manages(Depot, ledger, status=lambda owner, ctx: StampStatus(stamp=Floor(area=2)))

    async with stores.running_operator(operator):

        async def status() -> Object | None:
            found: Object = (await stores.client.get(depot, stores.key("corner")))["status"]
            return found if found["phase"] == "New" else None

        written = await stores.cluster.eventually(status, describe="the older version writes its status")

    assert written["stamp"] == {"area": 2, "plan": "round"}


async def test_an_older_version_keeps_what_a_newer_one_writes_during_its_reconcile(stores: StoreHarness) -> None:
    """Both versions run at once, as in a rolling update: the write of the older one meets a conflict."""
    definition = crd_manifest(Depot)
    declared = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    declared["stamp"]["properties"]["plan"] = {"type": "string"}
    declared["shelves"]["items"]["properties"]["wood"] = {"type": "string"}
    declared["motto"] = {"type": "string"}
    await stores.cluster.install(definition)
    depot = find_definition(Depot).gvk
    created = await stores.client.create(
        encode(Depot(Metadata(name="corner", namespace=stores.namespace), StoreSpec()))
    )
    before = {"stamp": {"area": 1, "plan": "square"}, "shelves": [{"name": "left", "items": 1, "wood": "pine"}]}
    await stores.client.update({**created, "status": before}, subresource="status")
    newer = {
        "motto": "Always open",
        "stamp": {"area": 7, "plan": "round"},
        "shelves": [{"name": "left", "items": 9, "wood": "oak"}, {"name": "right", "items": 1, "wood": "ash"}],
        "conditions": [{**THEIRS.to_object(), "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    operator = Operator("depots")
    overtaken: list[bool] = []

    async def meanwhile(owner: Depot, ctx: OwnerContext) -> None:
        if not overtaken:
            overtaken.append(True)
            patch = {"status": newer}
            await stores.client.patch(depot, ctx.owner_key, patch, patch_type="merge", subresource="status")

    def ledger(owner: Depot) -> Component:
        obj = {"metadata": {"name": "ledger", "namespace": owner.metadata.namespace}}
        return ComponentBuilder("ledger", condition_type="LedgerReady").with_resource(ConfigMap(obj)).build()

    def older(owner: Depot, ctx: OwnerContext) -> StampStatus:
        return StampStatus(phase="Open", stamp=Floor(area=2), shelves=[Shelf("left", 5)])

    operator.manages(Depot, meanwhile, ledger, status=older)

    async with stores.running_operator(operator):

        async def status() -> Object | None:
            found: Object = (await stores.client.get(depot, stores.key("corner")))["status"]
            return found if found.get("phase") == "Open" else None

        written = await stores.cluster.eventually(status, describe="the older version writes its status")

    assert written["motto"] == "Always open"
    assert written["stamp"] == {"area": 2, "plan": "round"}
    assert written["shelves"] == [{"name": "left", "items": 5, "wood": "oak"}]
    assert find_condition({"status": written}, "Theirs") is not None
