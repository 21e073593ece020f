"""One candidate for one Lease: when to read, when to write what, and until when it may act as the holder. Pure.

The protocol is client-go's (``tools/leaderelection``), and its processes can take part. Nobody compares clocks: a
candidate notes at which moment *of its own clock* it saw the record change, and takes the Lease when it has not
changed for as long as the record says. Every write names the resource version that it is based on, so of two
candidates who write at once one is refused.

The holder counts from the moment at which it *sent* the last renewal that it knows was applied, which nobody can have
seen earlier, and stops at the renew deadline. Two processes may therefore act at one time only if one's clock runs
faster than the other's by more than lease duration : renew deadline.

Three things differ from client-go, each on the safe side. A record is ours if we have sent it, not if it has our
identity: a process of the same identity, an earlier one or a twin, is somebody else. The moment until which the holder
may act is a deadline, not the end of a loop of attempts. And the Lease is looked at again at the very moment at which
it runs out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from konverge.clock import Entropy
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.timestamps import format_micro_time, parse_time
from konverge.runtime.election.options import LeaseTiming

__all__ = [
    "LEASE",
    "CreateLease",
    "GetLease",
    "LeaseAction",
    "LeaseCandidate",
    "LeaseObservation",
    "LeaseRecord",
    "Term",
    "UpdateLease",
    "WaitForLease",
]

LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")

# How long a released Lease says that it lasts: the shortest that the server takes (client-go writes the same).
_RELEASED_DURATION = 1

# A pause between two attempts is drawn from so much of the retry period. Not above it: how late a candidate sees a
# renewal is how late it takes over.
_JITTER = (0.7, 0.95)

# The API's int32. Who has written the last number counts no further, or the server would refuse every holder to come.
_MAX_TRANSITIONS = 2**31 - 1

# Writes whose outcome is unknown, of which the last ones are remembered: each lasts about a retry period, and what was
# sent a lease duration ago can make nobody the holder any more.
_MAX_PENDING = 32


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says (``spec``).

    Args:
        holder: Who holds it; empty for nobody.
        duration: After how many seconds without a change it may be taken; 0 where it does not say.
        acquired: When the holder got it, by the holder's clock.
        renewed: When the holder renewed it last, by the holder's clock.
        transitions: How often it has changed hands.
    """

    holder: str = ""
    duration: int = 0
    acquired: datetime | None = None
    renewed: datetime | None = None
    transitions: int = 0

    @classmethod
    def from_lease(cls, lease: Mapping[str, Any]) -> LeaseRecord:
        """From an object; whatever is missing, or is not what it should be, counts as not said."""
        spec = lease.get("spec")
        if not isinstance(spec, Mapping):
            return cls()
        holder = spec.get("holderIdentity")
        return cls(
            holder if isinstance(holder, str) else "",
            _parse_count(spec.get("leaseDurationSeconds")),
            _parse_time(spec.get("acquireTime")),
            _parse_time(spec.get("renewTime")),
            _parse_count(spec.get("leaseTransitions")),
        )

    def write_to(self, lease: Object) -> Object:
        """The object with this as its record; everything else that it has stays."""
        found = lease.get("spec")
        spec = dict(found) if isinstance(found, Mapping) else {}
        spec |= {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration,
            "acquireTime": None if self.acquired is None else format_micro_time(self.acquired),
            "renewTime": None if self.renewed is None else format_micro_time(self.renewed),
            "leaseTransitions": self.transitions,
        }
        return {**lease, "spec": spec}


@dataclass(frozen=True, slots=True)
class LeaseObservation:
    """A record, and since when (monotonic, our own clock) it has been seen unchanged."""

    record: LeaseRecord
    since: float

    def update(self, record: LeaseRecord, now: float) -> LeaseObservation:
        """The observation after the record was read again."""
        return self if record == self.record else LeaseObservation(record, now)

    def compute_expiry(self, default_duration: int) -> float:
        """The moment from which it may be taken: never in the past of its first sight, unless nobody holds it.

        Args:
            default_duration: For a record that has a holder and no duration. (client-go takes such a Lease at once.)
        """
        return self.since + (self.record.duration or default_duration) if self.record.holder else -math.inf


