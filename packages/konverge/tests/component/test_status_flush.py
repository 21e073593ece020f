"""The single status write of a reconcile: its content, the fields that it keeps, and the cases without a write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from konverge.component import Component, ComponentBuilder, ReconcileContext, aggregate
from konverge.errors import ConflictError, KonvergeError, ReconcileError, ServerError
from konverge.guards import blocked
from konverge.kube import Condition, Object, find_condition, set_condition
from konverge.primitives import ConfigMap
from tests.component.app import APP, ComponentHarness

pytestmark = pytest.mark.anyio


def component(app: ComponentHarness, name: str, *, is_blocked: bool = False) -> Component:
    guard = (lambda _: blocked("closed")) if is_blocked else None
    condition_type = f"{name.capitalize()}Ready"
    return (
        ComponentBuilder(name, condition_type=condition_type)
        .with_resource(ConfigMap(app.build_config_map(name), guard=guard))
        .build()
    )


async def context(app: ComponentHarness) -> ReconcileContext:
    return ReconcileContext(client=app.client, owner=await app.owner(), clock=app.cluster.clock)


async def other_writer(app: ComponentHarness, **status: object) -> None:
    """Someone else reports on the same owner."""
    owner = await app.cluster.client.get(APP, app.key)
    set_condition(owner, Condition("Foreign", "True", "TheirReason", "theirs"), app.cluster.clock.now())
    owner["status"] |= status
    await app.cluster.client.update(owner, subresource="status")


@dataclass
class Metrics:
    recorded: list[tuple[str, str]] = field(default_factory=list)

    def record(self, owner: Object, conditions: Sequence[Condition]) -> None:
        self.recorded += [(condition.type, condition.reason) for condition in conditions]


async def test_several_components_are_persisted_in_one_write(app: ComponentHarness) -> None:
    await app.reconcile(component(app, "one"), component(app, "two"))
    status_writes = [entry for entry in app.writes() if entry.path.endswith("/status")]
    assert len(status_writes) == 1


async def test_an_unchanged_status_is_not_written(app: ComponentHarness) -> None:
    await app.reconcile(component(app, "one"))
    ctx = await context(app)
    await component(app, "one").reconcile(ctx)
    assert not await ctx.flush_status()


async def test_conditions_and_fields_of_a_faster_writer_survive(app: ComponentHarness) -> None:
    ctx = await context(app)
    async with ctx.flushing_status():
        await component(app, "one").reconcile(ctx)
        ctx.owner["status"]["url"] = "http://shop"
        await other_writer(app, theirs=1)

    owner = await app.owner()
    foreign, ours = find_condition(owner, "Foreign"), find_condition(owner, "OneReady")
    assert foreign is not None
    assert foreign.reason == "TheirReason"
    assert ours is not None
    assert ours.reason == "Healthy"
    assert (owner["status"]["url"], owner["status"]["theirs"]) == ("http://shop", 1)


async def test_only_fields_that_the_pass_changed_are_put_on_what_a_faster_writer_left(app: ComponentHarness) -> None:
    owner = await app.owner()
    owner["status"] = {"shared": "old", "ours": "old", "gone": "old"}
    await app.cluster.client.update(owner, subresource="status")
    ctx = await context(app)
    async with ctx.flushing_status():
        await component(app, "one").reconcile(ctx)
        ctx.owner["status"]["ours"] = "new"
        del ctx.owner["status"]["gone"]
        await other_writer(app, shared="theirs")

    status = (await app.owner())["status"]
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        "shared": "theirs",
        "ours": "new",
    }


async def test_a_field_that_a_faster_writer_adds_inside_of_a_changed_field_survives(app: ComponentHarness) -> None:
    owner = await app.owner()
    owner["status"] = {"url": {"host": "old", "port": 1, "gone": True}, "size": {"a": 1}}
    await app.cluster.client.update(owner, subresource="status")
    ctx = await context(app)
    async with ctx.flushing_status():
        await component(app, "one").reconcile(ctx)
        ctx.owner["status"]["url"] = {"host": "new", "port": 1}
        ctx.owner["status"]["new"] = {"ours": {"a": 1}}
        del ctx.owner["status"]["size"]
        await other_writer(
            app, url={"host": "theirs", "port": 2, "gone": True, "path": {"a": 1}}, new={"theirs": 1, "ours": "text"}
        )

    status = (await app.owner())["status"]
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        "url": {"host": "new", "port": 2, "path": {"a": 1}},
        "new": {"ours": {"a": 1}, "theirs": 1},
    }


async def test_what_a_first_conflict_took_over_from_another_writer_is_not_put_back_after_a_second(
    app: ComponentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = await context(app)
    await component(app, "one").reconcile(ctx)
    ctx.owner["status"]["ours"] = "new"
    update, theirs = app.client.update, iter(("first", "second"))

    async def overtaken(obj: Object, *, subresource: str = "") -> Object:
        for value in theirs:
            await other_writer(app, shared=value, ours="theirs")
            break
        return await update(obj, subresource=subresource)

    monkeypatch.setattr(app.client, "update", overtaken)
    assert await ctx.flush_status()

    status = (await app.owner())["status"]
    assert (status["shared"], status["ours"]) == ("second", "new")


async def test_an_owner_born_again_under_its_name_gets_nothing_of_its_predecessor(app: ComponentHarness) -> None:
    ctx = await context(app)
    async with ctx.flushing_status():
        await component(app, "one").reconcile(ctx)
        await app.cluster.client.delete(APP, app.key)
        await app.wait_until_gone(APP, app.key.name)
        metadata = {"name": app.key.name, "namespace": app.key.namespace}
        await app.cluster.client.create({"apiVersion": APP.api_version, "kind": APP.kind, "metadata": metadata})

    assert "status" not in await app.owner()


async def test_a_second_flush_of_a_pass_meets_no_conflict_of_its_own(app: ComponentHarness) -> None:
    ctx = await context(app)
    for name in ("one", "two"):
        await component(app, name).reconcile(ctx)
        assert await ctx.flush_status()

    assert [entry.code for entry in app.writes() if entry.path.endswith("/status")] == [200, 200]


async def test_a_condition_that_another_writer_removed_is_not_resurrected(app: ComponentHarness) -> None:
    await other_writer(app)
    ctx = await context(app)
    owner = await app.owner()
    owner["status"]["conditions"] = []
    await app.cluster.client.update(owner, subresource="status")

    async with ctx.flushing_status():
        await component(app, "one").reconcile(ctx)

    assert find_condition(await app.owner(), "Foreign") is None


async def test_the_status_is_written_also_when_the_body_raises(app: ComponentHarness) -> None:
    ctx = await context(app)

    async def body() -> None:
        async with ctx.flushing_status():
            await component(app, "one").reconcile(ctx)
            raise RuntimeError("later step")

    with pytest.raises(RuntimeError, match="later step"):
        await body()

    assert (await app.condition("OneReady")).reason == "Healthy"


async def test_metrics_are_recorded_for_every_condition_after_the_write(app: ComponentHarness) -> None:
    await other_writer(app)
    ctx = await context(app)
    ctx.metrics = metrics = Metrics()
    async with ctx.flushing_status():
        await component(app, "one").reconcile(ctx)
        before = list(metrics.recorded)
    assert before == []
    assert metrics.recorded == [("Foreign", "TheirReason"), ("OneReady", "Healthy")]


class Refusing:
    """The app's client, which refuses every write of a status."""

    def __init__(self, app: ComponentHarness, error: KonvergeError) -> None:
        self.mapping, self.get, self.apply = app.client.mapping, app.client.get, app.client.apply
        self.delete = app.client.delete
        self.tries = 0
        self._error = error

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        self.tries += 1
        raise self._error


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        pytest.param(ConflictError("somebody was faster"), 5, id="a conflict is tried five times"),
        pytest.param(ServerError("the disk is full"), 1, id="anything else once"),
    ],
)
async def test_a_status_that_cannot_be_written_is_raised_and_counts_nothing(
    app: ComponentHarness, error: KonvergeError, tries: int
) -> None:
    client = Refusing(app, error)
    ctx = ReconcileContext(client=client, owner=await app.owner(), clock=app.cluster.clock)
    ctx.metrics = metrics = Metrics()

    await component(app, "one").reconcile(ctx)
    with pytest.raises(type(error), match=str(error)):
        await ctx.flush_status()

    assert client.tries == tries
    assert metrics.recorded == []


