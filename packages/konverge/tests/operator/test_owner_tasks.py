"""Timers and long-running tasks of owners, on either cluster."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta

import aiohttp
import pytest

from konverge._internal.operator.process_builder import build_process
from konverge.cache import CacheOptions
from konverge.clock import SystemEntropy
from konverge.errors import BuildError, TerminalError
from konverge.kube import Condition, GroupVersionKind, Object
from konverge.observability import ObservabilityOptions
from konverge.operator import Operator, OwnerContext, Result, RunOptions
from konverge.types import apps_v1
from tests.operator.sample_operator import (
    CONFIG_MAP,
    DEPLOYMENT,
    SHOP,
    LooseShop,
    OperatorHarness,
    Shop,
    find_free_address,
    settings,
)
from tests.operator.test_leadership import election, replica, shards, take_lease

pytestmark = pytest.mark.anyio

EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
SECOND = timedelta(seconds=1)
NOW = timedelta(0)


class Tasks:
    """The long-running tasks of one test: which run, and which have started and ended."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.greetings: list[str] = []
        self.ended: list[str] = []

    async def follow(self, shop: Shop, ctx: OwnerContext) -> None:
        name = shop.metadata.name
        self.running.add(name)
        self.greetings.append(f"{name} {shop.spec.greeting}")
        try:
            await asyncio.Event().wait()
        finally:
            self.running.discard(name)
            self.ended.append(name)


def build_operator() -> Operator:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    return operator


async def list_events(town: OperatorHarness, *reasons: str) -> list[Object]:
    found = await town.client.list(EVENT, namespace=town.namespace)
    return [event for event in found.items if event["reason"] in reasons]


async def test_a_timer_runs_for_each_owner_until_it_is_deleted(town: OperatorHarness) -> None:
    operator, runs = build_operator(), Counter[str]()

    @operator.runs_timer(Shop, interval=SECOND, initial_delay=NOW)
    async def open_till(shop: Shop, ctx: OwnerContext) -> None:
        runs[shop.metadata.name] += 1

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.create_shop("market")
        await town.cluster.eventually(lambda: min(runs["corner"], runs["market"]) >= 3, describe="three runs each")
        await town.client.delete(SHOP, town.key("corner"))
        await town.clock.sleep(1.5)
        before = runs.copy()
        await town.cluster.eventually(lambda: runs["market"] >= before["market"] + 2, describe="the other goes on")

    assert runs["corner"] == before["corner"]


async def test_the_interval_lies_between_the_runs(town: OperatorHarness) -> None:
    operator, times = build_operator(), list[float]()

    @operator.runs_timer(Shop, interval=SECOND, initial_delay=timedelta(seconds=2))
    async def count(shop: Shop, ctx: OwnerContext) -> Result | None:
        times.append(ctx.clock.monotonic())
        return Result(requeue_after=timedelta(seconds=0.2)) if len(times) == 2 else None

    async with town.running_operator(operator):
        begin = town.clock.monotonic()
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: len(times) == 4, describe="four runs")

    gaps = [later - earlier for earlier, later in zip([begin, *times], times, strict=False)]
    assert gaps[0] >= 2.0
    assert [gap >= least for gap, least in zip(gaps[1:], (1.0, 0.2, 1.0), strict=True)] == [True] * 3
    assert gaps[2] < 1.0, "a result can shorten one interval"


async def test_a_timer_writes_its_conditions_and_triggers_no_reconcile_by_its_reads(town: OperatorHarness) -> None:
    operator, reconciles, runs = Operator("shops"), list[str](), list[str]()

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        reconciles.append(shop.metadata.name)

    @operator.runs_timer(Shop, interval=timedelta(hours=1), initial_delay=NOW)
    async def check(shop: Shop, ctx: OwnerContext) -> None:
        key = town.key("of-others")
        found = [obj for obj in await ctx.cluster.list(CONFIG_MAP, namespace=key.namespace) if key.name in str(obj)]
        runs.append(shop.metadata.name)
        own = {"name": "of-the-timer", "namespace": key.namespace}
        await ctx.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": own}, field_manager="timer")
        ctx.stage(Condition("Checked", "True", "Found", str(len(found))))

    others = {"name": "of-others", "namespace": town.namespace}
    await town.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": others})
    async with town.running_operator(operator):
        await town.create_shop("corner")
        checked = await town.wait_for_condition("corner", "Found", "Checked")
        await town.wait_until_quiet()
        before = len(reconciles)
        for name in ("of-others", "of-the-timer"):
            await town.client.patch(CONFIG_MAP, town.key(name), {"data": {"a": "b"}}, patch_type="merge")
        await town.wait_until_quiet()

    assert checked.message == "1"
    assert len(reconciles) == before
    assert runs == ["corner"]


