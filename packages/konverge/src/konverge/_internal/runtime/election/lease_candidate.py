"""One candidate for one Lease: when to read, when to write, and until when it may act as the holder. Pure.

The protocol is client-go's (``tools/leaderelection``), and client-go processes can take part. It compares no clocks. A
candidate records at which time *of its own clock* it saw the record change, and takes the Lease when the record has not
changed for its duration. Every write names the resource version that it is based on, so of two candidates that write at
once one is refused.

The holder counts from the time at which it *sent* the last renewal that was certainly applied. No other candidate can
have seen that renewal earlier. The holder stops at the renew deadline. Two processes can therefore act at one time only
if one clock runs faster than the other by more than the ratio of lease duration to renew deadline.

Three things differ from client-go, each on the safe side. A record belongs to this candidate if it has sent it, not if
it has its identity: a process with the same identity, an earlier one or a twin, is another holder. The time until which
the holder may act is a deadline, not the end of a loop of attempts. And a candidate reads the Lease again exactly when
it expires.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.timestamps import format_micro_time, parse_time
from konverge._internal.runtime.election.options import LeaseTiming
from konverge.clock import Entropy

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

# Duration of a released Lease: the shortest that the server accepts (client-go writes the same).
_RELEASED_DURATION = 1

# Limits of the delay between two attempts, as fractions of the retry period. The upper one is below 1: a candidate that
# sees a renewal late takes over late.
_JITTER = (0.7, 0.95)

# The API's int32. A holder that has written the maximum must not count further, or the server would refuse every later
# holder.
_MAX_TRANSITIONS = 2**31 - 1

# Limit on remembered writes of unknown outcome. Each takes about a retry period, and a write that was sent more than a
# lease duration ago cannot establish a term any more.
_MAX_PENDING = 32


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """Content of a Lease (``spec``).

    Args:
        holder: Identity of the holder; empty for none.
        duration: Seconds without a change after which it may be taken; 0 if absent.
        acquired: Time of the acquisition, by the holder's clock.
        renewed: Time of the last renewal, by the holder's clock.
        transitions: Number of changes of the holder.
    """

    holder: str = ""
    duration: int = 0
    acquired: datetime | None = None
    renewed: datetime | None = None
    transitions: int = 0

    @classmethod
    def from_lease(cls, lease: Mapping[str, Any]) -> LeaseRecord:
        """Parse the record of a Lease object; a missing or malformed field counts as absent."""
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
        """Return a copy of the object with this record; all other fields stay."""
        spec_field = lease.get("spec")
        spec = dict(spec_field) if isinstance(spec_field, Mapping) else {}
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
    """A record, with the time (monotonic, by the own clock) since which it has been seen unchanged."""

    record: LeaseRecord
    since: float

    def update(self, record: LeaseRecord, now: float) -> LeaseObservation:
        """Return the observation after the record was read again."""
        return self if record == self.record else LeaseObservation(record, now)

    def compute_expiry(self, default_duration: int) -> float:
        """Return the time from which the Lease may be taken; without a holder it may be taken at any time.

        Args:
            default_duration: For a record with a holder and no duration. (client-go takes such a Lease at once.)
        """
        return self.since + (self.record.duration or default_duration) if self.record.holder else -math.inf


@dataclass(frozen=True, slots=True)
class Term:
    """One uninterrupted period as the holder.

    Args:
        number: Number of the term of this candidate: work that began in one term is invalid in the next.
        until: The time (monotonic) until which the candidate may certainly act as the holder.
    """

    number: int
    until: float


@dataclass(frozen=True, slots=True)
class GetLease:
    """Action: get the Lease from the server."""


@dataclass(frozen=True, slots=True)
class CreateLease:
    """Action: create the Lease on the server."""

    lease: Object


@dataclass(frozen=True, slots=True)
class UpdateLease:
    """Action: replace the Lease; the object has the resource version that the write is based on."""

    lease: Object


@dataclass(frozen=True, slots=True)
class WaitForLease:
    """Action: send nothing for this time, unless the candidate is notified; the time may be infinite."""

    seconds: float


LeaseAction: TypeAlias = GetLease | CreateLease | UpdateLease | WaitForLease


class LeaseCandidate:
    """The state of one candidate for one Lease.

    The driver calls `decide`, performs the action, and reports its result with `on_read`, `on_write`, `on_conflict` or
    `on_failure`. It does not call `decide` between an action that sends a request and its result.

    Args:
        key: The Lease.
        identity: The identity of the candidate.
        timing: The three times.
        entropy: Source of the jitter of delays.
        labels: Labels of a Lease that the candidate creates.
        campaigns: Whether the candidate tries to get the Lease; see `campaign`.

    Attributes:
        term: The present term; None when the candidate is not the holder. It may have expired: see `seconds_left`.
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
        self._is_fresh = False  # whether `_seen` is recent enough to act on
        self._mine: LeaseRecord | None = None
        self._in_flight: tuple[LeaseRecord, float] | None = None
        self._pending_records: dict[LeaseRecord, float] = {}
        self._last_requested_at = -math.inf
        self._refusals = 0
        self._next_at = -math.inf
        self._terms = 0

    @property
    def holder(self) -> str:
        """The identity of the holder that was last seen; empty for none."""
        return "" if self._seen is None else self._seen.record.holder

    @property
    def lease(self) -> Object | None:
        """The Lease as it was last seen; None if it did not exist."""
        return self._lease

    @property
    def is_recorded(self) -> bool:
        """True if this candidate wrote the record that was last seen; its term may have expired."""
        return self._mine is not None

    @property
    def has_no_claim(self) -> bool:
        """True if the candidate neither holds the Lease nor has an open write that could make it the holder."""
        return self._mine is None and not self._pending_records and self._in_flight is None

    @property
    def has_let_go(self) -> bool:
        """True if the last term ended because of `release` or `stop_renewing`."""
        return self._has_let_go

    @property
    def is_campaigning(self) -> bool:
        """True while this candidate tries to get the Lease."""
        return self._campaigns

    def seconds_left(self, now: float) -> float:
        """Return the seconds for which the candidate may act as the holder."""
        return 0.0 if self.term is None else max(0.0, self.term.until - now)

    def campaign(self, *, wanted: bool = True) -> None:
        """Start or stop to campaign for the Lease. A holder keeps the Lease in both cases."""
        self._campaigns = wanted
        if wanted:
            self._releasing = self._is_renewal_stopped = self._has_let_go = False

    def suspend(self, *, suspended: bool = True) -> None:
        """Send no requests, so that the term expires; or resume."""
        self._suspended = suspended

    def release(self) -> None:
        """Release the Lease: the term ends now, whatever the result of the write. This ends the campaign."""
        self.term = None
        self._campaigns = False
        self._releasing = self._has_let_go = True
        self._next_at = -math.inf

    def stop_renewing(self) -> None:
        """Let the Lease expire: it is not renewed, and the term continues to its end. This ends the campaign.

        It is for a holder that cannot be sure that its writes have ended: no other candidate takes the Lease before
        they have.
        """
        self._campaigns = False
        self._is_renewal_stopped = self._has_let_go = True

    def compute_request_timeout(self, now: float) -> float:
        """Return the seconds to wait for the response to a request.

        A holder gives one attempt half of the rest of its term. If a connection hangs, time for another attempt
        remains; if the server is slow, the first attempts have enough time.
        """
        left = self.seconds_left(now)
        if left <= 0:
            return max(self._timing.retry_period, self._timing.renew_deadline / 2)
        return min(left, max(self._timing.retry_period, left / 2))

    def decide(self, now: float, wall: datetime) -> LeaseAction:
        """Return the action for the present time. The driver must perform it at once: it counts as sent at `now`.

        Args:
            now: The monotonic time.
            wall: The time that is written into the record, for users; nothing depends on it.
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
        if self._mine is None and not self._campaigns and (self._is_fresh or not self._pending_records):
            self._pending_records.clear()
            return WaitForLease(math.inf)
        if now < self._next_at:
            until = self._next_at if self.term is None else min(self._next_at, self.term.until)
            return WaitForLease(until - now)
        if self._mine is not None and (self.term is not None or self._is_fresh):
            # Like client-go, without a read: if another client has changed the Lease, the server refuses the write.
            return self._plan_write(self._build_renewed_record(self._mine, wall), now)
        if not self._is_fresh:
            return self._plan_read(
                now
            )  # also after an expired term: the Lease that the writes are based on may be the problem
        if self._seen is None:
            return self._plan_write(self._build_record(wall, 0), now)
        ends = self._seen.compute_expiry(self._timing.lease_duration)
        if now >= ends:
            return self._plan_write(
                self._build_record(wall, min(self._seen.record.transitions + 1, _MAX_TRANSITIONS)), now
            )
        self._is_fresh = False
        self._next_at = min(now + self._draw_retry_delay(), ends)
        return WaitForLease(self._next_at - now)

    def on_read(self, lease: Object | None, now: float) -> None:
        """Process the Lease as it was read, None if it does not exist. `now` is the time after the response."""
        before = _get_version(self._lease)
        self._record_observation(lease, now)
        self._is_fresh = True
        if self._seen is not None and self._seen.record in self._pending_records:
            self._confirm_record(self._seen.record, self._pending_records[self._seen.record], now)
        if _get_version(lease) != before:
            # All of them were based on the previous version: the server refuses those that it has not applied yet.
            self._pending_records.clear()
        if self._seen is None or self._seen.record != self._mine:
            self._mine, self.term = None, None

    def observe(self, lease: Object | None, requested_at: float, now: float) -> None:
        """Process the Lease from a list request that was sent at `requested_at`.

        The list may be older than later requests and responses of this candidate; then it is ignored.
        """
        if (
            self._mine is None
            and self._in_flight is None
            and not self._pending_records
            and requested_at > self._last_requested_at
        ):
            self._record_observation(lease, now)
            self._is_fresh = True
            self._next_at = -math.inf

    def on_write(self, lease: Object, now: float) -> None:
        """Process the response to a successful write."""
        assert self._in_flight is not None
        written, sent_at = self._in_flight
        record = LeaseRecord.from_lease(lease)
        if (record.holder, record.renewed) != (written.holder, written.renewed):
            self.on_failure(now)  # the response to another request: it establishes no holder
            return
        self._in_flight = None
        self._refusals = 0
        self._pending_records.clear()
        self._record_observation(lease, now)
        if not written.holder:
            self._mine, self._is_fresh, self._releasing = None, False, False
            return
        self._confirm_record(record, sent_at, now)
        self._next_at = sent_at + self._draw_retry_delay()

    def on_conflict(self, now: float) -> None:
        """Process a write that was refused: the Lease has changed since the last read."""
        self._in_flight = None
        self._is_fresh = False
        # Read at once to find out who changed it. But a client that changes the Lease continuously must not cause a
        # read each time.
        self._refusals += 1
        self._next_at = now if self._refusals <= 2 else now + self._draw_retry_delay() / 4
        if self._mine is not None:
            # Only a label may have changed. Until the Lease is read again, the term continues until its known end.
            self._pending_records[self._mine] = -math.inf if self.term is None else self.term.until - self._deadline
            self._mine = None

    def on_failure(self, now: float) -> None:
        """Process a request without a response, or with one that is not the API server's, for example a proxy's.

        The server may have applied a write.
        """
        if self._in_flight is not None:
            record, sent_at = self._in_flight
            self._in_flight = None
            if record.holder:
                self._pending_records[record] = sent_at
            while len(self._pending_records) > _MAX_PENDING:
                del self._pending_records[next(iter(self._pending_records))]
        self._is_fresh = False
        # Retry soon after a slow attempt, and at the usual interval after a quick refusal.
        self._next_at = max(now + self._draw_retry_delay() / 8, self._last_requested_at + self._draw_retry_delay())

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
        if self._pending_records and not self._is_fresh:
            return self._plan_read(now)
        # Another candidate holds the Lease. A delayed write of this candidate may still arrive, but no process acts on
        # it: it expires.
        self._pending_records.clear()
        self._releasing = False
        return WaitForLease(math.inf)

    def _plan_read(self, now: float) -> GetLease:
        self._last_requested_at = now
        return GetLease()

    def _plan_write(self, record: LeaseRecord, now: float) -> CreateLease | UpdateLease:
        if self._seen is not None and record.renewed == self._seen.record.renewed and record.renewed is not None:
            # Two records with the same time would look like one: the clock was set back, or it is coarse.
            record = replace(record, renewed=record.renewed + timedelta(microseconds=1))
        self._in_flight = (record, now)
        self._last_requested_at = now
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
        """Process the knowledge that the server has the record and that this candidate sent it."""
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
