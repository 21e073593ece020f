from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from konverge._internal.runtime.queue import DEFAULT_BACKOFF, Queue
from konverge.clock import SeededEntropy


def a_queue() -> Queue[str]:
    return Queue(SeededEntropy(1))


def take_all(queue: Queue[str], now: float) -> list[str]:
    taken = []
    while (key := queue.take(now)) is not None:
        taken.append(key)
    return taken


def test_due_keys_come_in_the_order_they_were_added() -> None:
    queue = a_queue()
    for key in "cab":
        queue.add(key, 0.0)

    assert take_all(queue, 0.0) == ["c", "a", "b"]


def test_higher_priority_overtakes() -> None:
    queue = a_queue()
    queue.add("old-1", 0.0, priority=-100)
    queue.add("old-2", 0.0, priority=-100)
    queue.add("changed", 1.0)

    assert take_all(queue, 1.0) == ["changed", "old-1", "old-2"]


def test_a_raised_priority_overtakes_without_losing_the_place_among_equals() -> None:
    queue = a_queue()
    queue.add("first", 0.0, priority=-100)
    queue.add("second", 0.0)
    queue.compute_wait_seconds(0.0)
    queue.add("first", 1.0, priority=0)

    assert take_all(queue, 1.0) == ["first", "second"]


def test_duplicates_merge_to_the_earliest_time() -> None:
    queue = a_queue()
    queue.add("a", 0.0, not_before=50.0)
    queue.add("a", 0.0, not_before=10.0)
    queue.add("a", 0.0, not_before=90.0)

    assert queue.compute_wait_seconds(0.0) == 10.0
    assert queue.take(9.9) is None
    assert take_all(queue, 100.0) == ["a"]


def test_a_key_added_while_it_runs_runs_exactly_once_more() -> None:
    queue = a_queue()
    queue.add("a", 0.0)
    queue.take(0.0)
    queue.add("a", 1.0)
    queue.add("a", 2.0)
    assert queue.take(3.0) is None, "it runs at most once at a time"

    queue.mark_done("a", 3.0)

    assert take_all(queue, 3.0) == ["a"]
    queue.mark_done("a", 4.0)
    assert queue.compute_wait_seconds(4.0) is None


def test_a_failed_key_waits_longer_each_time_and_success_resets() -> None:
    queue = a_queue()
    queue.add("a", 0.0)
    now, waits = 0.0, []
    for _ in range(30):
        assert queue.take(now) == "a"
        waits.append(queue.mark_failed("a", now))
        assert queue.take(now) is None
        now += waits[-1]

    assert waits[0] == pytest.approx(0.0075, abs=0.0025)
    assert all(500.0 <= wait <= 1000.0 for wait in waits[-5:])
    assert queue.count_failures("a") == 30

    queue.take(now)
    queue.mark_done("a", now)
    queue.add("a", now)
    queue.take(now)
    assert queue.mark_failed("a", now) <= 0.01


def test_a_change_during_a_failing_run_is_not_made_to_wait() -> None:
    queue = a_queue()
    queue.add("a", 0.0)
    queue.take(0.0)
    queue.add("a", 0.5)
    queue.mark_failed("a", 1.0)

    assert queue.compute_wait_seconds(1.0) == 0.0
    assert queue.count_failures("a") == 1


def test_failures_that_additions_bring_on_leave_the_back_off_as_it_is() -> None:
    queue = a_queue()
    queue.add("a", 0.0)
    now, waits = 0.0, []
    for _ in range(22):
        queue.add("a", now)
        assert queue.take(now) == "a"
        waits.append(queue.mark_failed("a", now))
        now += 0.6 / 22

    assert max(waits) <= 2 * 0.6 + 0.01, "the back-offs that have elapsed are no longer than the time that has"
    assert queue.count_failures("a") == 22