async def test_a_failure_is_an_event_and_is_repeated(town: OperatorHarness) -> None:
    operator, runs = build_operator(), list[str]()

    @operator.runs_timer(Shop, interval=SECOND, initial_delay=NOW)
    async def count(shop: Shop, ctx: OwnerContext) -> None:
        runs.append(shop.spec.greeting)
        if shop.spec.greeting == "rude":
            raise ValueError("no shop greets like that")

    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="rude")
        (failure,) = await town.cluster.eventually(
            lambda: list_events(town, "TimerFailed"), describe="an event reports the failure"
        )
        ready = await town.wait_for_condition("corner", "Healthy")
        await town.cluster.eventually(lambda: len(runs) >= 3, describe="it is repeated")
        await town.change("corner", greeting="Hello")
        (recovery,) = await town.cluster.eventually(
            lambda: list_events(town, "Recovered"), describe="an event reports the recovery"
        )

    assert (failure["type"], failure["note"]) == ("Warning", "count: ValueError: no shop greets like that")
    assert recovery["note"] == "count succeeds again."
    assert ready.status == "True"


async def test_a_timer_that_is_terminal_begins_again_with_a_changed_owner(town: OperatorHarness) -> None:
    operator, runs = build_operator(), list[str]()

    @operator.runs_timer(Shop, interval=timedelta(seconds=0.2), initial_delay=NOW)
    async def count(shop: Shop, ctx: OwnerContext) -> None:
        runs.append(shop.spec.greeting)
        if shop.spec.greeting == "rude":
            raise TerminalError("no shop greets like that")

    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="rude")
        await town.cluster.eventually(lambda: runs, describe="it runs")
        await town.clock.sleep(1.0)
        assert runs == ["rude"]
        await town.change("corner", greeting="Hello")
        await town.cluster.eventually(lambda: runs.count("Hello") >= 2, describe="it runs again")


async def test_a_run_that_takes_too_long_is_cancelled(town: OperatorHarness) -> None:
    operator, runs = build_operator(), list[str]()

    @operator.runs_timer(Shop, interval=SECOND, initial_delay=NOW, timeout=SECOND)
    async def hang(shop: Shop, ctx: OwnerContext) -> None:
        runs.append(shop.metadata.name)
        await asyncio.Event().wait()

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: len(runs) >= 2, describe="it runs again")


async def test_a_task_runs_as_long_as_its_owner_exists(town: OperatorHarness) -> None:
    operator, tasks = build_operator(), Tasks()
    operator.runs_task(Shop)(tasks.follow)

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.create_shop("market")
        await town.cluster.eventually(lambda: tasks.running == {"corner", "market"}, describe="both run")
        await town.client.delete(SHOP, town.key("corner"))
        await town.cluster.eventually(lambda: tasks.running == {"market"}, describe="one has ended")
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: tasks.running == {"corner", "market"}, describe="the new one runs")
        await town.wait_until_quiet()

    assert tasks.running == set(), "all have ended with the operator"
    assert sorted(tasks.ended) == ["corner", "corner", "market"]


async def test_a_task_ends_before_the_finalizer_of_its_owner(town: OperatorHarness) -> None:
    operator, tasks = build_operator(), Tasks()
    operator.runs_task(Shop)(tasks.follow)

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> Result | None:
        return Result(requeue_after=SECOND) if tasks.running else None

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: tasks.running == {"corner"}, describe="it runs")
        await town.client.delete(SHOP, town.key("corner"))

        async def is_gone() -> bool:
            return not await town.exists(SHOP, "corner")

        await town.cluster.eventually(is_gone, describe="the shop is gone")

    assert tasks.ended == ["corner"]