async def test_an_error_of_the_pass_wins_over_one_of_the_flush(app: ComponentHarness) -> None:
    client = Refusing(app, ServerError("the disk is full"))
    ctx = ReconcileContext(client=client, owner=await app.owner(), clock=app.cluster.clock)

    async def body() -> None:
        async with ctx.flushing_status():
            await component(app, "one").reconcile(ctx)
            raise RuntimeError("later step")

    with pytest.raises(RuntimeError, match="later step") as raised:
        await body()

    assert raised.value.__notes__ == ["The status could not be written either: the disk is full"]


async def test_a_retired_condition_goes_and_foreign_ones_stay(app: ComponentHarness) -> None:
    await app.reconcile(component(app, "old"), component(app, "one"))
    await other_writer(app)
    ctx = await context(app)
    ctx.metrics = metrics = Metrics()
    async with ctx.flushing_status():
        await component(app, "one").reconcile(ctx)
        ctx.retire_conditions("OldReady", "OneReady", "NeverReady")

    owner = await app.owner()
    assert [found["type"] for found in owner["status"]["conditions"]] == ["OneReady", "Foreign"]
    assert metrics.recorded == [("OneReady", "Healthy"), ("Foreign", "TheirReason")]


async def test_a_retired_condition_does_not_come_back_with_a_faster_writer(app: ComponentHarness) -> None:
    await app.reconcile(component(app, "old"))
    ctx = await context(app)
    async with ctx.flushing_status():
        await component(app, "one").reconcile(ctx)
        ctx.retire_conditions("OldReady")
        await other_writer(app)

    conditions = [found["type"] for found in (await app.owner())["status"]["conditions"]]
    assert conditions == ["Foreign", "OneReady"]


