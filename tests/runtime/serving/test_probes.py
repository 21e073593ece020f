"""What probes answer. Pure, but for the checks that are coroutine functions."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from konverge.clock import SimulatedClock
from konverge.errors import ConnectionFailedError, KindNotServedError
from konverge.kube import GroupVersionKind
from konverge.runtime.serving import Check, Sources
from konverge.runtime.serving.probes import Outcome, answer, answer_one, livez_checks, outcome_of, readyz_checks
from tests.runtime.serving.doubles import Informer

pytestmark = pytest.mark.anyio

FINE, BROKEN = Outcome("ping"), Outcome("database", "no answer")


async def failures(checks: list[Check]) -> dict[str, str]:
    outcomes = [await outcome_of(check) for check in checks]
    return {outcome.name: outcome.reason for outcome in outcomes if outcome.reason is not None}


async def test_all_well_is_ok_and_nothing_else() -> None:
    assert (answer("readyz", [FINE]).status, answer("readyz", [FINE]).text) == (200, "ok")


async def test_verbose_shows_each_check_as_a_kube_apiserver_does() -> None:
    found = answer("readyz", [FINE, Outcome("etcd", is_excluded=True)], exclude={"etcd"}, verbose=True)

    assert found.status == 200
    assert found.text == "[+]ping ok\n[+]etcd excluded: ok\nreadyz check passed\n"


async def test_a_failure_shows_all_checks_and_its_reason() -> None:
    found = answer("livez", [FINE, BROKEN])

    assert found.status == 500
    assert found.text == "[+]ping ok\n[-]database failed: no answer\nlivez check failed\n"


async def test_excluding_what_is_not_there_is_told() -> None:
    found = answer("readyz", [FINE], exclude={"no\nsuch"}, verbose=True)

    assert found.text == (
        '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "no such"\nreadyz check passed\n'
    )


async def test_one_check_alone_answers_for_itself() -> None:
    assert answer_one(FINE).text == "ok"
    assert answer_one(BROKEN).status == 500
    assert answer_one(BROKEN).text == "internal server error: no answer\n"


async def test_a_check_that_raises_has_failed_and_does_not_tell_why() -> None:
    def broken() -> str | None:
        raise ValueError("password=hunter2")

    found = await outcome_of(Check("mine", broken))

    assert found.reason == "the check itself failed with ValueError"


async def test_a_check_may_be_a_coroutine_function_and_its_reason_becomes_one_line() -> None:
    async def find() -> str | None:
        return "one\n[+]ping ok"

    assert (await outcome_of(Check("mine", find))).reason == "one [+]ping ok"


async def test_an_operator_at_work_is_ready() -> None:
    assert await failures(readyz_checks(Sources(informers=lambda: [Informer()]))) == {}


async def test_an_operator_that_has_not_listed_its_owners_is_not_ready() -> None:
    found = await failures(readyz_checks(Sources(is_started=lambda: False)))

    assert found == {"started": "the owners have not been listed yet"}


async def test_ready_needs_every_kind_synced_and_names_those_that_are_not() -> None:
    kinds = [Informer(GroupVersionKind("", "v1", f"Kind{number}"), synced=False) for number in range(7)]

    found = await failures(readyz_checks(Sources(informers=lambda: kinds)))

    assert found["informers-synced"].startswith("not synced: ")
    assert found["informers-synced"].endswith("Kind4 and 2 more")


async def test_ready_needs_every_kind_younger_than_the_bound() -> None:
    informer = Informer(age_seconds=180.0, problem=ConnectionFailedError("gone"))
    checks = readyz_checks(Sources(informers=lambda: [informer]))
    assert await failures(checks) == {}

    informer.age_seconds = 180.1

    assert await failures(checks) == {"informers-fresh": f"older than 180 s: {informer.gvk} (180 s)"}


async def test_the_bound_is_the_authors_to_choose() -> None:
    checks = readyz_checks(Sources(informers=lambda: [Informer(age_seconds=31.0)]), timedelta(seconds=30))

    assert "informers-fresh" in await failures(checks)


async def test_a_kind_that_is_not_served_does_not_hold_up_the_rest() -> None:
    informer = Informer(synced=False, age_seconds=900.0, problem=KindNotServedError("no such kind"))

    assert await failures(readyz_checks(Sources(informers=lambda: [informer]))) == {}


async def test_an_operator_that_stops_is_not_ready_but_live() -> None:
    sources = Sources(is_stopping=lambda: True)

    assert await failures(readyz_checks(sources)) == {"shutdown": "the operator is stopping"}
    assert await failures(livez_checks(sources)) == {}


async def test_ready_needs_the_webhooks_where_there_are_some() -> None:
    assert await failures(readyz_checks(Sources(webhooks_problem=lambda: "the port is taken"))) == {
        "webhooks": "the port is taken"
    }
    assert await failures(readyz_checks(Sources(webhooks_problem=lambda: ""))) == {}


async def test_a_controller_whose_loop_has_died_is_not_live() -> None:
    clock = SimulatedClock()
    controller = asyncio.create_task(clock.sleep(10), name="controller webapp")
    checks = livez_checks(Sources(tasks=lambda: [controller]))
    assert await failures(checks) == {}

    await controller

    assert await failures(checks) == {"tasks": "ended, and nobody asked for it: controller webapp"}
    assert await failures(livez_checks(Sources(tasks=lambda: [controller], is_stopping=lambda: True))) == {}