def test_an_addition_that_fails_does_not_put_off_the_end_of_a_back_off() -> None:
    queue = a_queue()
    queue.add("a", 0.0)
    begun, end = 0.0, 0.0
    for _ in range(15):
        begun = end
        assert queue.take(begun) == "a"
        end = begun + queue.mark_failed("a", begun)
    now = (begun + end) / 2
    queue.add("a", now)
    queue.take(now)
    queue.mark_failed("a", now)

    assert queue.compute_wait_seconds(now) == pytest.approx(end - now)


def fail_for_long(queue: Queue[str], key: str, *, is_refused: bool = False) -> float:
    """Let the key fail for an hour; return the times."""
    queue.add(key, 0.0)
    now = 0.0
    while now < 3600.0:
        assert queue.take(now) == key
        now += queue.mark_failed(key, now, is_refused=is_refused)
    return now


def test_a_change_resets_the_back_off() -> None:
    queue = a_queue()
    now = fail_for_long(queue, "a")
    queue.reset_backoff("a", now)
    queue.take(now)

    assert queue.mark_failed("a", now) <= 0.01


def test_changes_that_never_end_reset_the_back_off_every_ten_seconds_alone() -> None:
    queue = a_queue()
    now = fail_for_long(queue, "a")
    end, runs = now + 60.0, 0
    while now < end:
        queue.reset_backoff("a", now)
        queue.take(now)
        runs += 1
        now += queue.mark_failed("a", now)

    assert runs <= 6 * 12, "about eleven back-offs fit into ten seconds"


def test_what_the_cluster_refuses_is_tried_every_half_a_minute() -> None:
    queue = a_queue()
    now = fail_for_long(queue, "a", is_refused=True)
    queue.take(now)

    assert 15.0 <= queue.mark_failed("a", now, is_refused=True) <= 30.0


def test_a_refusal_shortens_the_back_off_of_other_failures() -> None:
    queue = a_queue()
    now = fail_for_long(queue, "a")
    queue.take(now)
    assert queue.mark_failed("a", now) >= 500.0
    queue.add("a", now + 1.0)
    queue.take(now + 1.0)

    assert queue.mark_failed("a", now + 1.0, is_refused=True) <= 30.0


@pytest.mark.slow
def test_thousands_of_refused_keys_do_not_flood_the_server() -> None:
    queue: Queue[int] = Queue(SeededEntropy(1))
    keys, now, tries = 3000, 0.0, 0
    for key in range(keys):
        queue.add(key, now)
    while now < 4000.0:
        while (taken := queue.take(now)) is not None:
            tries += now >= 3000.0
            queue.mark_failed(taken, now, is_refused=True)
        now += queue.compute_wait_seconds(now) or 0.0

    assert 15.0 <= tries / 1000.0 <= 30.0, "about twenty attempts a second, however many keys there are"


def test_a_failing_key_delays_no_other_key() -> None:
    queue = a_queue()
    queue.add("bad", 0.0)
    queue.add("good", 0.0)
    queue.take(0.0)
    queue.mark_failed("bad", 0.0)

    assert take_all(queue, 0.0) == ["good"]


def test_a_key_that_failed_keeps_its_priority() -> None:
    queue = a_queue()
    queue.add("old", 0.0, priority=-100)
    queue.take(0.0)
    queue.mark_failed("old", 0.0)
    queue.add("new", 1.0)

    assert take_all(queue, 1.0) == ["new", "old"]


def test_finishing_what_does_not_run_is_a_mistake() -> None:
    queue = a_queue()
    queue.add("a", 0.0)

    with pytest.raises(ValueError, match="found one that is not running"):
        queue.mark_done("a", 0.0)


def test_the_history_of_a_key_has_its_events_and_their_causes() -> None:
    queue = a_queue()
    queue.add("a", 0.0, reason="Deployment default/web changed")
    queue.add("b", 0.0)
    queue.take(1.0)
    queue.mark_failed("a", 2.0, reason="boom")

    assert [(moment.time, moment.event, moment.detail) for moment in queue.history("a")] == [
        (0.0, "added", "Deployment default/web changed"),
        (1.0, "started", ""),
        (2.0, "failed", "boom"),
    ]