async def test_conditions_carry_the_owners_generation(app: ComponentHarness) -> None:
    condition = await app.reconcile(component(app, "one"))
    assert condition.observed_generation == (await app.owner())["metadata"]["generation"]


async def test_the_owners_condition_is_true_only_if_all_are(app: ComponentHarness) -> None:
    ctx = await context(app)
    one, two = component(app, "one"), component(app, "two", is_blocked=True)
    for each in (one, two):
        await each.reconcile(ctx)

    mixed, good, none = (aggregate("Ready", ctx.owner, each) for each in ([one, two], [one], []))

    assert (mixed.status, mixed.reason) == ("False", "Blocked")
    assert mixed.message == "1 of 2 components is not ready: two (Blocked: closed)."
    assert (good.status, good.reason, good.message) == ("True", "Healthy", "The component one is healthy.")
    assert (none.status, none.reason) == ("False", "Unknown")


async def test_a_component_that_was_never_reconciled_makes_the_owner_not_ready(app: ComponentHarness) -> None:
    ready = aggregate("Ready", await app.owner(), [component(app, "one")])
    assert (ready.status, ready.reason) == ("False", "Unknown")
    assert ready.message == "The component one (Unknown: Component has not been reconciled yet) is not ready."


async def test_an_error_of_the_pass_reaches_the_stored_condition(app: ComponentHarness) -> None:
    broken = ComponentBuilder("one", condition_type="OneReady").with_resource(
        ConfigMap(app.build_config_map("one"), extract=lambda _: 1 / 0)
    )
    with pytest.raises(ReconcileError, match="division by zero"):
        await app.reconcile(broken.build())
    assert (await app.condition("OneReady")).reason == "Error"


async def test_a_message_longer_than_the_api_takes_is_cut(app: ComponentHarness) -> None:
    endless = ComponentBuilder("one", condition_type="OneReady").with_resource(
        ConfigMap(app.build_config_map("one"), guard=lambda _: blocked("x" * 100_000))
    )
    condition = await app.reconcile(endless.build())
    assert len(condition.message) == 32768
    assert condition.message.endswith("…")
