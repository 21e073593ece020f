"""Cleanup before an owner is deleted, on either cluster."""

from base64 import b64decode
from datetime import timedelta

import aiohttp
import pytest

from konverge.errors import BuildError
from konverge.kube import Condition, GroupVersionKind, Object
from konverge.observability import ObservabilityOptions
from konverge.operator import Operator, OwnerContext, Result, RunOptions
from tests.operator.sample_operator import (
    SECRET,
    SHOP,
    LooseShop,
    OperatorHarness,
    Shop,
    find_free_address,
    pages,
    settings,
)

pytestmark = pytest.mark.anyio

EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
FINALIZER = "operator.konverge.test/shops"


async def finalizers(town: OperatorHarness, name: str) -> list[str]:
    found: list[str] = (await town.client.get(SHOP, town.key(name)))["metadata"].get("finalizers", [])
    return found


async def test_an_owner_has_the_finalizer_before_anything_exists_for_it(town: OperatorHarness) -> None:
    operator = Operator("shops")
    seen = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        seen.append(list(shop.metadata.finalizers))

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        seen.append(["closed"])

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: seen, describe="the first pass")

    assert seen[0] == [FINALIZER]


async def test_a_deleted_owner_stays_until_all_is_done(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    calls = []

    @operator.finalizes(Shop, name="example.com/till")
    async def close(shop: Shop, ctx: OwnerContext) -> Result | None:
        calls.append(shop.metadata.name)
        return Result(requeue_after=timedelta(seconds=0.5)) if len(calls) < 3 else None

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))

        await town.cluster.eventually(lambda: _is_gone(town), describe="the shop is gone")

    assert len(calls) >= 3


