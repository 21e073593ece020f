"""What becomes of a request next, decided without a cluster."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_resolution._internal.requests.konverge_requests import KonvergeRequestFormat
from konverge_resolution._internal.requests.request_format import drop_content
from konverge_resolution._internal.requests.request_lifecycle import (
    FetchPhase,
    LifecycleOptions,
    RequestAction,
    RequestDecision,
    RequestPhase,
    RequestState,
    ResolverLocation,
    compute_deadline,
    decide,
)

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
RULES = LifecycleOptions(timeout=timedelta(seconds=60))
FOREIGN = LifecycleOptions(timeout=timedelta(seconds=60), keeps_lifecycle=False)
NEW = RequestState(RequestPhase.NEW, CREATED)
PENDING = RequestState(RequestPhase.PENDING, CREATED, deadline=CREATED + timedelta(seconds=60))
DONE = RequestState(RequestPhase.DONE, CREATED, finished=CREATED + timedelta(seconds=10))


def at(seconds: float) -> datetime:
    return CREATED + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("state", "seconds", "rules", "served", "fetch", "act", "begins"),
    [
        (NEW, 0, RULES, ResolverLocation.HERE, FetchPhase.NONE, RequestAction.FETCH, True),
        (NEW, 0, RULES, ResolverLocation.ELSEWHERE, FetchPhase.NONE, RequestAction.WAIT, True),
        (NEW, 0, RULES, ResolverLocation.NOWHERE, FetchPhase.NONE, RequestAction.REFUSE, False),
        (NEW, 0, FOREIGN, ResolverLocation.HERE, FetchPhase.NONE, RequestAction.FETCH, False),
        (NEW, 0, FOREIGN, ResolverLocation.ELSEWHERE, FetchPhase.NONE, RequestAction.NOTHING, False),
        (NEW, 0, FOREIGN, ResolverLocation.NOWHERE, FetchPhase.NONE, RequestAction.NOTHING, False),
        (NEW, 61, RULES, ResolverLocation.HERE, FetchPhase.NONE, RequestAction.EXPIRE, False),
        (PENDING, 1, RULES, ResolverLocation.HERE, FetchPhase.NONE, RequestAction.FETCH, False),
        (PENDING, 1, RULES, ResolverLocation.NOWHERE, FetchPhase.NONE, RequestAction.WAIT, False),
        (PENDING, 60, RULES, ResolverLocation.NOWHERE, FetchPhase.NONE, RequestAction.EXPIRE, False),
        (PENDING, 60, RULES, ResolverLocation.HERE, FetchPhase.RUNNING, RequestAction.EXPIRE, False),
        (PENDING, 60, FOREIGN, ResolverLocation.HERE, FetchPhase.RUNNING, RequestAction.EXPIRE, False),
        (PENDING, 61, RULES, ResolverLocation.HERE, FetchPhase.ENDED, RequestAction.FINISH, False),
        (DONE, 11, RULES, ResolverLocation.HERE, FetchPhase.ENDED, RequestAction.WAIT, False),
        (DONE, 3700, RULES, ResolverLocation.NOWHERE, FetchPhase.NONE, RequestAction.REMOVE, False),
        (DONE, 3700, FOREIGN, ResolverLocation.HERE, FetchPhase.NONE, RequestAction.NOTHING, False),
    ],
)
def test_a_request_goes_on_by_its_state_and_by_who_serves_it(
    state: RequestState,
    seconds: float,
    rules: LifecycleOptions,
    served: ResolverLocation,
    fetch: FetchPhase,
    act: RequestAction,
    begins: bool,
) -> None:
    decision = decide(state, at(seconds), rules, location=served, fetch=fetch)
    assert (decision.action, decision.is_start) == (act, begins)


@pytest.mark.parametrize("phase", [RequestPhase.NEW, RequestPhase.PENDING])
def test_content_that_is_there_is_never_fetched_again(phase: RequestPhase) -> None:
    state = RequestState(phase, CREATED, has_result=True)
    for fetch in FetchPhase:
        assert decide(state, at(100), RULES, location=ResolverLocation.HERE, fetch=fetch).action is RequestAction.SETTLE


def test_a_request_is_looked_at_again_at_half_of_its_time_and_at_its_end() -> None:
    first = decide(PENDING, at(1), RULES, location=ResolverLocation.HERE, fetch=FetchPhase.RUNNING)
    second = decide(PENDING, at(30), RULES, location=ResolverLocation.HERE, fetch=FetchPhase.RUNNING)
    assert (first.is_slow, first.requeue_at) == (False, at(30))
    assert (second.is_slow, second.requeue_at) == (True, at(60))


def test_a_deadline_that_was_promised_stays_when_the_configuration_changes() -> None:
    longer = LifecycleOptions(timeout=timedelta(hours=1))
    assert (
        decide(PENDING, at(60), longer, location=ResolverLocation.HERE, fetch=FetchPhase.RUNNING).action
        is RequestAction.EXPIRE
    )


def test_requests_that_are_to_stay_are_never_removed() -> None:
    rules = LifecycleOptions(finished_lifetime=None)
    assert decide(DONE, at(10**9), rules, location=ResolverLocation.HERE, fetch=FetchPhase.NONE) == RequestDecision(
        RequestAction.NOTHING
    )


@pytest.mark.parametrize(("seen", "begin"), [(-5, 0), (0.25, 0.25), (0.75, 0.75), (30, 1)])
def test_time_counts_from_the_creation_however_late_somebody_looks(seen: float, begin: float) -> None:
    assert compute_deadline(CREATED, at(seen), timedelta(seconds=60)) == at(begin + 60)


@given(
    state=st.sampled_from([NEW, PENDING]),
    seconds=st.floats(0, 200),
    served=st.sampled_from(ResolverLocation),
    fetch=st.sampled_from(FetchPhase),
)
def test_who_keeps_the_lifecycle_ends_every_request_or_looks_again(
    state: RequestState, seconds: float, served: ResolverLocation, fetch: FetchPhase
) -> None:
    decision = decide(state, at(seconds), RULES, location=served, fetch=fetch)
    ends = decision.action in (RequestAction.EXPIRE, RequestAction.REFUSE, RequestAction.FINISH, RequestAction.SETTLE)
    assert ends or (decision.requeue_at is not None and at(seconds) < decision.requeue_at <= at(61))


def test_content_is_not_held_in_memory_and_that_there_is_some_is() -> None:
    metadata = {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{}]}
    held = drop_content({"metadata": metadata, "status": {"data": "a" * 1000}})
    assert len(str(held)) < 200
    assert KonvergeRequestFormat().parse_state(held).has_result


def test_times_at_the_end_of_time_are_none_whoever_has_written_them() -> None:
    for text in ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"):
        status = {"deadline": text, "finishedAt": text, "conditions": [{"type": "Succeeded", "status": "True"}]}
        metadata = {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}
        state = KonvergeRequestFormat().parse_state({"metadata": metadata, "status": status})
        assert (state.deadline, state.finished) == (None, None)
