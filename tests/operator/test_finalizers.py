"""What has to be done before an owner may go, on either cluster."""

from datetime import timedelta

import pytest

from konverge.errors import BuildError
from konverge.kube import Condition
from konverge.operator import Operator, OwnerContext, Result
from tests.operator.shops import SHOP, LooseShop, Shop, Town, pages, settings

pytestmark = pytest.mark.anyio

FINALIZER = "operator.konverge.test/shops"


async def finalizers(town: Town, name: str) -> list[str]:
    found: list[str] = (await town.client.get(SHOP, town.key(name)))["metadata"].get("finalizers", [])
    return found


async def test_an_owner_has_the_finalizer_before_anything_exists_for_it(town: Town) -> None:
    operator = Operator("shops")
    seen = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        seen.append(list(shop.metadata.finalizers))

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        seen.append(["closed"])

    async with town.looked_after_by(operator):
        await town.open("corner")
        await town.cluster.eventually(lambda: seen, describe="the first pass")

    assert seen[0] == [FINALIZER]


async def test_a_deleted_owner_stays_until_all_is_done(town: Town) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    calls = []

    @operator.finalizes(Shop, name="example.com/till")
    async def close(shop: Shop, ctx: OwnerContext) -> Result | None:
        calls.append(shop.metadata.name)
        return Result(requeue_after=timedelta(seconds=0.5)) if len(calls) < 3 else None

    async with town.looked_after_by(operator):
        await town.open("corner")
        await town.until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))

        await town.cluster.eventually(lambda: _is_gone(town), describe="the shop is gone")

    assert len(calls) >= 3


async def test_a_result_without_a_time_is_not_done_either(town: Town) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    calls = []

    @operator.finalizes(Shop, name="example.com/till")
    async def close(shop: Shop, ctx: OwnerContext) -> Result:
        calls.append(shop.metadata.name)
        return Result()

    async with town.looked_after_by(operator):
        await town.open("corner")
        await town.until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        await town.cluster.eventually(lambda: calls, describe="the clean-up is called")
        await town.quiet()

        assert await finalizers(town, "corner") == ["example.com/till"]


async def test_a_status_can_be_reported_while_an_owner_is_finalized(town: Town) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    open_tills = ["one"]

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> Result | None:
        async with ctx.flushing_status():
            ctx.stage(Condition("Closed", "False" if open_tills else "True", "Counting", "money"))
        return Result(requeue_after=timedelta(seconds=0.2)) if open_tills else None

    async with town.looked_after_by(operator):
        await town.open("corner")
        await town.until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        await town.until("corner", "Counting", "Closed")
        open_tills.clear()

        await town.cluster.eventually(lambda: _is_gone(town), describe="the shop is gone")


async def test_the_finalizers_of_others_stay(town: Town) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        return

    async with town.looked_after_by(operator):
        await town.open("corner")
        await town.until_ready("corner")
        body = {"metadata": {"finalizers": [FINALIZER, "example.com/bailiff"]}}
        await town.client.patch(SHOP, town.key("corner"), body, patch_type="merge")
        await town.client.delete(SHOP, town.key("corner"))

        async def ours_is_gone() -> bool:
            return await finalizers(town, "corner") == ["example.com/bailiff"]

        await town.cluster.eventually(ours_is_gone, describe="our finalizer is gone")
        await town.client.patch(SHOP, town.key("corner"), {"metadata": {"finalizers": None}}, patch_type="merge")


async def test_a_failure_of_the_clean_up_is_tried_again(town: Town) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    calls = []

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        calls.append(shop.metadata.name)
        if len(calls) < 3:
            raise OSError("the till is stuck")

    async with town.looked_after_by(operator):
        await town.open("corner")
        await town.until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))

        await town.cluster.eventually(lambda: _is_gone(town), describe="the shop is gone")

    assert len(calls) == 3


async def test_an_owner_that_is_gone_before_its_first_pass_gets_no_finalizer(town: Town) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings, pages)
    closed = []

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        closed.append(shop.metadata.name)

    await town.open("early", greeting="x")
    await town.client.delete(SHOP, town.key("early"))
    async with town.looked_after_by(operator):
        await town.open("late")
        await town.until_ready("late")

    assert closed == []


def test_mistakes_are_told_together() -> None:
    operator = Operator("shops")

    @operator.finalizes(LooseShop)
    async def close(shop: LooseShop, ctx: OwnerContext) -> None:
        return

    with pytest.raises(BuildError, match=r"LooseShop has a finalizer already"):
        operator.finalizes(LooseShop)(close)
    with pytest.raises(BuildError, match=r"expected a domain and a name"):
        operator.finalizes(Shop, name="bucket")(close)  # type: ignore[arg-type]


async def test_a_finalizer_for_a_class_that_nothing_reconciles_is_refused(town: Town) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    @operator.finalizes(LooseShop)
    async def close(shop: LooseShop, ctx: OwnerContext) -> None:
        return

    with pytest.raises(BuildError, match="LooseShop has a finalizer, and nothing reconciles it"):
        await operator.run(town.client, clock=town.clock)


async def _is_gone(town: Town) -> bool:
    return not await town.exists(SHOP, "corner")


async def test_a_component_that_asks_to_be_woken_does_not_hold_an_owner_that_is_finalized(town: Town) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        ctx.request_wake(ctx.clock.now() + timedelta(hours=1))

    async with town.looked_after_by(operator):
        await town.open("corner")
        await town.until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))

        await town.cluster.eventually(lambda: _is_gone(town), describe="the shop is gone")