@dataclass(frozen=True, slots=True)
class Term:
    """One uninterrupted time as the holder.

    Args:
        number: Counts this candidate's terms: what was begun in one term is over in the next.
        until: The moment (monotonic) up to which the candidate may act as the holder, as far as is known.
    """

    number: int
    until: float


@dataclass(frozen=True, slots=True)
class GetLease:
    """Get the Lease."""


@dataclass(frozen=True, slots=True)
class CreateLease:
    """Create the Lease."""

    lease: Object


@dataclass(frozen=True, slots=True)
class UpdateLease:
    """Replace the Lease; the object has the resource version that this is based on."""

    lease: Object


@dataclass(frozen=True, slots=True)
class WaitForLease:
    """Nothing before so many seconds have passed, unless the candidate is told something; may be infinite."""

    seconds: float


LeaseAction: TypeAlias = GetLease | CreateLease | UpdateLease | WaitForLease


class LeaseCandidate:
    """The state of one candidate for one Lease.

    The driver asks `decide`, does what it says, and tells what came of it: `read`, `on_write`, `refused` or `failed`.
    Between a decision to send something and what came of it, it asks nothing.

    Args:
        key: The Lease.
        identity: Who the candidate is.
        timing: The three times.
        entropy: Draws the pauses.
        labels: What a Lease gets that the candidate creates.
        is_campaigning: Try to get the Lease; see `campaign`.

    Attributes:
        term: The present term; None when the candidate is not the holder. It may have run out: see `seconds_left`.
    """

    def __init__(
        self,
        key: ObjectKey,
        identity: str,
        timing: LeaseTiming,
        *,
        entropy: Entropy,
        labels: Mapping[str, str] = {},
        campaigns: bool = True,
    ) -> None:
        self.key = key
        self.identity = identity
        self.term: Term | None = None
        self._timing = timing
        self._entropy = entropy
        self._labels = dict(labels)
        self._campaigns = campaigns
        self._suspended = False
        self._releasing = False
        self._is_renewal_stopped = False
        self._has_let_go = False
        self._lease: Object | None = None
        self._seen: LeaseObservation | None = None
        self._known = False  # whether `_seen` is recent enough to act on
        self._mine: LeaseRecord | None = None
        self._in_flight: tuple[LeaseRecord, float] | None = None
        self._pending_records: dict[LeaseRecord, float] = {}
        self._last_asked = -math.inf
        self._refusals = 0
        self._next_at = -math.inf
        self._terms = 0

    @property
    def holder(self) -> str:
        """Who holds the Lease, as far as was seen; empty for nobody."""
        return "" if self._seen is None else self._seen.record.holder

    @property
    def lease(self) -> Object | None:
        """The Lease as it was last seen; None if there was none."""
        return self._lease

    @property
    def is_recorded(self) -> bool:
        """Tell whether the record, as it was last seen, is ours; it may have run out."""
        return self._mine is not None

    @property
    def has_no_claim(self) -> bool:
        """Tell whether the Lease is not ours and no write is open that could make it ours."""
        return self._mine is None and not self._pending_records and self._in_flight is None

    @property
    def has_let_go(self) -> bool:
        """Tell whether the last term ended because this candidate was told to release."""
        return self._has_let_go

    @property
    def is_campaigning(self) -> bool:
        """Tell whether this candidate tries to get the Lease."""
        return self._campaigns

    def seconds_left(self, now: float) -> float:
        """For how long the candidate may act as the holder."""
        return 0.0 if self.term is None else max(0.0, self.term.until - now)

    def campaign(self, *, wanted: bool = True) -> None:
        """Try to get the Lease from now on, or no longer. Who holds it goes on holding it."""
        self._campaigns = wanted
        if wanted:
            self._releasing = self._is_renewal_stopped = self._has_let_go = False

    def suspend(self, *, suspended: bool = True) -> None:
        """Send nothing, so that the term runs out; or go on."""
        self._suspended = suspended

    def release(self) -> None:
        """Give the Lease up: the term ends now, whatever comes of the write. Campaigns no longer."""
        self.term = None
        self._campaigns = False
        self._releasing = self._has_let_go = True
        self._next_at = -math.inf

    def stop_renewing(self) -> None:
        """Let the Lease run out: it is not renewed, the term goes on to its end. Campaigns no longer.

        For a holder that cannot be sure that its writes have ended: nobody else takes the Lease before they have.
        """
        self._campaigns = False
        self._is_renewal_stopped = self._has_let_go = True

    def compute_request_timeout(self, now: float) -> float:
        """How long to wait for an answer.

        A holder gives an attempt half of what is left of its term: if a connection hangs, time for another one remains,
        and if the server is slow, the first attempts have long enough.
        """
        left = self.seconds_left(now)
        if left <= 0:
            return max(self._timing.retry_period, self._timing.renew_deadline / 2)
        return min(left, max(self._timing.retry_period, left / 2))

    def decide(self, now: float, wall: datetime) -> LeaseAction:
        """What to do now. A decision to send counts as sent at `now`, so it is to be carried out without delay.

        Args:
            now: The monotonic time.
            wall: The time that is written into the record, for people; nothing depends on it.
        """
        assert self._in_flight is None, "the last request has no outcome yet"
        self._forget_lapsed(now)
        if self._releasing:
            return self._decide_release(now, wall)
        if self._is_renewal_stopped and self.term is None:
            self._is_renewal_stopped, self._mine = False, None
            self._pending_records.clear()
        if self._suspended or self._is_renewal_stopped:
            return WaitForLease(self.seconds_left(now) if self.term is not None else math.inf)
        if self._mine is None and not self._campaigns and (self._known or not self._pending_records):
            self._pending_records.clear()
            return WaitForLease(math.inf)
        if now < self._next_at:
            until = self._next_at if self.term is None else min(self._next_at, self.term.until)
            return WaitForLease(until - now)
        if self._mine is not None and (self.term is not None or self._known):
            # As client-go does, without reading: if somebody else has changed the Lease, the server refuses.
            return self._plan_write(self._build_renewed_record(self._mine, wall), now)
        if not self._known:
            return self._plan_read(now)  # also after a term that ran out: perhaps what we write on is what is wrong
        if self._seen is None:
            return self._plan_write(self._build_record(wall, 0), now)
        ends = self._seen.compute_expiry(self._timing.lease_duration)
        if now >= ends:
            return self._plan_write(
                self._build_record(wall, min(self._seen.record.transitions + 1, _MAX_TRANSITIONS)), now
            )
        self._known = False
        self._next_at = min(now + self._draw_retry_delay(), ends)
        return WaitForLease(self._next_at - now)

    def on_read(self, lease: Object | None, now: float) -> None:
        """The Lease as it was read, None if there is none. `now` is after the answer came."""
        before = _get_version(self._lease)
        self._record_observation(lease, now)
        self._known = True
        if self._seen is not None and self._seen.record in self._pending_records:
            self._confirm_record(self._seen.record, self._pending_records[self._seen.record], now)
        if _get_version(lease) != before:
            # All of them were based on the version before: what was not done until now will be refused.
            self._pending_records.clear()
        if self._seen is None or self._seen.record != self._mine:
            self._mine, self.term = None, None

    def observe(self, lease: Object | None, asked_at: float, now: float) -> None:
        """The Lease as somebody else read it, with a request that was sent at `asked_at`.

        It may be older than what this candidate has sent or been told since then; then it is not looked at.
        """
        if self._mine is None and self._in_flight is None and not self._pending_records and asked_at > self._last_asked:
            self._record_observation(lease, now)
            self._known = True
            self._next_at = -math.inf

    def on_write(self, lease: Object, now: float) -> None:
        """The write was done; the object is the server's answer."""
        assert self._in_flight is not None
        written, sent_at = self._in_flight
        record = LeaseRecord.from_lease(lease)
        if (record.holder, record.renewed) != (written.holder, written.renewed):
            self.on_failure(now)  # the answer to something else: it makes nobody the holder
            return
        self._in_flight = None
        self._refusals = 0
        self._pending_records.clear()
        self._record_observation(lease, now)
        if not written.holder:
            self._mine, self._known, self._releasing = None, False, False
            return
        self._confirm_record(record, sent_at, now)
        self._next_at = sent_at + self._draw_retry_delay()

    def on_conflict(self, now: float) -> None:
        """The write was not done: the Lease is not as it was when it was read last."""
        self._in_flight = None
        self._known = False
        # Look at once who it was. But somebody who changes the Lease all the time does not make us ask all the time.
        self._refusals += 1
        self._next_at = now if self._refusals <= 2 else now + self._draw_retry_delay() / 4
        if self._mine is not None:
            # It may have been a label. Until it has been read, the term goes on as long as it is known to last.
            self._pending_records[self._mine] = -math.inf if self.term is None else self.term.until - self._deadline
            self._mine = None

    def on_failure(self, now: float) -> None:
        """What was sent has no answer, or one that says nothing about the Lease. A write may have been done."""
        if self._in_flight is not None:
            record, sent_at = self._in_flight
            self._in_flight = None
            if record.holder:
                self._pending_records[record] = sent_at
            while len(self._pending_records) > _MAX_PENDING:
                del self._pending_records[next(iter(self._pending_records))]
        self._known = False
        # After an attempt that took long, soon again; after a quick refusal, at the usual pace.
        self._next_at = max(now + self._draw_retry_delay() / 8, self._last_asked + self._draw_retry_delay())

    @property
    def _deadline(self) -> float:
        return self._timing.renew_deadline

    def _decide_release(self, now: float, wall: datetime) -> LeaseAction:
        if now < self._next_at:
            return WaitForLease(self._next_at - now)
        if self._mine is not None:
            return self._plan_write(
                replace(self._build_record(wall, self._mine.transitions), holder="", duration=_RELEASED_DURATION), now
            )
        if self._pending_records and not self._known:
            return self._plan_read(now)
        # Not ours. Should a write still arrive that has been under way all the time, nobody acts on it: it runs out.
        self._pending_records.clear()
        self._releasing = False
        return WaitForLease(math.inf)

    def _plan_read(self, now: float) -> GetLease:
        self._last_asked = now
        return GetLease()

    def _plan_write(self, record: LeaseRecord, now: float) -> CreateLease | UpdateLease:
        if self._seen is not None and record.renewed == self._seen.record.renewed and record.renewed is not None:
            # Two records of one moment would look like none: the clock has been set back, or is a coarse one.
            record = replace(record, renewed=record.renewed + timedelta(microseconds=1))
        self._in_flight = (record, now)
        self._last_asked = now
        if self._lease is None:
            metadata: Object = {"name": self.key.name, "namespace": self.key.namespace}
            if self._labels:
                metadata["labels"] = dict(self._labels)
            empty = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata}
            return CreateLease(record.write_to(empty))
        return UpdateLease(record.write_to(self._lease))

    def _build_record(self, wall: datetime, transitions: int) -> LeaseRecord:
        return LeaseRecord(self.identity, self._timing.lease_duration, wall, wall, transitions)

    def _build_renewed_record(self, mine: LeaseRecord, wall: datetime) -> LeaseRecord:
        return replace(mine, renewed=wall, duration=self._timing.lease_duration)

    def _record_observation(self, lease: Object | None, now: float) -> None:
        self._lease = lease
        if lease is None:
            self._seen = None
        else:
            record = LeaseRecord.from_lease(lease)
            self._seen = LeaseObservation(record, now) if self._seen is None else self._seen.update(record, now)

    def _confirm_record(self, record: LeaseRecord, sent_at: float, now: float) -> None:
        """The record is there, and it is one that we sent."""
        self._mine = record
        self._forget_lapsed(now)
        until = sent_at + self._deadline
        if self._releasing or until <= now:
            return
        if self.term is None:
            self._terms += 1
            self.term = Term(self._terms, until)
        elif until > self.term.until:
            self.term = Term(self.term.number, until)

    def _forget_lapsed(self, now: float) -> None:
        if self.term is not None and now >= self.term.until:
            self.term = None

    def _draw_retry_delay(self) -> float:
        return self._timing.retry_period * self._entropy.uniform(*_JITTER)


def _get_version(lease: Object | None) -> str:
    metadata = None if lease is None else lease.get("metadata")
    return str(metadata.get("resourceVersion", "")) if isinstance(metadata, Mapping) else ""


def _parse_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _parse_time(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return parse_time(value)
    except ValueError:
        return None
