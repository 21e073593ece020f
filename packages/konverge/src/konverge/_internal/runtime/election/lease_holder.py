"""The driver of one candidate: performs its actions, and reports when a term begins and ends."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Protocol

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.runtime.election.lease_candidate import (
    LEASE,
    CreateLease,
    GetLease,
    LeaseAction,
    LeaseCandidate,
    Term,
    UpdateLease,
    WaitForLease,
)
from konverge.clock import Clock
from konverge.errors import (
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    KonvergeError,
    NotFoundError,
    format_error,
)

__all__ = ["LeaseClient", "LeaseHolder", "TermPermit", "describe_refusal"]

_log = logging.getLogger("konverge.runtime")


class LeaseClient(Protocol):
    """The client methods that elections need (`konverge.client.Client` implements them)."""

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        """Read one object from the server."""

    async def create(self, obj: Object) -> Object:
        """Create the object on the server."""

    async def update(self, obj: Object) -> Object:
        """Replace the object, guarded by its resource version."""


class TermPermit:
    """The permit to write for one term as the holder of a Lease.

    It is a `client.write_permit.WritePermit`. It ends with the term for good: a reconcile that began in one
    term writes nothing in the next, since another replica may have reconciled in between.

    Args:
        holder: The holder of the Lease.
        number: The number of the term.
        clock: The clock by which the holder counts.
    """

    def __init__(self, holder: LeaseHolder, number: int, clock: Clock) -> None:
        self._holder = holder
        self._number = number
        self._clock = clock

    def seconds_left(self) -> float:
        """Return the minimum seconds for which the process may write. Callable from any thread."""
        term = self._holder.term  # read once: another thread replaces it
        if term is None or term.number != self._number:
            return 0.0
        return max(0.0, term.until - self._clock.monotonic())


class LeaseHolder:
    """Campaigns for one Lease and renews it.

    Args:
        client: The cluster; it should have separate connections and no permit.
        candidate: Decides the actions.
        clock: Source of time.
        on_change: Called when a term begins or ends, in that order; it must not raise.

    Attributes:
        term: The candidate's term; a value that other threads may read.
    """

    def __init__(
        self,
        client: LeaseClient,
        candidate: LeaseCandidate,
        *,
        clock: Clock,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self.candidate = candidate
        self.term: Term | None = None
        self._client = client
        self._clock = clock
        self._on_change = on_change
        self._notified = asyncio.Event()
        self._seen_holder = ""
        self._last_problem = ""

    @property
    def permit(self) -> TermPermit:
        """The permit of the present term; an expired permit if there is none."""
        return TermPermit(self, self.term.number if self.term is not None else 0, self._clock)

    async def run(self) -> None:
        """Campaign and renew until cancelled. Cancellation leaves the Lease unchanged: see `release`."""
        while True:
            await self._step()

    async def release(self, seconds: float) -> bool:
        """Release the Lease if this candidate holds it, while `run` is not running.

        Args:
            seconds: Time limit of the attempts; after that the Lease expires by itself.

        Returns:
            Whether no other process can consider this one the holder.
        """
        self.candidate.release()
        self._publish()
        try:
            async with asyncio.timeout(seconds):
                while not self.candidate.has_no_claim:
                    await self._step()
        except TimeoutError:
            _log.warning("Lease %s: not released within %g s: wait until it expires", self.candidate.key, seconds)
        return self.candidate.has_no_claim

    def abandon(self) -> None:
        """End the term without a request; a Lease that is still held expires by itself."""
        self.candidate.release()
        self._publish()

    def notify(self) -> None:
        """Call `decide` of the candidate again: its state has changed."""
        self._notified.set()

    async def _step(self) -> None:
        self._notified.clear()
        now = self._clock.monotonic()
        decision = self.candidate.decide(now, self._clock.now())
        self._publish()
        if isinstance(decision, WaitForLease):
            await self._wait(decision.seconds)
            return
        try:
            async with asyncio.timeout(self.candidate.compute_request_timeout(now)):
                response = await self._send(decision)
        except TimeoutError:
            self.candidate.on_failure(self._clock.monotonic())
            self._log_problem(f"cannot {_get_verb(decision)} the Lease {self.candidate.key}: no response in time")
        except asyncio.CancelledError:
            self.candidate.on_failure(self._clock.monotonic())
            raise
        except KonvergeError as error:
            self._handle_error(decision, error)
        except Exception as error:  # noqa: BLE001  # the term continues despite an unexpected client error, which may be temporary
            self.candidate.on_failure(self._clock.monotonic())
            self._log_unexpected_error(decision, error)
        else:
            self._handle_response(decision, response)
        self._publish()

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(None if math.isinf(seconds) else seconds):
                await self._notified.wait()
        except TimeoutError:
            return

    async def _send(self, decision: LeaseAction) -> Object:
        match decision:
            case CreateLease(lease):
                return await self._client.create(lease)
            case UpdateLease(lease):
                return await self._client.update(lease)
            case _:
                return await self._client.get(LEASE, self.candidate.key)

    def _handle_response(self, decision: LeaseAction, response: Object) -> None:
        now = self._clock.monotonic()
        try:
            if (GroupVersionKind.of(response), ObjectKey.of(response)) != (LEASE, self.candidate.key):
                raise ValueError("the response is not this Lease")  # for example from a proxy
            if isinstance(decision, GetLease):
                self.candidate.on_read(response, now)
            else:
                self.candidate.on_write(response, now)
        except Exception as error:  # noqa: BLE001  # the object on the server cannot be parsed; a user may repair it
            self.candidate.on_failure(now)
            self._log_unexpected_error(decision, error)
        else:
            self._last_problem = ""

    def _handle_error(self, decision: LeaseAction, error: KonvergeError) -> None:
        now = self._clock.monotonic()
        match decision, error:
            case GetLease(), NotFoundError():
                self.candidate.on_read(None, now)
            case (CreateLease(), ConflictError()) | (UpdateLease(), ConflictError() | NotFoundError()):
                self.candidate.on_conflict(now)
                _log.debug("the Lease %s has changed: %s", self.candidate.key, format_error(error))
            case _:
                self.candidate.on_failure(now)
                self._log_problem(describe_refusal(error, self.candidate.key, _get_verb(decision)))

    def _publish(self) -> None:
        """Copy the candidate's term, and report changes."""
        before, self.term = self.term, self.candidate.term
        key, holder = self.candidate.key, self.candidate.holder
        if (before and before.number) != (self.term and self.term.number):
            if before is not None:
                _log.log(
                    logging.INFO if self.candidate.has_let_go else logging.ERROR,
                    "%s the Lease %s%s",
                    "released" if self.candidate.has_let_go else "lost",
                    key,
                    self._describe_loss(),
                )
            if self.term is not None:
                _log.info("acquired the Lease %s as %s", key, self.candidate.identity)
            if self._on_change is not None:
                self._on_change()
        if holder != self._seen_holder:
            self._seen_holder = holder
            if holder and not self.candidate.is_recorded:
                _log.info("the Lease %s is held by %s", key, holder)

    def _describe_loss(self) -> str:
        if self.candidate.has_let_go:
            return ""
        if self.candidate.is_recorded or not self.candidate.holder:
            return f": no renewal in time; {self._last_problem}".rstrip("; ")
        return f" to {self.candidate.holder}"

    def _log_problem(self, problem: str) -> None:
        """Log a problem once, until it changes or until a request succeeds."""
        if problem != self._last_problem:
            self._last_problem = problem
            _log.warning("%s", problem)

    def _log_unexpected_error(self, decision: LeaseAction, error: Exception) -> None:
        problem = (
            f"cannot {_get_verb(decision)} the Lease {self.candidate.key}: unexpected error {type(error).__name__}"
        )
        if problem != self._last_problem:
            self._last_problem = problem
            _log.error("%s", problem, exc_info=error)


def describe_refusal(error: KonvergeError, key: ObjectKey, verb: str) -> str:
    """Return one line with the cause of a failed request for a Lease, and the remedy."""
    summary = f"cannot {verb} the Lease {key}"
    if isinstance(error, ForbiddenError):
        return (
            f"{summary}: {format_error(error)}. Add to a Role in namespace {key.namespace}: "
            'apiGroups ["coordination.k8s.io"], resources ["leases"], verbs ["get", "create", "update"]'
        )
    if isinstance(error, ConnectionFailedError):
        return f"{summary}: no connection to the server: {format_error(error)}"
    return f"{summary}: {format_error(error)}"


def _get_verb(decision: LeaseAction) -> str:
    return {GetLease: "get", CreateLease: "create", UpdateLease: "update"}.get(type(decision), "use")
