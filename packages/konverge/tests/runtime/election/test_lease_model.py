"""Several candidates with delays, lost responses and clocks of different rates: never two may write at one time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from konverge._internal.runtime.election.lease_candidate import (
    CreateLease,
    GetLease,
    LeaseAction,
    LeaseCandidate,
    WaitForLease,
)
from konverge._internal.runtime.election.options import LeaseTiming
from konverge.clock import SeededEntropy
from konverge.kube import Object, ObjectKey

TIMING = LeaseTiming(15, 10.0, 2.0)
# 1.2 : 0.85 is 1.41, below lease duration : renew deadline.
SLOWEST, FASTEST = 0.85, 1.2
CANDIDATES = 3

which = st.integers(0, CANDIDATES - 1)


class Server:
    """One Lease, as the API server stores it."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self._version = 0

    def serve(self, decision: LeaseAction) -> tuple[str, Object | None]:
        """Return the outcome as the name of the candidate's method, and the object."""
        if isinstance(decision, GetLease):
            return "read", self.lease
        assert not isinstance(decision, WaitForLease)
        if isinstance(decision, CreateLease):
            if self.lease is not None:
                return "refused", None
        elif self.lease is None or self.lease["metadata"] != decision.lease["metadata"]:
            return "refused", None
        self._version += 1
        self.lease = {**decision.lease, "metadata": {"resourceVersion": str(self._version)}}
        return "wrote", self.lease

    def remove(self) -> None:
        self.lease = None


@dataclass
class Process:
    """A candidate with its own clock and its one request."""

    candidate: LeaseCandidate
    rate: float
    offset: float
    sent: LeaseAction | None = None
    outcome: tuple[str, Object | None] | None = None

    def clock(self, now: float) -> float:
        return self.offset + now * self.rate

    def may_write(self, now: float) -> bool:
        return self.candidate.seconds_left(self.clock(now)) > 0


class Election(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.now = 0.0
        self.processes: list[Process] = []
        self.wandering: list[LeaseAction] = []  # cancelled by their senders, still in transit to the server

    @initialize(
        rates=st.lists(st.floats(SLOWEST, FASTEST), min_size=CANDIDATES, max_size=CANDIDATES),
        seed=st.integers(0, 1000),
    )
    def start(self, rates: list[float], seed: int) -> None:
        for number, rate in enumerate(rates):
            # Two of them have one identity, as two Pods of a misconfigured operator would.
            identity = f"replica-{number // 2}"
            entropy = SeededEntropy(seed + number)
            self.processes.append(
                Process(LeaseCandidate(ObjectKey("ns", "web"), identity, TIMING, entropy=entropy), rate, 1e4 * number)
            )

    @rule(number=which)
    def think(self, number: int) -> None:
        process = self.processes[number]
        if process.sent is None:
            self.ask(process)

    @rule(number=which)
    def serve(self, number: int) -> None:
        process = self.processes[number]
        if process.sent is not None and process.outcome is None:
            process.outcome = self.server.serve(process.sent)

    @rule(number=which)
    def answer(self, number: int) -> None:
        process = self.processes[number]
        if process.outcome is None:
            return
        outcome, lease = process.outcome
        process.sent = process.outcome = None
        now = process.clock(self.now)
        if outcome == "read":
            process.candidate.on_read(lease, now)
        elif outcome == "refused":
            process.candidate.on_conflict(now)
        else:
            assert lease is not None
            process.candidate.on_write(lease, now)

    @rule(number=which)
    def give_up(self, number: int) -> None:
        process = self.processes[number]
        if process.sent is None:
            return
        if process.outcome is None and not isinstance(process.sent, GetLease):
            self.wandering.append(process.sent)
        process.sent = process.outcome = None
        process.candidate.on_failure(process.clock(self.now))

    @rule(pick=st.integers(0, 10))
    def arrive_late(self, pick: int) -> None:
        if self.wandering:
            self.server.serve(self.wandering.pop(pick % len(self.wandering)))

    @rule(seconds=st.one_of(st.floats(0.0, 3.0), st.floats(3.0, 40.0)))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(number=which, rounds=st.integers(1, 6))
    def work(self, number: int, rounds: int) -> None:
        """Simulate a period without failures, in which time passes as the candidate requests."""
        process = self.processes[number]
        for _ in range(rounds):
            if process.sent is None:
                wait = self.ask(process)
                if wait is not None:
                    self.now += min(wait.seconds, 20.0) / process.rate
                    self.check()
            self.serve(number)
            self.answer(number)
            self.check()

    @rule(number=which, other=which, seconds=st.floats(0.0, 12.0))
    def be_answered_slowly(self, number: int, other: int, seconds: float) -> None:
        """The server acts at once, another process sees it at once, and the response is delayed."""
        self.think(number)
        self.serve(number)
        self.work(other, 2)
        self.now += seconds
        self.answer(number)
        self.work(other, 8)

    @rule(number=which)
    def release(self, number: int) -> None:
        self.processes[number].candidate.release()

    @rule(number=which)
    def forsake(self, number: int) -> None:
        self.processes[number].candidate.stop_renewing()

    @rule(number=which)
    def campaign(self, number: int) -> None:
        self.processes[number].candidate.campaign()

    @rule(number=which, suspended=st.booleans())
    def suspend(self, number: int, suspended: bool) -> None:
        self.processes[number].candidate.suspend(suspended=suspended)

    @rule(number=which, ago=st.floats(0.0, 5.0))
    def observe_list(self, number: int, ago: float) -> None:
        process = self.processes[number]
        now = process.clock(self.now)
        if process.sent is None:
            process.candidate.observe(self.server.lease, now - ago, now)

    def ask(self, process: Process) -> WaitForLease | None:
        wall = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now)
        decision = process.candidate.decide(process.clock(self.now), wall)
        if isinstance(decision, WaitForLease):
            return decision
        process.sent = decision
        return None

    @invariant()
    def check(self) -> None:
        writers = [process.candidate.key for process in self.processes if process.may_write(self.now)]
        assert len(writers) <= 1


TestElection = pytest.mark.slow(Election.TestCase)
TestElection.settings = settings(max_examples=300, stateful_step_count=60, deadline=None)
