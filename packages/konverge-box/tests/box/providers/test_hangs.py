"""A provider that hangs is cancelled and reported; its other owners and other providers continue."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from konverge.clock import SimulatedClock
from konverge_box.providers import ProviderNotFoundError, ProviderPool, ProviderRegistry
from tests.box.providers.fake_cloud import FakeCloud, FakeCloudProvider, FakeOwner, build_pool, build_providers
from tests.cancellation_leaks import run_loop_turns

pytestmark = pytest.mark.anyio

ITEMS = "{kind: Machine, name: one}\n{kind: Machine, name: two}"


async def forever(*_: Any) -> None:
    await asyncio.Event().wait()


def start_reconcile(pool: ProviderPool, owner: FakeOwner, items: str = ITEMS) -> asyncio.Task[Any]:
    step = build_providers(items, pool)
    return asyncio.create_task(step.reconcile(owner.scope(), owner.read(), owner, owner))


async def test_a_call_that_hangs_is_cancelled_and_the_next_items_are_not_tried() -> None:
    provider = FakeCloudProvider(FakeCloud())
    provider.during = forever
    begun = SimulatedClock().monotonic()

    done = await start_reconcile(build_pool(provider), FakeOwner({}))

    assert SimulatedClock().monotonic() - begun == pytest.approx(30)
    assert [each["message"] for each in done.status] == [
        "the call did not end within 30 s and was cancelled", "not called, because Machine one took too long",
    ]  # fmt: skip
    assert len(done.problems) == 2


async def test_a_call_that_ignores_its_cancellation_holds_up_nobody_but_itself() -> None:
    provider = FakeCloudProvider(FakeCloud())
    released = asyncio.Event()

    async def stubborn(request: Any) -> None:
        while request.owner.uid == "stuck" and not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    provider.during = stubborn
    pool, stuck = build_pool(provider, workers=2), FakeOwner({}, uid="stuck")
    first = await start_reconcile(pool, stuck)
    again = await start_reconcile(pool, stuck)
    other = await start_reconcile(pool, FakeOwner({}, uid="other"))

    assert "did not end within 30 s" in first.status[0]["message"]
    assert "an earlier call was cancelled and has not ended yet" in again.status[0]["message"]
    assert provider.calls.count("reconcile Machine one") == 2, "the stuck owner had two calls at once"
    assert other.problems == ()
    released.set()
    await SimulatedClock().sleep(1)
    assert (await start_reconcile(pool, stuck)).problems == ()


async def test_owners_wait_for_a_worker_no_longer_than_for_a_call() -> None:
    clock, provider = SimulatedClock(), FakeCloudProvider(FakeCloud())
    provider.during = lambda request: forever() if request.owner.uid.startswith("slow") else None
    pool = build_pool(provider, workers=1, item_seconds=10)
    slow = start_reconcile(pool, FakeOwner({}, uid="slow"))
    await clock.sleep(1)
    slow_as_well = start_reconcile(pool, FakeOwner({}, uid="slow-as-well"))
    await clock.sleep(1)

    third = await start_reconcile(pool, FakeOwner({}, uid="third"))
    next_time = await start_reconcile(pool, FakeOwner({}, uid="third"))

    assert "no worker was free within 10 s" in third.status[0]["message"]
    assert next_time.problems == ()
    assert all("did not end within 10 s" in done.status[0]["message"] for done in (await slow, await slow_as_well))


async def test_all_items_of_an_owner_together_have_a_time_limit() -> None:
    clock = SimulatedClock()
    provider = FakeCloudProvider(FakeCloud())
    provider.during = lambda request: clock.sleep(25)
    items = "\n".join(f"{{kind: Machine, name: m{number}}}" for number in range(5))

    done = await start_reconcile(build_pool(provider), FakeOwner({}), items)

    assert [each["state"] for each in done.status] == ["Ready", "Ready", "Failed", "Failed", "Failed"]


async def test_one_who_is_cancelled_while_a_call_holds_up_the_end_closes_the_providers_all_the_same() -> None:
    provider, released = FakeCloudProvider(FakeCloud()), asyncio.Event()

    async def stubborn(_: Any) -> None:
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()

    provider.during = stubborn
    pool = build_pool(provider)
    await start_reconcile(pool, FakeOwner({}))
    closing = asyncio.create_task(pool.close())
    await run_loop_turns()  # it starts to wait for the call
    closing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await closing
    assert provider.closed
    released.set()


async def test_a_pass_that_is_cancelled_ends_its_call_first() -> None:
    provider = FakeCloudProvider(FakeCloud())
    ended: list[str] = []
    begun = asyncio.Event()

    async def tidy(_: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("tidied up")

    provider.during = tidy
    running = start_reconcile(build_pool(provider), FakeOwner({}))
    await begun.wait()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == ["tidied up"]


async def test_a_provider_that_cancels_itself_does_not_cancel_the_pass() -> None:
    provider = FakeCloudProvider(FakeCloud())

    async def cancel(_: Any) -> None:
        raise asyncio.CancelledError

    provider.during = cancel
    done = await start_reconcile(build_pool(provider), FakeOwner({}))

    assert {each["message"] for each in done.status} == {"the provider cancelled its own call"}


async def test_answers_that_are_no_results_or_too_large_are_failures() -> None:
    class Wrong(FakeCloudProvider):
        async def reconcile(self, request: Any) -> Any:
            return {"outputs": 1} if request.name == "one" else await super().reconcile(request)

    done = await start_reconcile(build_pool(Wrong(FakeCloud())), FakeOwner({}))

    assert [each["message"] for each in done.status] == [
        "the provider's result: expected an ItemResult, found dict",
        "",
    ]


async def test_a_required_provider_that_is_absent_is_named_with_what_would_bring_it() -> None:
    with pytest.raises(ProviderNotFoundError) as caught:
        build_providers(ITEMS, build_pool(FakeCloudProvider(FakeCloud())), name="clouds")

    assert "spec.crds.shop.providers.clouds: provider clouds is not installed (did you mean cloud?)" in str(
        caught.value
    )
    assert 'an entry point "clouds" in the group "konverge.box.providers"' in str(caught.value)


async def test_a_provider_whose_library_is_absent_names_the_extra() -> None:
    def make() -> Any:
        raise ImportError("No module named 'psycopg'")

    with pytest.raises(ProviderNotFoundError, match=r"pip install 'konverge\[postgres\]'"):
        ProviderRegistry({"postgres": make}).get("postgres")


async def test_an_absent_provider_that_is_not_required_is_left_out_and_its_items_stay() -> None:
    cloud, owner = FakeCloud(), FakeOwner({})
    await start_reconcile(build_pool(FakeCloudProvider(cloud)), owner)

    pool = build_pool()
    step = build_providers(ITEMS, pool, required=False)
    done = await step.reconcile(owner.scope(), owner.read(), owner, owner)
    gone = await step.delete(owner.scope(), owner.read(), owner, owner)

    assert done.problems == ()
    assert [each["state"] for each in done.status] == ["Skipped"]
    assert len(cloud.things) == 2
    assert len(gone.problems) == 2, "an owner with remaining items must not be deleted"


async def test_closing_closes_every_provider_and_says_what_failed() -> None:
    class Broken(FakeCloudProvider):
        async def close(self) -> None:
            raise OSError("cannot close")

    broken, fine = Broken(FakeCloud(), "broken"), FakeCloudProvider(FakeCloud())

    with pytest.raises(ExceptionGroup):
        await build_pool(broken, fine).close()
    assert fine.closed


async def test_konverges_own_providers_are_found_by_their_entry_points() -> None:
    registry = ProviderRegistry.from_entry_points()

    assert [registry.get(name).name for name in ("aws", "postgres")] == ["aws", "postgres"]
    await registry.close()