def test_the_history_is_limited() -> None:
    queue: Queue[int] = Queue(SeededEntropy(1), history_length=3)
    for _ in range(10):
        queue.add(1, 0.0)

    assert len(queue.history(1)) == 3


def test_superseded_places_do_not_pile_up() -> None:
    queue = a_queue()
    for turn in range(10_000):
        queue.add("a", float(turn), not_before=turn + 1000.0)
        queue.add("a", float(turn))
        queue.take(float(turn))
        queue.mark_done("a", float(turn))

    assert len(queue._early) < 200


@given(st.integers(min_value=1, max_value=10_000), st.integers())
def test_a_backoff_stays_within_its_bounds(failures: int, seed: int) -> None:
    seconds = DEFAULT_BACKOFF.compute_delay(failures, SeededEntropy(seed))

    assert 0.005 <= seconds <= 1000.0


@dataclass
class Wanted:
    """The model's state of a key: its due time, its priority, and whether it runs."""

    not_before: float | None = None
    priority: int = 0
    running: bool = False
    failures: int = 0
    elapsed: int = 0
    """Backoffs that have begun since the last success or reset; each began when the previous one had elapsed."""
    retry_at: float = -1.0
    reset_at: float = -1000.0


class QueueMachine(RuleBasedStateMachine):
    """Any order of additions, runs and time against a model that only knows the guarantees."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: Queue[int] = Queue(SeededEntropy(7))
        self.model: dict[int, Wanted] = {}
        self.now = 0.0

    def get_model(self, key: int) -> Wanted:
        return self.model.setdefault(key, Wanted())

    def due(self) -> dict[int, tuple[float, int]]:
        return {
            key: (wanted.not_before, wanted.priority)
            for key, wanted in self.model.items()
            if wanted.not_before is not None and wanted.not_before <= self.now and not wanted.running
        }

    @rule(
        key=st.integers(0, 5),
        priority=st.sampled_from([-100, 0, 0, 10]),
        delay=st.one_of(st.none(), st.sampled_from([-5.0, 0.0, 0.5, 3.0, 60.0])),
    )
    def add(self, key: int, priority: int, delay: float | None) -> None:
        not_before = None if delay is None else self.now + delay
        self.queue.add(key, self.now, priority=priority, not_before=not_before)
        wanted, moment = self.get_model(key), self.now + max(0.0, delay or 0.0)
        first = wanted.not_before is None
        wanted.not_before = moment if wanted.not_before is None else min(wanted.not_before, moment)
        wanted.priority = priority if first else max(priority, wanted.priority)

    @rule(seconds=st.sampled_from([0.001, 0.4, 1.0, 30.0, 2000.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        due = self.due()
        key = self.queue.take(self.now)
        assert (key is None) == (not due)
        if key is not None:
            moment, priority = due[key]
            assert priority == max(other for _, other in due.values())
            assert moment == min(other for other, level in due.values() if level == priority)
            wanted = self.model[key]
            wanted.running, wanted.not_before = True, None

    @precondition(lambda self: any(wanted.running for wanted in self.model.values()))
    @rule(data=st.data(), fails=st.booleans(), is_refused=st.booleans())
    def finish(self, data: Any, fails: bool, is_refused: bool) -> None:
        key = data.draw(st.sampled_from(sorted(key for key, wanted in self.model.items() if wanted.running)))
        wanted = self.model[key]
        wanted.running = False
        if wanted.not_before is not None:
            wanted.not_before = max(self.now, wanted.not_before)
        if fails:
            seconds = self.queue.mark_failed(key, self.now, is_refused=is_refused)
            wanted.failures += 1
            if self.now >= wanted.retry_at:
                wanted.elapsed += 1
                assert 0.005 <= seconds <= min(1000.0, 2 * 0.005 * 2 ** (wanted.elapsed - 1))
            else:
                assert 0.0 < seconds <= wanted.retry_at - self.now
                assert is_refused or self.now + seconds == pytest.approx(wanted.retry_at)
            if is_refused:
                assert seconds <= 30.0
            moment = wanted.retry_at = self.queue._entries[key].retry_at
            assert moment - self.now == seconds
            wanted.not_before = moment if wanted.not_before is None else min(wanted.not_before, moment)
        else:
            self.queue.mark_done(key, self.now)
            wanted.failures = wanted.elapsed = 0
            wanted.retry_at = -1.0
            if wanted.not_before is None:
                wanted.reset_at = -1000.0  # no state of a finished key is kept

    @rule(key=st.integers(0, 5))
    def reset_backoff(self, key: int) -> None:
        self.queue.reset_backoff(key, self.now)
        wanted = self.get_model(key)
        if wanted.elapsed and self.now - wanted.reset_at >= 10.0:
            wanted.elapsed, wanted.retry_at, wanted.reset_at = 0, -1.0, self.now

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.queue) == sum(wanted.not_before is not None for wanted in self.model.values())
        assert self.queue.running == sum(wanted.running for wanted in self.model.values())
        for key, wanted in self.model.items():
            assert self.queue.count_failures(key) == wanted.failures

    @invariant()
    def the_wait_ends_when_the_next_key_is_due(self) -> None:
        moments = [w.not_before for w in self.model.values() if w.not_before is not None and not w.running]
        expected = max(0.0, min(moments) - self.now) if moments else None
        assert self.queue.compute_wait_seconds(self.now) == expected

    def teardown(self) -> None:
        """Check that every requested key gets its run in the end, whatever happened before."""
        self.now += 10_000.0
        for key, wanted in self.model.items():
            if wanted.running:
                self.queue.mark_done(key, self.now)
        owed = sorted(key for key, wanted in self.model.items() if wanted.not_before is not None)
        taken = []
        while (due := self.queue.take(self.now)) is not None:
            taken.append(due)
            self.queue.mark_done(due, self.now)
        assert sorted(taken) == owed
        assert self.queue.compute_wait_seconds(self.now) is None
        assert not self.queue._entries, "nothing of a finished key is kept"


QueueMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
TestQueueMachine = pytest.mark.slow(QueueMachine.TestCase)


def build_fair_queue() -> Queue[tuple[str, int]]:
    return Queue(SeededEntropy(), group=lambda key: key[0])


def test_a_group_with_one_key_does_not_wait_for_the_keys_of_another() -> None:
    queue = build_fair_queue()
    for number in range(1000):
        queue.add(("busy", number), 0.0)
    taken = [queue.take(0.0) for _ in range(10)]
    queue.add(("quiet", 0), 1.0)
    assert ("quiet", 0) in [queue.take(1.0) for _ in range(2)]
    assert taken == [("busy", number) for number in range(10)]


def test_groups_take_turns_and_a_group_keeps_its_order() -> None:
    queue = build_fair_queue()
    for group, count in (("a", 4), ("b", 2), ("c", 1)):
        for number in range(count):
            queue.add((group, number), 0.0)
    order = [queue.take(0.0) for _ in range(7)]
    assert order == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("a", 2), ("a", 3)]


def test_a_higher_priority_precedes_the_turns_and_has_turns_of_its_own() -> None:
    queue = build_fair_queue()
    for number in range(3):
        queue.add(("a", number), 0.0)
        queue.add(("a", 10 + number), 0.0, priority=1)
    queue.add(("b", 0), 0.0)
    queue.add(("b", 1), 0.0)
    queue.add(("b", 1), 0.0, priority=1)
    order = [queue.take(0.0) for _ in range(8)]
    assert order[:4] == [("a", 10), ("b", 1), ("a", 11), ("a", 12)]
    assert order[4:] == [("a", 0), ("b", 0), ("a", 1), ("a", 2)]


def test_groups_without_due_keys_take_no_memory() -> None:
    queue = build_fair_queue()
    for number in range(5000):
        queue.add((f"group-{number}", 0), 0.0)
    while (key := queue.take(0.0)) is not None:
        queue.mark_done(key, 0.0)
    assert queue._turns == {}  # pyright: ignore[reportPrivateUsage]  # only its memory shows it