async def test_a_result_without_a_time_is_not_done_either(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    calls = []

    @operator.finalizes(Shop, name="example.com/till")
    async def close(shop: Shop, ctx: OwnerContext) -> Result:
        calls.append(shop.metadata.name)
        return Result()

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        await town.cluster.eventually(lambda: calls, describe="the clean-up is called")
        await town.wait_until_quiet()

        assert await finalizers(town, "corner") == ["example.com/till"]


async def test_a_status_can_be_reported_while_an_owner_is_finalized(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    open_tills = ["one"]

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> Result | None:
        async with ctx.flushing_status():
            ctx.stage(Condition("Closed", "False" if open_tills else "True", "Counting", "money"))
        return Result(requeue_after=timedelta(seconds=0.2)) if open_tills else None

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        await town.wait_for_condition("corner", "Counting", "Closed")
        open_tills.clear()

        await town.cluster.eventually(lambda: _is_gone(town), describe="the shop is gone")


async def test_the_finalizers_of_others_stay(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        return

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        body = {"metadata": {"finalizers": [FINALIZER, "example.com/bailiff"]}}
        await town.client.patch(SHOP, town.key("corner"), body, patch_type="merge")
        await town.client.delete(SHOP, town.key("corner"))

        async def ours_is_gone() -> bool:
            return await finalizers(town, "corner") == ["example.com/bailiff"]

        await town.cluster.eventually(ours_is_gone, describe="our finalizer is gone")
        await town.client.patch(SHOP, town.key("corner"), {"metadata": {"finalizers": None}}, patch_type="merge")


async def test_a_failure_of_the_clean_up_is_tried_again(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    calls = []

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        calls.append(shop.metadata.name)
        if len(calls) < 3:
            raise OSError("the till is stuck")

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))

        await town.cluster.eventually(lambda: _is_gone(town), describe="the shop is gone")

    assert len(calls) == 3


async def test_an_owner_that_is_gone_before_its_first_pass_gets_no_finalizer(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings, pages)
    closed = []

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        closed.append(shop.metadata.name)

    await town.create_shop("early", greeting="x")
    await town.client.delete(SHOP, town.key("early"))
    async with town.running_operator(operator):
        await town.create_shop("late")
        await town.wait_until_ready("late")

    assert closed == []


def test_mistakes_are_told_together() -> None:
    operator = Operator("shops")

    @operator.finalizes(LooseShop)
    async def close(shop: LooseShop, ctx: OwnerContext) -> None:
        return

    with pytest.raises(BuildError, match=r"LooseShop has a finalizer already"):
        operator.finalizes(LooseShop)(close)
    with pytest.raises(BuildError, match=r"expected a domain and a name"):
        operator.finalizes(Shop, name="bucket")(close)  # type: ignore[arg-type]  # the mistake


async def test_a_finalizer_for_a_class_that_nothing_reconciles_is_refused(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    @operator.finalizes(LooseShop)
    async def close(shop: LooseShop, ctx: OwnerContext) -> None:
        return

    with pytest.raises(BuildError, match="LooseShop has a finalizer but no reconcile"):
        await operator.run(town.client, clock=town.clock)


async def _is_gone(town: OperatorHarness) -> bool:
    return not await town.exists(SHOP, "corner")


async def test_a_component_that_asks_to_be_woken_does_not_hold_an_owner_that_is_finalized(
    town: OperatorHarness,
) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        ctx.request_requeue(ctx.clock.now() + timedelta(hours=1))

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))

        await town.cluster.eventually(lambda: _is_gone(town), describe="the shop is gone")


async def events_of(town: OperatorHarness, reason: str) -> list[Object]:
    found = await town.client.list(EVENT, namespace=town.namespace)
    return [event for event in found.items if event["reason"] == reason]


def status_writes(town: OperatorHarness) -> int:
    return sum(request.path.endswith("/status") for request in town.writes())


async def test_an_owner_that_waits_for_its_finalizer_is_not_ready_and_says_so_once(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    calls = []

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> Result:
        calls.append(shop.metadata.name)
        return Result(requeue_after=timedelta(seconds=0.2))

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        before = status_writes(town)
        await town.client.delete(SHOP, town.key("corner"))
        ready = await town.wait_for_condition("corner", "Deleting")
        await town.cluster.eventually(lambda: len(calls) >= 5, describe="some passes more")
        (event,) = await town.cluster.eventually(lambda: events_of(town, "Deleting"), describe="the event")

        assert status_writes(town) == before + 1
        await town.client.patch(SHOP, town.key("corner"), {"metadata": {"finalizers": None}}, patch_type="merge")

    expected = f"The object is being deleted: the finalizer {FINALIZER} is not done yet."
    assert (ready.status, ready.message) == ("False", expected)
    assert (event["type"], event["action"], event["note"]) == ("Normal", "Delete", expected)
    assert "series" not in event


async def test_a_finalizer_that_fails_is_the_error_of_its_owner(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    stuck = ["the till"]

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        if stuck:
            raise OSError(f"{stuck[0]} is stuck")

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        ready = await town.wait_for_condition("corner", "Error")
        (event,) = await town.cluster.eventually(lambda: events_of(town, "DeletionFailed"), describe="the event")
        stuck.clear()
        await town.cluster.eventually(lambda: _is_gone(town), describe="the shop is gone")

    assert (ready.status, ready.message) == ("False", "The object cannot be deleted: OSError: the till is stuck")
    assert (event["type"], event["action"], event["note"]) == ("Warning", "Delete", "OSError: the till is stuck")


async def test_a_finalizer_that_hangs_is_the_error_of_its_owner(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings, timeout=timedelta(seconds=2))

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        await ctx.clock.sleep(3600.0)

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        ready = await town.wait_for_condition("corner", "Error")
        await town.cluster.eventually(lambda: events_of(town, "DeletionFailed"), describe="the event")
        await town.client.patch(SHOP, town.key("corner"), {"metadata": {"finalizers": None}}, patch_type="merge")

    assert ready.message == f"The object cannot be deleted: the finalizer {FINALIZER} did not end within 1.8 s"


async def test_an_owner_that_others_hold_says_so_once(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        body = {"metadata": {"finalizers": ["example.com/bailiff"]}}
        await town.client.patch(SHOP, town.key("corner"), body, patch_type="merge")
        await town.wait_until_quiet()
        before = len(town.writes())
        await town.client.delete(SHOP, town.key("corner"))
        ready = await town.wait_for_condition("corner", "Deleting")
        await town.wait_until_quiet()
        (event,) = await events_of(town, "Deleting")

        assert [request.path.rsplit("/", 1)[-1] for request in town.writes()[before:]] == ["status", "events"]
        await town.client.patch(SHOP, town.key("corner"), {"metadata": {"finalizers": None}}, patch_type="merge")

    expected = "The object is being deleted: the finalizer example.com/bailiff of others is still there."
    assert (ready.status, ready.message) == ("False", expected)
    assert event["note"] == expected


@pytest.mark.parametrize("cluster_kind", ["embedded"], indirect=False)
async def test_an_owner_that_is_still_there_after_five_minutes_is_a_warning(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> Result:
        return Result()

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        await town.wait_for_condition("corner", "Deleting")
        await town.clock.sleep(290.0)
        assert await events_of(town, "DeletionStuck") == []
        await town.clock.sleep(20.0)
        (event,) = await events_of(town, "DeletionStuck")

    assert event["type"] == "Warning"


@pytest.mark.real_time
async def test_owners_that_are_being_deleted_are_counted(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> Result:
        return Result()

    address = find_free_address()
    options = RunOptions((town.namespace,), observability=ObservabilityOptions(address, "0"))
    async with town.running_operator(operator, options), aiohttp.ClientSession() as session:

        async def exposed() -> list[str]:
            async with session.get(f"http://{address}/metrics") as answer:
                return (await answer.text()).splitlines()

        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        assert 'konverge_deleting_owners{controller="shop"} 0.0' in await exposed()
        await town.client.delete(SHOP, town.key("corner"))
        await town.wait_for_condition("corner", "Deleting")
        lines = await exposed()
        assert 'konverge_deleting_owners{controller="shop"} 1.0' in lines
        assert any(line.startswith('konverge_oldest_deletion_seconds{controller="shop"} ') for line in lines)
        await town.client.patch(SHOP, town.key("corner"), {"metadata": {"finalizers": None}}, patch_type="merge")

        async def none_is_left() -> bool:
            return 'konverge_deleting_owners{controller="shop"} 0.0' in await exposed()

        await town.cluster.eventually(none_is_left, describe="it is counted no more")


async def test_values_of_secrets_are_not_in_the_error_of_a_clean_up(
    town: OperatorHarness, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        secret = await ctx.cluster.get(SECRET, town.key("till"))
        raise ValueError(f"the till does not open with {b64decode(secret['data']['code']).decode()}")

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "till", "namespace": town.namespace}}
    await town.client.create({**secret, "stringData": {"code": "zebra-4711-quartz"}})
    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        condition = await town.wait_for_condition("corner", "Error")
        await town.wait_until_quiet()
        events = await town.client.list(EVENT, namespace=town.namespace)

    assert condition.message == "The object cannot be deleted: ValueError: the till does not open with ***"
    assert "zebra-4711" not in str(events.items)
    assert "zebra-4711" not in caplog.text
    assert "the till does not open with ***" in caplog.text
    assert "test_finalizers.py" in caplog.text, "the log has the position"
    await town.client.patch(SHOP, town.key("corner"), {"metadata": {"finalizers": None}}, patch_type="merge")
