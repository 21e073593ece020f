"""An author's own reconcile function, on either cluster."""

import inspect
import re
from datetime import timedelta

import pytest

from konverge.component import ComponentBuilder, PrerequisiteResult, ReconcileContext
from konverge.crd import crd_manifest
from konverge.errors import TerminalError
from konverge.kube import Condition
from konverge.operator import Operator, Result
from konverge.prerequisites import MET
from tests.operator.sample_operator import CONFIG_MAP, LOOSE_SHOP, LooseShop, OperatorHarness, Shop, settings

pytestmark = pytest.mark.anyio


async def test_a_function_gets_the_typed_owner_and_reports_through_the_context(town: OperatorHarness) -> None:
    operator = Operator("shops")

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: ReconcileContext) -> None:
        async with ctx.flushing_status():
            ctx.stage(Condition("Greeted", "True", "Said", shop.spec.greeting))

    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="Ahoy")
        greeted = await town.wait_for_condition("corner", "Said", "Greeted")

    assert greeted.message == "Ahoy"


async def test_a_component_in_a_function_is_reconciled_as_in_the_short_form(town: OperatorHarness) -> None:
    operator = Operator("shops")

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: ReconcileContext) -> None:
        async with ctx.flushing_status():
            await settings(shop).reconcile(ctx)

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_for_condition("corner", "Healthy", "SettingsReady")
        await town.client.delete(CONFIG_MAP, town.key("corner-settings"))

        await town.wait_for_data("corner-settings", greeting="Hello")


async def test_a_result_asks_for_another_pass(town: OperatorHarness) -> None:
    operator = Operator("shops")
    passes = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: ReconcileContext) -> Result:
        passes.append(ctx.clock.monotonic())
        return Result(requeue_after=timedelta(seconds=0.5))

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: len(passes) >= 3, describe="three passes")

    assert passes[2] - passes[1] >= 0.499


async def test_a_terminal_error_waits_for_a_change_of_the_owner(town: OperatorHarness) -> None:
    operator = Operator("shops")
    seen = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: ReconcileContext) -> None:
        seen.append(shop.spec.greeting)
        raise TerminalError("nobody can greet like that")

    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="one")
        await town.wait_for_condition("corner", "Error")
        await town.clock.sleep(2.0)
        # The second one is after the write of the condition.
        assert seen == ["one", "one"]

        await town.change("corner", greeting="two")

        await town.cluster.eventually(lambda: "two" in seen, describe="a pass after the change")


@pytest.mark.slow
async def test_a_pass_that_was_asked_for_goes_by_its_priority(town: OperatorHarness) -> None:
    operator = Operator("shops")
    passes = []

    @operator.reconciles(Shop, workers=1)
    async def reconcile(shop: Shop, ctx: ReconcileContext) -> Result | None:
        name = shop.metadata.name
        if name == "slow":
            await town.clock.sleep(4.0)  # the one worker, while the others come due
        passes.append(name)
        if passes.count(name) > 1:
            return None
        return Result(requeue_after=timedelta(seconds=2), priority=10 if name == "urgent" else 0)

    async with town.running_operator(operator):
        await town.create_shop("plain")
        await town.cluster.eventually(lambda: "plain" in passes, describe="a pass over the first")
        await town.create_shop("urgent")
        await town.cluster.eventually(lambda: "urgent" in passes, describe="a pass over the second")
        await town.create_shop("slow")

        await town.cluster.eventually(lambda: len(passes) >= 5, describe="both have had their second pass")

    assert passes[3:5] == ["urgent", "plain"]


async def test_what_a_pass_changes_under_its_own_feet_brings_one_more(town: OperatorHarness) -> None:
    operator = Operator("shops")
    seen = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: ReconcileContext) -> None:
        opened = ctx.condition("Opened")
        seen.append(opened is not None)
        async with ctx.flushing_status():
            ctx.stage(Condition("Opened", "True", "Done"))

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: len(seen) == 2, describe="two passes")
        await town.clock.sleep(2.0)

    assert seen == [False, True]


async def test_a_change_overtakes_the_owners_that_a_start_finds(town: OperatorHarness) -> None:
    old = [f"old-{number}" for number in range(5)]
    for name in old:
        await town.create_shop(name)
    operator = Operator("shops")
    passes = []

    @operator.reconciles(Shop, workers=1)
    async def reconcile(shop: Shop, ctx: ReconcileContext) -> None:
        passes.append(shop.metadata.name)
        await ctx.clock.sleep(1.0)

    async with town.running_operator(operator):
        await town.cluster.eventually(lambda: passes, describe="the first pass")
        await town.create_shop("new")
        await town.cluster.eventually(lambda: len(passes) == 6, describe="all passes")

    assert passes[1] == "new"
    assert sorted([passes[0], *passes[2:]]) == old


