"""Probe responses. Pure, except for checks that are coroutine functions."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from konverge._internal.runtime.observability import HealthCheck, RuntimeSources
from konverge._internal.runtime.observability.probes import (
    HealthCheckResult,
    build_check_response,
    build_livez_checks,
    build_probe_response,
    build_readyz_checks,
    run_check,
)
from konverge.clock import SimulatedClock
from konverge.errors import ConnectionFailedError, KindNotServedError
from konverge.kube import GroupVersionKind
from tests.runtime.observability.fake_sources import FakeInformer

pytestmark = pytest.mark.anyio

FINE, BROKEN = HealthCheckResult("ping"), HealthCheckResult("database", "no answer")


async def failures(checks: list[HealthCheck]) -> dict[str, str]:
    outcomes = [await run_check(check) for check in checks]
    return {outcome.name: outcome.reason for outcome in outcomes if outcome.reason is not None}


async def test_all_well_is_ok_and_nothing_else() -> None:
    assert (build_probe_response("readyz", [FINE]).status, build_probe_response("readyz", [FINE]).text) == (200, "ok")


async def test_verbose_shows_each_check_as_a_kube_apiserver_does() -> None:
    found = build_probe_response(
        "readyz", [FINE, HealthCheckResult("etcd", is_excluded=True)], exclude={"etcd"}, verbose=True
    )

    assert found.status == 200
    assert found.text == "[+]ping ok\n[+]etcd excluded: ok\nreadyz check passed\n"


async def test_a_failure_shows_all_checks_and_its_reason() -> None:
    found = build_probe_response("livez", [FINE, BROKEN])

    assert found.status == 500
    assert found.text == "[+]ping ok\n[-]database failed: no answer\nlivez check failed\n"


async def test_excluding_an_unknown_check_is_reported() -> None:
    found = build_probe_response("readyz", [FINE], exclude={"no\nsuch"}, verbose=True)

    assert found.text == (
        '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "no such"\nreadyz check passed\n'
    )


async def test_one_check_alone_answers_for_itself() -> None:
    assert build_check_response(FINE).text == "ok"
    assert build_check_response(BROKEN).status == 500
    assert build_check_response(BROKEN).text == "internal server error: no answer\n"


async def test_a_check_that_raises_fails_without_the_text_of_its_exception() -> None:
    def raise_error() -> str | None:
        raise ValueError("password=hunter2")

    found = await run_check(HealthCheck("mine", raise_error))

    assert found.reason == "the check raised ValueError"


async def test_a_check_may_be_a_coroutine_function_and_its_reason_becomes_one_line() -> None:
    async def find() -> str | None:
        return "one\n[+]ping ok"

    assert (await run_check(HealthCheck("mine", find))).reason == "one [+]ping ok"


async def test_an_operator_at_work_is_ready() -> None:
    assert await failures(build_readyz_checks(RuntimeSources(informers=lambda: [FakeInformer()]))) == {}


async def test_an_operator_that_has_not_listed_its_owners_is_not_ready() -> None:
    found = await failures(build_readyz_checks(RuntimeSources(is_started=lambda: False)))

    assert found == {"started": "the owners are not listed yet"}


async def test_ready_needs_every_kind_synced_and_names_those_that_are_not() -> None:
    kinds = [FakeInformer(GroupVersionKind("", "v1", f"Kind{number}"), synced=False) for number in range(7)]

    found = await failures(build_readyz_checks(RuntimeSources(informers=lambda: kinds)))

    assert found["informers-synced"].startswith("not synced: ")
    assert found["informers-synced"].endswith("Kind4 and 2 more")


async def test_ready_needs_every_kind_younger_than_the_bound() -> None:
    informer = FakeInformer(age_seconds=180.0, last_error=ConnectionFailedError("gone"))
    checks = build_readyz_checks(RuntimeSources(informers=lambda: [informer]))
    assert await failures(checks) == {}

    informer.age_seconds = 180.1

    assert await failures(checks) == {"informers-fresh": f"older than 180 s: {informer.gvk} (180 s)"}


async def test_the_bound_is_the_authors_to_choose() -> None:
    checks = build_readyz_checks(
        RuntimeSources(informers=lambda: [FakeInformer(age_seconds=31.0)]), timedelta(seconds=30)
    )

    assert "informers-fresh" in await failures(checks)


async def test_a_kind_that_is_not_served_does_not_hold_up_the_rest() -> None:
    informer = FakeInformer(synced=False, age_seconds=900.0, last_error=KindNotServedError("no such kind"))

    assert await failures(build_readyz_checks(RuntimeSources(informers=lambda: [informer]))) == {}


async def test_an_operator_that_stops_is_not_ready_but_live() -> None:
    sources = RuntimeSources(is_stopping=lambda: True)

    assert await failures(build_readyz_checks(sources)) == {"shutdown": "the operator is stopping"}
    assert await failures(build_livez_checks(sources)) == {}


async def test_ready_needs_the_webhooks_where_there_are_some() -> None:
    assert await failures(build_readyz_checks(RuntimeSources(webhooks_unready_reason=lambda: "the port is taken"))) == {
        "webhooks": "the port is taken"
    }
    assert await failures(build_readyz_checks(RuntimeSources(webhooks_unready_reason=lambda: ""))) == {}


async def test_a_controller_whose_loop_has_died_is_not_live() -> None:
    clock = SimulatedClock()
    controller = asyncio.create_task(clock.sleep(10), name="controller webapp")
    checks = build_livez_checks(RuntimeSources(tasks=lambda: [controller]))
    assert await failures(checks) == {}

    await controller

    assert await failures(checks) == {"tasks": "ended unexpectedly: controller webapp"}
    assert (
        await failures(build_livez_checks(RuntimeSources(tasks=lambda: [controller], is_stopping=lambda: True))) == {}
    )