@pytest.mark.slow
async def test_a_change_of_the_spec_restarts_a_task(town: OperatorHarness) -> None:
    operator, tasks = build_operator(), Tasks()
    operator.runs_task(Shop)(tasks.follow)

    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="Hello")
        await town.cluster.eventually(lambda: tasks.running, describe="it runs")
        await town.wait_until_ready("corner")
        labels = {"metadata": {"labels": {"a": "b"}}}
        await town.client.patch(SHOP, town.key("corner"), labels, patch_type="merge")
        await town.wait_until_quiet()
        assert tasks.greetings == ["corner Hello"], "neither the status nor a label restarts it"
        await town.change("corner", greeting="Ahoy")
        await town.cluster.eventually(
            lambda: tasks.greetings == ["corner Hello", "corner Ahoy"], describe="it is restarted"
        )

    assert tasks.ended == ["corner", "corner"]


async def test_a_task_that_catches_its_cancellation_is_reported_and_cancelled_again(
    town: OperatorHarness, caplog: pytest.LogCaptureFixture
) -> None:
    operator, caught = build_operator(), list[str]()

    @operator.runs_task(Shop)
    async def follow(shop: Shop, ctx: OwnerContext) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                caught.append(shop.spec.greeting)
                if len(caught) >= 3:
                    raise

    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="Hello")
        await town.wait_until_ready("corner")
        await town.change("corner", greeting="Ahoy")
        await town.cluster.eventually(lambda: len(caught) == 3, 60.0, describe="the third cancellation")

    assert caught[:3] == ["Hello"] * 3, "no second run begins before the first one has ended"
    assert caplog.text.count("still running 10 s after it was cancelled") == 1


async def test_a_task_that_returns_runs_again_only_if_it_says_so(town: OperatorHarness) -> None:
    operator, runs = build_operator(), Counter[str]()

    @operator.runs_task(Shop)
    async def follow(shop: Shop, ctx: OwnerContext) -> Result | None:
        runs[shop.spec.greeting] += 1
        return Result(requeue_after=timedelta(seconds=0.2)) if shop.spec.greeting == "again" else None

    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="once")
        await town.create_shop("market", greeting="again")
        await town.cluster.eventually(lambda: runs["again"] >= 5, describe="one runs again")
        assert runs["once"] == 1
        await town.change("corner", greeting="changed")
        await town.cluster.eventually(lambda: runs["changed"] == 1, describe="the changed one runs")


async def test_a_task_that_fails_runs_again(town: OperatorHarness) -> None:
    operator, runs = build_operator(), list[str]()

    @operator.runs_task(Shop)
    async def follow(shop: Shop, ctx: OwnerContext) -> None:
        runs.append(shop.metadata.name)
        if len(runs) < 3:
            raise OSError("the line is dead")
        await asyncio.Event().wait()

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: len(runs) == 3, describe="it runs again")
        (failure,) = await town.cluster.eventually(
            lambda: list_events(town, "TaskFailed"), describe="an event reports the failure"
        )

    assert failure["note"].startswith("follow: OSError: the line is dead")


async def test_more_owners_than_the_limit_wait(town: OperatorHarness, caplog: pytest.LogCaptureFixture) -> None:
    operator, tasks = build_operator(), Tasks()
    operator.runs_task(Shop, limit=2)(tasks.follow)

    async with town.running_operator(operator):
        for name in ("a", "b", "c", "d"):
            await town.create_shop(name)
        await town.cluster.eventually(lambda: len(tasks.running) == 2, describe="two run")
        await town.wait_until_ready("a", "b", "c", "d")
        assert len(tasks.running) == 2
        assert "shop/follow: 2 owners have a running task, which is the limit" in caplog.text
        first = tasks.greetings[0].split()[0]
        await town.client.delete(SHOP, town.key(first))
        await town.cluster.eventually(lambda: len(tasks.greetings) == 3, describe="a third one runs")


async def test_a_stopping_operator_does_not_wait_for_tasks(town: OperatorHarness) -> None:
    operator, tasks = build_operator(), Tasks()
    operator.runs_task(Shop)(tasks.follow)
    options = RunOptions((town.namespace,), grace=timedelta(seconds=60))
    client = town.cluster.new_client("stopping")
    process = build_process(operator.registered, client, options, clock=town.clock, entropy=SystemEntropy())
    running = asyncio.create_task(process.run())
    await town.create_shop("corner")
    await town.cluster.eventually(lambda: tasks.running == {"corner"}, describe="it runs")
    begin = town.clock.monotonic()

    process.stop()
    await running

    assert town.clock.monotonic() - begin < 20
    assert tasks.ended == ["corner"]