async def test_a_pass_that_writes_brings_one_more_and_no_other(town: OperatorHarness) -> None:
    operator = Operator("shops")
    passes = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: ReconcileContext) -> None:
        passes.append(shop.metadata.name)
        async with ctx.flushing_status():
            await settings(shop).reconcile(ctx)

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_for_condition("corner", "Healthy", "SettingsReady")
        await town.clock.sleep(2.0)

    assert len(passes) == 2, "one that writes, and one that finds nothing to do"


async def test_an_author_who_never_comes_to_rest_gets_a_slow_loop(
    town: OperatorHarness, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("shops")
    passes = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: ReconcileContext) -> None:
        passes.append(shop.metadata.name)
        async with ctx.flushing_status():
            ctx.owner.setdefault("status", {})["conditions"] = []
            ctx.stage(Condition("Odd" if len(passes) % 2 else "Even", "True", "Counted"))

    async with town.running_operator(operator):
        begun_at = town.clock.monotonic()
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: len(passes) >= 100, 90, describe="the breaker opens")
        await town.wait_until_quiet()
        before = len(passes)
        before_seconds = town.clock.monotonic() - begun_at
        await town.change("corner", greeting="An edit")
        edited_at = town.clock.monotonic()
        await town.cluster.eventually(lambda: len(passes) > before, describe="the edit is seen")
        waited_seconds = town.clock.monotonic() - edited_at
        await town.wait_until_quiet()
        after_seconds = town.clock.monotonic() - edited_at

    # One more when a change came while the hundredth was at work, and one for each second that the hundred took.
    assert 100 <= before <= 101 + before_seconds, "the next one is half a minute away"
    assert waited_seconds < 20, "but that of an edit is not"
    assert len(passes) - before <= 1 + after_seconds / 30, "and what its pass wrote is no edit"
    (line,) = [
        record.getMessage() for record in caplog.records if "without reaching a steady state" in record.getMessage()
    ]
    opening = re.search(rf"shop {town.namespace}/corner: (\d+) reconciles", line)
    assert opening is not None
    assert 100 <= int(opening[1]) <= before
    assert f"because: Shop {town.namespace}/corner changed" in line


async def test_an_owner_that_cannot_be_read_says_so_until_it_can(town: OperatorHarness) -> None:
    manifest = crd_manifest(LooseShop)
    (version,) = manifest["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    await town.cluster.install(manifest)
    operator = Operator("shops")
    seen = []

    @operator.reconciles(LooseShop)
    async def reconcile(shop: LooseShop, ctx: ReconcileContext) -> None:
        seen.append(shop.spec.replicas)

    async with town.running_operator(operator):
        key = town.key("corner")
        loose = {"apiVersion": LOOSE_SHOP.api_version, "kind": LOOSE_SHOP.kind}
        await town.client.create(
            {**loose, "metadata": {"name": key.name, "namespace": key.namespace}, "spec": {"replicas": "many"}}
        )
        ready = await town.wait_for_condition("corner", "Error", gvk=LOOSE_SHOP)
        assert (ready.status, ready.message) == (
            "False",
            "The object cannot be read: spec.replicas: expected int, found str",
        )
        await town.wait_until_quiet()
        settled = len(town.requests())
        await town.clock.sleep(2.0)
        assert town.requests()[settled:] == [], "trying again cannot help"

        await town.client.patch(LOOSE_SHOP, key, {"spec": {"replicas": 3}}, patch_type="merge")

        async def is_taken_back() -> bool:
            return await town.condition("corner", gvk=LOOSE_SHOP) is None

        await town.cluster.eventually(is_taken_back, describe="the condition is gone")
        await town.cluster.eventually(lambda: seen[:1] == [3], describe="the author's function sees it")


def list_coroutine_names() -> list[str]:
    """List the coroutines that are running, the outermost first."""
    names, frame = [], inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_flags & inspect.CO_COROUTINE:
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return names[::-1]


async def test_four_coroutines_lead_from_the_owner_to_the_engine(town: OperatorHarness) -> None:
    operator, seen = Operator("shops"), list[list[str]]()

    class Probe:
        def check(self, ctx: ReconcileContext) -> PrerequisiteResult:
            seen.append(list_coroutine_names())
            return MET

    operator.manages(
        Shop, lambda _: ComponentBuilder("probe", condition_type="ProbeReady").with_prerequisite(Probe()).build()
    )
    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: bool(seen), describe="a reconcile")

    names = seen[0]
    assert names[names.index("AuthorReconciler.reconcile") : names.index("ComponentReconcile.run") + 1] == [
        "AuthorReconciler.reconcile",
        "ManagedReconcile.run",
        "Component.reconcile",
        "ComponentReconcile.run",
    ]
