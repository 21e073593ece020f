"""What becomes of a request next, decided without a cluster."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.resolution.requests.dialect import without_content
from konverge.resolution.requests.lifecycle import (
    Act,
    Decision,
    FetchPhase,
    Phase,
    RequestState,
    Rules,
    Served,
    deadline_of,
    decide,
)
from konverge.resolution.requests.own import OwnRequests

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
RULES = Rules(timeout=timedelta(seconds=60))
FOREIGN = Rules(timeout=timedelta(seconds=60), keeps_lifecycle=False)
NEW = RequestState(Phase.NEW, CREATED)
PENDING = RequestState(Phase.PENDING, CREATED, deadline=CREATED + timedelta(seconds=60))
DONE = RequestState(Phase.DONE, CREATED, finished=CREATED + timedelta(seconds=10))


def at(seconds: float) -> datetime:
    return CREATED + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("state", "seconds", "rules", "served", "fetch", "act", "begins"),
    [
        (NEW, 0, RULES, Served.HERE, FetchPhase.NONE, Act.FETCH, True),
        (NEW, 0, RULES, Served.ELSEWHERE, FetchPhase.NONE, Act.WAIT, True),
        (NEW, 0, RULES, Served.NOWHERE, FetchPhase.NONE, Act.REFUSE, False),
        (NEW, 0, FOREIGN, Served.HERE, FetchPhase.NONE, Act.FETCH, False),
        (NEW, 0, FOREIGN, Served.ELSEWHERE, FetchPhase.NONE, Act.NOTHING, False),
        (NEW, 0, FOREIGN, Served.NOWHERE, FetchPhase.NONE, Act.NOTHING, False),
        (NEW, 61, RULES, Served.HERE, FetchPhase.NONE, Act.EXPIRE, False),
        (PENDING, 1, RULES, Served.HERE, FetchPhase.NONE, Act.FETCH, False),
        (PENDING, 1, RULES, Served.NOWHERE, FetchPhase.NONE, Act.WAIT, False),
        (PENDING, 60, RULES, Served.NOWHERE, FetchPhase.NONE, Act.EXPIRE, False),
        (PENDING, 60, RULES, Served.HERE, FetchPhase.RUNNING, Act.EXPIRE, False),
        (PENDING, 60, FOREIGN, Served.HERE, FetchPhase.RUNNING, Act.EXPIRE, False),
        (PENDING, 61, RULES, Served.HERE, FetchPhase.ENDED, Act.FINISH, False),
        (DONE, 11, RULES, Served.HERE, FetchPhase.ENDED, Act.WAIT, False),
        (DONE, 3700, RULES, Served.NOWHERE, FetchPhase.NONE, Act.REMOVE, False),
        (DONE, 3700, FOREIGN, Served.HERE, FetchPhase.NONE, Act.NOTHING, False),
    ],
)
def test_a_request_goes_on_by_its_state_and_by_who_serves_it(
    state: RequestState, seconds: float, rules: Rules, served: Served, fetch: FetchPhase, act: Act, begins: bool
) -> None:
    decision = decide(state, at(seconds), rules, served=served, fetch=fetch)
    assert (decision.act, decision.begins) == (act, begins)


@pytest.mark.parametrize("phase", [Phase.NEW, Phase.PENDING])
def test_content_that_is_there_is_never_fetched_again(phase: Phase) -> None:
    state = RequestState(phase, CREATED, has_result=True)
    for fetch in FetchPhase:
        assert decide(state, at(100), RULES, served=Served.HERE, fetch=fetch).act is Act.SETTLE


def test_a_request_is_looked_at_again_at_half_of_its_time_and_at_its_end() -> None:
    first = decide(PENDING, at(1), RULES, served=Served.HERE, fetch=FetchPhase.RUNNING)
    second = decide(PENDING, at(30), RULES, served=Served.HERE, fetch=FetchPhase.RUNNING)
    assert (first.is_slow, first.wake_at) == (False, at(30))
    assert (second.is_slow, second.wake_at) == (True, at(60))


def test_a_deadline_that_was_promised_stays_when_the_configuration_changes() -> None:
    longer = Rules(timeout=timedelta(hours=1))
    assert decide(PENDING, at(60), longer, served=Served.HERE, fetch=FetchPhase.RUNNING).act is Act.EXPIRE


def test_requests_that_are_to_stay_are_never_removed() -> None:
    rules = Rules(finished_lifetime=None)
    assert decide(DONE, at(10**9), rules, served=Served.HERE, fetch=FetchPhase.NONE) == Decision(Act.NOTHING)


@pytest.mark.parametrize(("seen", "begin"), [(-5, 0), (0.25, 0.25), (0.75, 0.75), (30, 1)])
def test_time_counts_from_the_creation_however_late_somebody_looks(seen: float, begin: float) -> None:
    assert deadline_of(CREATED, at(seen), timedelta(seconds=60)) == at(begin + 60)


@given(
    state=st.sampled_from([NEW, PENDING]),
    seconds=st.floats(0, 200),
    served=st.sampled_from(Served),
    fetch=st.sampled_from(FetchPhase),
)
def test_who_keeps_the_lifecycle_ends_every_request_or_looks_again(
    state: RequestState, seconds: float, served: Served, fetch: FetchPhase
) -> None:
    decision = decide(state, at(seconds), RULES, served=served, fetch=fetch)
    ends = decision.act in (Act.EXPIRE, Act.REFUSE, Act.FINISH, Act.SETTLE)
    assert ends or (decision.wake_at is not None and at(seconds) < decision.wake_at <= at(61))


def test_content_is_not_held_in_memory_and_that_there_is_some_is() -> None:
    metadata = {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{}]}
    held = without_content({"metadata": metadata, "status": {"data": "a" * 1000}})
    assert len(str(held)) < 200
    assert OwnRequests().state(held).has_result


def test_times_at_the_end_of_time_are_none_whoever_has_written_them() -> None:
    for text in ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"):
        status = {"deadline": text, "finishedAt": text, "conditions": [{"type": "Succeeded", "status": "True"}]}
        metadata = {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}
        state = OwnRequests().state({"metadata": metadata, "status": status})
        assert (state.deadline, state.finished) == (None, None)