async def test_only_the_replica_with_the_lease_runs_tasks_and_timers(town: OperatorHarness) -> None:
    first, second, runs = Tasks(), Tasks(), Counter[str]()

    def build(name: str, tasks: Tasks) -> Operator:
        operator = build_operator()
        operator.runs_task(Shop)(tasks.follow)

        @operator.runs_timer(Shop, interval=timedelta(seconds=0.5), initial_delay=NOW)
        async def count(shop: Shop, ctx: OwnerContext) -> None:
            runs[name] += 1

        return operator

    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(replica(town, "replica-1", election(town, "one"), build("one", first)))
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: first.running and runs["one"], describe="the leader runs both")
        await stack.enter_async_context(replica(town, "replica-2", election(town, "two"), build("two", second)))
        await town.clock.sleep(2.0)
        assert second.greetings == []
        assert not runs["two"]

        await one.stop()
        await town.cluster.eventually(lambda: second.running and runs["two"], describe="the other one took over")

    assert first.running == second.running == set()


async def test_with_shards_each_owner_has_one_task(town: OperatorHarness) -> None:
    first, second = Tasks(), Tasks()
    names = [f"shop-{number:02}" for number in range(12)]

    def build(tasks: Tasks) -> Operator:
        operator = build_operator()
        operator.runs_task(Shop)(tasks.follow)
        return operator

    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(replica(town, "replica-1", shards(town, "one"), build(first)))
        for name in names:
            await town.create_shop(name)
        await town.cluster.eventually(lambda: first.running == set(names), describe="one replica runs all")
        await stack.enter_async_context(replica(town, "replica-2", shards(town, "two"), build(second)))
        await town.cluster.eventually(
            lambda: second.running and first.running | second.running == set(names), 90.0, describe="both run some"
        )
        assert not first.running & second.running

        await one.stop()
        await town.cluster.eventually(lambda: second.running == set(names), 90.0, describe="the other one runs all")

    assert first.running == second.running == set()


async def test_a_lost_lease_ends_the_tasks(town: OperatorHarness) -> None:
    operator, tasks, runs = build_operator(), Tasks(), list[float]()
    operator.runs_task(Shop)(tasks.follow)

    @operator.runs_timer(Shop, interval=timedelta(seconds=0.5), initial_delay=NOW)
    async def count(shop: Shop, ctx: OwnerContext) -> None:
        runs.append(ctx.clock.monotonic())

    async with replica(town, "replica-1", election(town, "one"), operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: tasks.running and runs, describe="both run")
        await take_lease(town)
        await town.cluster.eventually(lambda: not tasks.running, describe="the task has ended")
        before = len(runs)
        await town.clock.sleep(2.0)

    assert len(runs) == before


@pytest.mark.real_time
async def test_timers_and_tasks_are_counted_in_the_metrics(town: OperatorHarness) -> None:
    operator, tasks = build_operator(), Tasks()
    operator.runs_task(Shop)(tasks.follow)

    @operator.runs_timer(Shop, interval=timedelta(hours=1), initial_delay=NOW)
    async def count(shop: Shop, ctx: OwnerContext) -> None:
        return

    address = find_free_address()
    options = RunOptions((town.namespace,), observability=ObservabilityOptions(address, "0"))
    async with town.running_operator(operator, options), aiohttp.ClientSession() as session:

        async def list_samples() -> list[str]:
            async with session.get(f"http://{address}/metrics") as answer:
                return (await answer.text()).splitlines()

        await town.create_shop("corner")
        await town.create_shop("market")
        await town.cluster.eventually(lambda: len(tasks.running) == 2, describe="the tasks run")

        async def are_counted() -> bool:
            samples = await list_samples()
            return {
                'controller_runtime_active_workers{controller="shop/follow"} 2.0',
                'controller_runtime_reconcile_total{controller="shop/count",result="requeue_after"} 2.0',
                'konverge_queue_delayed{controller="shop/count",name="shop/count"} 2.0',
            } <= set(samples)

        await town.cluster.eventually(are_counted, describe="the metrics have the runs")


