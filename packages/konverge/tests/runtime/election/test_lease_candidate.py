"""The state machine of one candidate, against a Lease that the test simulates."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from konverge._internal.runtime.election.lease_candidate import (
    CreateLease,
    GetLease,
    LeaseCandidate,
    LeaseRecord,
    UpdateLease,
    WaitForLease,
)
from konverge._internal.runtime.election.options import LeaseTiming
from konverge.clock import SeededEntropy
from konverge.kube import Object, ObjectKey

KEY = ObjectKey("default", "web")
TIMING = LeaseTiming(15, 10.0, 2.0)
WALL = datetime(2026, 1, 1, tzinfo=UTC)

# As client-go's leaseLock writes it (observed on kube-controller-manager 1.36), and as its release leaves it.
HELD_BY_CLIENT_GO: Object = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "web", "namespace": "default", "resourceVersion": "7", "uid": "u"},
    "spec": {
        "acquireTime": "2026-01-01T00:00:00.123456Z",
        "holderIdentity": "node_5b0b0c1e",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 3,
        "renewTime": "2026-01-01T08:00:00.654321Z",
    },
}
RELEASED_BY_CLIENT_GO: Object = {
    **HELD_BY_CLIENT_GO,
    "spec": {**HELD_BY_CLIENT_GO["spec"], "holderIdentity": "", "leaseDurationSeconds": 1},
}


def candidate(identity: str = "me") -> LeaseCandidate:
    return LeaseCandidate(KEY, identity, TIMING, entropy=SeededEntropy())


def to_stored_lease(lease: Object, version: str) -> Object:
    return {**lease, "metadata": {**lease["metadata"], "resourceVersion": version, "uid": "u"}}


def holder_since(now: float, identity: str = "me") -> tuple[LeaseCandidate, Object]:
    """Return a candidate that created the Lease at that time, and the Lease."""
    found = candidate(identity)
    assert found.decide(now, WALL) == GetLease()
    found.on_read(None, now)
    decision = found.decide(now, WALL)
    assert isinstance(decision, CreateLease)
    lease = to_stored_lease(decision.lease, "1")
    found.on_write(lease, now)
    return found, lease


def test_an_absent_lease_is_created() -> None:
    holder, lease = holder_since(100.0)
    assert lease["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    assert holder.seconds_left(100.0) == 10.0


def test_a_term_counts_from_the_moment_of_sending_not_of_the_answer() -> None:
    waiting = candidate()
    waiting.decide(0.0, WALL)
    waiting.on_read(None, 1.0)
    decision = waiting.decide(1.0, WALL)
    assert isinstance(decision, CreateLease)
    waiting.on_write(to_stored_lease(decision.lease, "1"), 4.0)
    assert waiting.term is not None
    assert waiting.term.until == 11.0


def test_an_answer_that_comes_after_the_renew_deadline_begins_no_term() -> None:
    waiting = candidate()
    waiting.decide(0.0, WALL)
    waiting.on_read(None, 0.0)
    decision = waiting.decide(0.0, WALL)
    assert isinstance(decision, CreateLease)
    waiting.on_write(to_stored_lease(decision.lease, "1"), 10.0)
    assert waiting.term is None


def test_a_holder_renews_within_the_retry_period_without_reading() -> None:
    holder, lease = holder_since(100.0)
    waits = holder.decide(100.0, WALL)
    assert isinstance(waits, WaitForLease)
    assert 1.0 < waits.seconds <= 2.0
    renews = holder.decide(102.0, WALL + timedelta(seconds=2))
    assert isinstance(renews, UpdateLease)
    assert renews.lease["metadata"]["resourceVersion"] == "1"
    assert renews.lease["spec"]["renewTime"] == "2026-01-01T00:00:02.000000Z"
    assert renews.lease["spec"]["acquireTime"] == lease["spec"]["acquireTime"]
    holder.on_write(to_stored_lease(renews.lease, "2"), 102.1)
    assert holder.term is not None
    assert holder.term.until == 112.0
    assert holder.term.number == 1


def test_a_foreign_lease_is_waited_for_by_the_local_clock_alone() -> None:
    waiting = candidate()
    waiting.decide(1000.0, WALL + timedelta(days=400))  # the wall clocks are unrelated
    waiting.on_read(HELD_BY_CLIENT_GO, 1000.0)
    assert isinstance(waiting.decide(1000.0, WALL), WaitForLease)
    assert waiting.decide(1014.9, WALL) == GetLease()
    waiting.on_read(HELD_BY_CLIENT_GO, 1014.9)
    last_wait = waiting.decide(1014.9, WALL)
    assert isinstance(last_wait, WaitForLease)
    assert last_wait.seconds == pytest.approx(0.1)
    assert waiting.decide(1015.0, WALL) == GetLease()
    waiting.on_read(HELD_BY_CLIENT_GO, 1015.0)
    takes = waiting.decide(1015.0, WALL)
    assert isinstance(takes, UpdateLease)
    assert takes.lease["metadata"]["resourceVersion"] == "7"
    assert takes.lease["spec"]["holderIdentity"] == "me"
    assert takes.lease["spec"]["leaseTransitions"] == 4


def test_a_renewal_by_another_holder_restarts_the_wait() -> None:
    waiting = candidate()
    waiting.decide(0.0, WALL)
    waiting.on_read(HELD_BY_CLIENT_GO, 0.0)
    renewed = {**HELD_BY_CLIENT_GO, "spec": {**HELD_BY_CLIENT_GO["spec"], "renewTime": "2026-01-01T08:00:02.000000Z"}}
    waiting.decide(0.0, WALL)
    waiting.decide(14.0, WALL)
    waiting.on_read(renewed, 14.0)
    waiting.decide(14.0, WALL)
    assert waiting.decide(28.0, WALL) == GetLease()
    waiting.on_read(renewed, 28.0)
    assert isinstance(waiting.decide(28.0, WALL), WaitForLease)


def test_a_new_label_does_not_prolong_a_dead_holders_lease() -> None:
    waiting = candidate()
    waiting.decide(0.0, WALL)
    waiting.on_read(HELD_BY_CLIENT_GO, 0.0)
    waiting.decide(0.0, WALL)
    waiting.decide(15.0, WALL)
    waiting.on_read(to_stored_lease(HELD_BY_CLIENT_GO, "8"), 15.0)
    takes = waiting.decide(15.0, WALL)
    assert isinstance(takes, UpdateLease)
    assert takes.lease["metadata"]["resourceVersion"] == "8"


def test_a_lease_that_client_go_has_released_is_taken_at_once() -> None:
    waiting = candidate()
    waiting.decide(0.0, WALL)
    waiting.on_read(RELEASED_BY_CLIENT_GO, 0.0)
    assert isinstance(waiting.decide(0.0, WALL), UpdateLease)


def test_a_released_lease_is_what_client_go_takes_at_once() -> None:
    holder, _ = holder_since(0.0)
    holder.release()
    assert holder.seconds_left(0.0) == 0.0  # before the request is sent
    released = holder.decide(1.0, WALL)
    assert isinstance(released, UpdateLease)
    assert released.lease["spec"]["holderIdentity"] == ""
    assert released.lease["spec"]["leaseDurationSeconds"] == 1
    holder.on_write(to_stored_lease(released.lease, "2"), 1.0)
    assert holder.has_no_claim
    assert holder.decide(1.0, WALL) == WaitForLease(math.inf)


def test_what_is_not_ours_in_a_lease_stays() -> None:
    kept = {
        **RELEASED_BY_CLIENT_GO,
        "metadata": {**RELEASED_BY_CLIENT_GO["metadata"], "labels": {"team": "a"}},
        "spec": {**RELEASED_BY_CLIENT_GO["spec"], "strategy": "OldestEmulationVersion"},
    }
    waiting = candidate()
    waiting.decide(0.0, WALL)
    waiting.on_read(kept, 0.0)
    takes = waiting.decide(0.0, WALL)
    assert isinstance(takes, UpdateLease)
    assert takes.lease["metadata"]["labels"] == {"team": "a"}
    assert takes.lease["spec"]["strategy"] == "OldestEmulationVersion"


def test_a_process_of_the_same_identity_is_another_holder() -> None:
    _, lease = holder_since(0.0, identity="web-0")
    twin = candidate("web-0")
    twin.decide(0.0, WALL)
    twin.on_read(lease, 0.0)
    assert isinstance(twin.decide(0.0, WALL), WaitForLease)
    assert twin.term is None


def test_a_write_whose_answer_was_lost_is_recognised_and_counts_from_when_it_was_sent() -> None:
    waiting = candidate()
    waiting.decide(0.0, WALL)
    waiting.on_read(None, 0.0)
    decision = waiting.decide(0.0, WALL)
    assert isinstance(decision, CreateLease)
    waiting.on_failure(3.0)
    assert waiting.term is None
    assert waiting.decide(5.0, WALL) == GetLease()
    waiting.on_read(to_stored_lease(decision.lease, "1"), 5.0)
    assert waiting.term is not None
    assert waiting.term.until == 10.0


def test_a_renewal_whose_answer_was_lost_does_not_end_the_term() -> None:
    holder, _ = holder_since(0.0)
    lost = holder.decide(2.0, WALL + timedelta(seconds=2))
    assert isinstance(lost, UpdateLease)
    holder.on_failure(4.0)
    again = holder.decide(6.0, WALL + timedelta(seconds=6))
    assert isinstance(again, UpdateLease)
    holder.on_conflict(6.0)  # from the time at which the lost one was sent
    assert holder.decide(6.0, WALL) == GetLease()
    holder.on_read(to_stored_lease(lost.lease, "2"), 6.0)
    assert holder.term is not None
    assert holder.term.number == 1
    assert holder.term.until == 12.0


def test_a_holder_that_cannot_renew_stops_at_the_renew_deadline() -> None:
    holder, _ = holder_since(0.0)
    moment = 0.0
    while holder.seconds_left(moment) > 0:
        decision = holder.decide(moment, WALL)
        if isinstance(decision, WaitForLease):
            moment += decision.seconds
        else:
            moment += holder.compute_request_timeout(moment)
            holder.on_failure(moment)
    assert moment == pytest.approx(10.0)
    assert isinstance(holder.decide(moment, WALL), WaitForLease)
    assert holder.term is None


def test_a_slow_server_gets_longer_attempts_first_and_a_second_one_always_fits() -> None:
    holder, _ = holder_since(0.0)
    assert holder.compute_request_timeout(2.0) == 4.0
    assert holder.compute_request_timeout(6.0) == 2.0
    assert holder.compute_request_timeout(9.0) == 1.0


def test_a_holder_has_lost_its_lease_when_it_reads_another_holder() -> None:
    holder, _ = holder_since(0.0)
    holder.decide(2.0, WALL)
    holder.on_conflict(2.0)
    assert holder.decide(2.0, WALL) == GetLease()
    holder.on_read(HELD_BY_CLIENT_GO, 2.0)
    assert holder.term is None
    assert isinstance(holder.decide(2.0, WALL), WaitForLease)


def test_a_holder_whose_lease_was_deleted_begins_a_new_term() -> None:
    holder, _ = holder_since(0.0)
    holder.decide(2.0, WALL)
    holder.on_conflict(2.0)
    holder.decide(2.0, WALL)
    holder.on_read(None, 2.0)
    assert holder.term is None
    creates = holder.decide(2.0, WALL)
    assert isinstance(creates, CreateLease)
    holder.on_write(to_stored_lease(creates.lease, "9"), 2.0)
    assert holder.term is not None
    assert holder.term.number == 2


def test_after_a_lapse_the_same_holder_gets_another_term() -> None:
    holder, _ = holder_since(0.0)
    late = holder.decide(11.0, WALL + timedelta(seconds=11))
    assert holder.term is None
    assert isinstance(late, UpdateLease)
    holder.on_write(to_stored_lease(late.lease, "2"), 11.0)
    assert holder.term is not None
    assert holder.term.number == 2


def test_a_holder_whose_term_ran_out_reads_the_lease_before_it_writes_again() -> None:
    holder, lease = holder_since(0.0)
    moment = 0.0
    while not isinstance(decision := holder.decide(moment, WALL), GetLease):
        if isinstance(decision, UpdateLease):
            holder.on_failure(moment)  # refused each time: the server rejects the object that it returned
        else:
            assert isinstance(decision, WaitForLease)
            moment += decision.seconds
        assert moment < 20.0
    holder.on_read(lease, moment)
    assert holder.term is None
    assert isinstance(holder.decide(moment, WALL), UpdateLease)


def test_a_response_to_another_request_establishes_no_holder() -> None:
    waiting = candidate()
    waiting.decide(0.0, WALL)
    waiting.on_read(None, 0.0)
    assert isinstance(waiting.decide(0.0, WALL), CreateLease)
    waiting.on_write(HELD_BY_CLIENT_GO, 0.0)
    assert waiting.term is None
    assert not waiting.is_recorded
    assert waiting.decide(2.0, WALL) == GetLease()


@pytest.mark.parametrize("broken", [{"metadata": 7}, {"spec": True}, {"spec": "held"}, {"metadata": None, "spec": 1.5}])
def test_a_lease_that_is_none_is_written_and_read_over(broken: Object) -> None:
    waiting = candidate()
    waiting.decide(0.0, WALL)
    waiting.on_read({**RELEASED_BY_CLIENT_GO, **broken}, 0.0)
    assert isinstance(waiting.decide(0.0, WALL), UpdateLease)
    waiting.on_failure(0.0)
    waiting.decide(2.0, WALL)
    waiting.on_read(HELD_BY_CLIENT_GO, 2.0)
    assert waiting.holder == "node_5b0b0c1e"


def test_a_suspended_holder_sends_nothing_and_lapses() -> None:
    holder, _ = holder_since(0.0)
    holder.suspend()
    assert holder.decide(2.0, WALL) == WaitForLease(8.0)
    assert holder.decide(10.0, WALL) == WaitForLease(math.inf)
    assert holder.term is None


def test_a_forsaken_lease_runs_out_and_is_not_renewed_afterwards() -> None:
    holder, _ = holder_since(0.0)
    holder.stop_renewing()
    assert holder.decide(2.0, WALL) == WaitForLease(8.0)
    assert holder.seconds_left(2.0) == 8.0
    assert holder.decide(10.0, WALL) == WaitForLease(math.inf)
    assert holder.term is None
    assert not holder.is_recorded


def test_a_candidate_that_is_refused_again_and_again_slows_down() -> None:
    holder, lease = holder_since(0.0)
    moment, requests = 2.0, 0
    while moment < 4.0:
        decision = holder.decide(moment, WALL)
        match decision:
            case WaitForLease(seconds):
                moment += seconds
            case GetLease():
                requests += 1
                holder.on_read(to_stored_lease(lease, f"{requests}x"), moment)  # a label changes continuously
            case _:
                requests += 1
                holder.on_conflict(moment)
    assert requests < 20


def test_two_renewals_of_one_moment_are_two_records() -> None:
    holder, lease = holder_since(0.0)
    renews = holder.decide(2.0, WALL)  # the wall clock stands still
    assert isinstance(renews, UpdateLease)
    assert LeaseRecord.from_lease(renews.lease) != LeaseRecord.from_lease(lease)


def test_an_older_list_does_not_overrule_what_was_written_since() -> None:
    holder, _ = holder_since(5.0)
    holder.observe(HELD_BY_CLIENT_GO, requested_at=4.0, now=6.0)
    assert holder.seconds_left(6.0) == 9.0


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        {},
        {"holderIdentity": 7, "leaseDurationSeconds": "15", "renewTime": "yesterday", "leaseTransitions": -1},
    ],
)
def test_a_lease_without_a_holder_is_free_despite_its_other_fields(spec: object) -> None:
    assert LeaseRecord.from_lease({"spec": spec}) == LeaseRecord()


def test_a_holder_without_a_duration_is_given_ours() -> None:
    waiting = candidate()
    waiting.decide(0.0, WALL)
    waiting.on_read(to_stored_lease({"metadata": {}, "spec": {"holderIdentity": "kubectl"}}, "1"), 0.0)
    waiting.decide(0.0, WALL)
    waiting.decide(14.0, WALL)
    waiting.on_read(to_stored_lease({"metadata": {}, "spec": {"holderIdentity": "kubectl"}}, "1"), 14.0)
    assert waiting.decide(14.0, WALL) == WaitForLease(1.0)
