"""Fail-over: which failures let the next source be asked, and what is told of those before."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from konverge_resolution import REASON_TRAITS, Digest, Reason, Reference, ResolutionError
from konverge_resolution._internal.engine import Engine, ResolutionResult
from konverge_resolution._internal.http_failures import build_status_error
from konverge_resolution._internal.source_failover import resolve_first
from tests.resolution.fake_source import CLOCK, WEB, FakeSource, build_document, build_engine, build_reference

pytestmark = pytest.mark.anyio

HAS_IT = {"1": {"a": build_document("a")}}


def source(name: str, reason: Reason | None = None, seconds: float = 0.0) -> FakeSource:
    failure = None if reason is None else ResolutionError(reason, f"{name} says no")
    return FakeSource(dict(HAS_IT), name=name, failure=failure, seconds=seconds)


async def first_of(engine: Engine, *names: str, seconds: float | None = None) -> tuple[Reference, ResolutionResult]:
    references = [build_reference("a", resolver=name) for name in names]
    return await resolve_first(engine, references, WEB, clock=CLOCK, seconds=seconds)


@pytest.mark.parametrize("reason", [reason for reason in Reason if REASON_TRAITS[reason].allows_failover])
async def test_what_is_not_there_or_not_reached_lets_the_next_be_asked_and_the_one_that_answered_is_named(
    reason: Reason,
) -> None:
    one = source("one", reason)
    reference, result = await first_of(build_engine(one, source("two")), "one", "two")
    assert (reference.resolver, result.resolver) == ("two", "two")
    assert one.lookups


@pytest.mark.parametrize("reason", [reason for reason in Reason if not REASON_TRAITS[reason].allows_failover])
async def test_what_is_refused_or_not_what_it_should_be_ends_it(reason: Reason) -> None:
    two = source("two")
    with pytest.raises(ResolutionError) as caught:
        await first_of(build_engine(source("zero", Reason.NOT_FOUND), source("one", reason), two), "zero", "one", "two")
    assert caught.value.reason is reason
    assert caught.value.message == "one says no (failed before: zero (NotFound))"
    assert two.fetched == []


async def test_a_digest_that_does_not_fit_is_no_reason_to_ask_elsewhere() -> None:
    two = source("two")
    wrong = Reference("one", {"path": "a"}, Digest.of(b"other"))
    with pytest.raises(ResolutionError, match="the content does not match its digest"):
        await resolve_first(
            build_engine(source("one"), two), [wrong, build_reference("a", resolver="two")], WEB, clock=CLOCK
        )
    assert two.fetched == []


async def test_when_nobody_has_it_one_message_tells_of_all_with_the_reason_that_may_pass() -> None:
    engine = build_engine(
        source("one", Reason.NOT_FOUND), source("two", Reason.UNREACHABLE), source("three", Reason.NOT_FOUND)
    )
    with pytest.raises(ResolutionError) as caught:
        await first_of(engine, "one", "two", "three")
    assert caught.value.reason is Reason.UNREACHABLE
    assert caught.value.message == (
        "all 3 sources failed: one: NotFound: one says no; two: Unreachable: two says no; "
        "three: NotFound: three says no"
    )


async def test_one_that_hangs_leaves_the_others_their_share_of_the_time() -> None:
    before = CLOCK.monotonic()
    one = source("one", seconds=100)
    reference, _ = await first_of(build_engine(one, source("two")), "one", "two", seconds=10)
    assert reference.resolver == "two"
    assert one.lookups
    assert CLOCK.monotonic() - before <= 10


async def test_a_list_of_nothing_is_refused() -> None:
    with pytest.raises(ResolutionError, match="expected at least one source"):
        await first_of(build_engine())


@dataclass
class Status:
    status: int
    headers: dict[str, str] = field(default_factory=dict)


def test_of_all_client_errors_only_what_is_missing_or_may_pass_lets_the_next_be_asked() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    passing = {
        status
        for status in range(400, 500)
        if build_status_error(Status(status), "it", has_credential=True, now=now).traits.allows_failover
    }
    assert passing == {404, 407, 408, 410, 421, 425, 429}