def test_functions_that_cannot_run_are_refused() -> None:
    operator = build_operator()

    with pytest.raises(BuildError) as failure:

        @operator.runs_timer(Shop, interval=NOW, initial_delay=timedelta(seconds=-1), workers=0)  # type: ignore[arg-type]  # the mistake
        def count(shop: Shop) -> None:
            raise AssertionError("never called")

    assert failure.value.errors == (
        "workers: expected a whole number, 1 or more, found 0",
        "interval: expected 0.1 s or more, found 0:00:00",
        "initial_delay: expected 0 s or more, found -1 day, 23:59:59",
        "expected an async function of the owner and the context, found another one",
    )


def test_times_of_another_type_are_refused() -> None:
    operator = build_operator()

    with pytest.raises(BuildError) as failure:
        operator.runs_timer(Shop, interval=5, initial_delay="1 s", timeout=60)(Tasks().follow)  # type: ignore[arg-type]  # the mistake

    assert failure.value.errors == (
        "timeout: expected a timedelta, found int",
        "interval: expected a timedelta, found int",
        "initial_delay: expected a timedelta, found str",
    )


async def test_results_and_exceptions_of_any_kind_end_neither_the_task_nor_the_operator(
    town: OperatorHarness,
) -> None:
    operator, runs = build_operator(), Counter[str]()

    @operator.runs_timer(Shop, interval=SECOND, initial_delay=NOW)
    async def nonsense(shop: Shop, ctx: OwnerContext) -> Result | None:
        runs["nonsense"] += 1
        return "soon"  # type: ignore[return-value]  # the mistake

    @operator.runs_task(Shop)
    async def quits(shop: Shop, ctx: OwnerContext) -> None:
        runs["quits"] += 1
        raise SystemExit(1)

    @operator.runs_task(Shop)
    async def gives_up(shop: Shop, ctx: OwnerContext) -> None:
        runs["gives_up"] += 1
        raise asyncio.CancelledError

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(
            lambda: min(runs["nonsense"], runs["quits"], runs["gives_up"]) >= 3, describe="all are repeated"
        )
        await town.wait_until_ready("corner")


async def test_a_task_that_stages_conditions_of_its_deployment_is_not_restarted_by_them(
    town: OperatorHarness,
) -> None:
    """The API server gives a Deployment a new generation with each change of its annotations."""
    operator, starts = Operator("sidecars"), list[int]()
    operator.caches("apps/v1/Deployment", CacheOptions(label_selector="example.com/followed"))

    @operator.reconciles("apps/v1/Deployment")
    async def reconcile(deployment: apps_v1.Deployment, ctx: OwnerContext) -> None:
        return

    @operator.runs_task("apps/v1/Deployment")
    async def follow(deployment: apps_v1.Deployment, ctx: OwnerContext) -> None:
        starts.append(deployment["spec"]["replicas"])
        for text in ("one", "two", "three"):
            ctx.stage(Condition("Followed", "True", "Seen", text))
            await ctx.flush_status()
        await asyncio.Event().wait()

    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "konverge.test/app:1"}]}}
    metadata = {"name": "web", "namespace": town.namespace, "labels": {"example.com/followed": "true"}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    async with town.running_operator(operator):
        await town.client.create(
            {**deployment, "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}}
        )
        await town.cluster.eventually(lambda: starts == [1], describe="it runs")
        await town.wait_until_quiet()
        live = await town.client.get(DEPLOYMENT, town.key("web"))
        assert live["metadata"]["generation"] >= 4
        assert starts == [1]
        await town.client.patch(DEPLOYMENT, town.key("web"), {"spec": {"replicas": 2}}, patch_type="merge")
        await town.cluster.eventually(lambda: starts == [1, 2], describe="the changed one runs")


def test_a_limit_of_none_is_refused() -> None:
    with pytest.raises(BuildError) as failure:
        build_operator().runs_task(Shop, limit=0)(Tasks().follow)

    assert failure.value.errors == ("limit: expected a whole number, 1 or more, found 0",)


def test_a_name_is_given_once() -> None:
    operator = build_operator()
    operator.runs_task(Shop)(Tasks().follow)

    with pytest.raises(BuildError, match="Shop has a timer or task of that name already"):
        operator.runs_timer(Shop, interval=SECOND)(Tasks().follow)


def test_a_class_without_a_reconcile_is_refused() -> None:
    operator = build_operator()

    @operator.runs_task(LooseShop)
    async def follow(shop: LooseShop, ctx: OwnerContext) -> None:
        raise AssertionError("never called")

    with pytest.raises(BuildError, match="LooseShop has the function follow, but no reconcile"):
        operator.registered.validate()
