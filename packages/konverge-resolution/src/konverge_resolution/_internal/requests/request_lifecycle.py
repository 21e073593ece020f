"""Lifecycle of a request: one decision from its state, the time and the running fetch. Pure.

A request has one deadline, counted from its creation. Its condition begins as ``Unknown`` and ends as ``True`` or
``False``. A finished request never starts again, and is removed later. A process that serves its resolver fetches. The
process that keeps the lifecycle ensures that every request starts and ends, even if no process serves its resolver.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

__all__ = [
    "FetchPhase",
    "LifecycleOptions",
    "RequestAction",
    "RequestDecision",
    "RequestPhase",
    "RequestState",
    "ResolverLocation",
    "compute_deadline",
    "decide",
]

_STAMP = timedelta(seconds=1)


class RequestPhase(Enum):
    """Phase of a request, from its condition."""

    NEW = "no condition yet"
    PENDING = "in progress"
    DONE = "resolved or failed"


class ResolverLocation(Enum):
    """Process that serves the resolver of a request."""

    HERE = "this process"
    ELSEWHERE = "another process that is alive"
    EXPECTED = "a process that may be starting"
    NOWHERE = "no known process"


class FetchPhase(Enum):
    """Phase of the fetch for a request in this process."""

    NONE = "no fetch"
    RUNNING = "the fetch runs"
    ENDED = "its result or failure is not written yet"


class RequestAction(Enum):
    """Next action for a request."""

    NOTHING = "this process is not responsible"
    WAIT = "another process fetches, or it is not removed yet"
    FETCH = "start a fetch unless one runs"
    FINISH = "write the result of the fetch"
    SETTLE = "write the missing condition of its result"
    REFUSE = "no process serves its resolver"
    EXPIRE = "its deadline has passed"
    REMOVE = "its lifetime after the end is over"


@dataclass(frozen=True, slots=True)
class RequestState:
    """State of a request, from its metadata and status.

    Args:
        phase: The phase.
        created: The creation time, to the second.
        deadline: The deadline; None before the start.
        finished: The time of its end; None before.
        has_result: Whether it has content.
    """

    phase: RequestPhase
    created: datetime
    deadline: datetime | None = None
    finished: datetime | None = None
    has_result: bool = False


@dataclass(frozen=True, slots=True)
class LifecycleOptions:
    """Options for all requests.

    Args:
        timeout: Time limit from the creation, including the time of waiting.
        keeps_lifecycle: Whether this process starts requests, ends them in time and removes them.
        finished_lifetime: Lifetime after the end; None for no removal.
    """

    timeout: timedelta = timedelta(minutes=1)
    keeps_lifecycle: bool = True
    finished_lifetime: timedelta | None = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class RequestDecision:
    """Decision on the next action for a request.

    Args:
        action: The action.
        is_start: Whether the status must report the start first.
        deadline: The deadline; None when it is irrelevant.
        is_slow: Whether half of its time has passed.
        requeue_at: The time of the next decision if nothing happens; None for never.
    """

    action: RequestAction
    is_start: bool = False
    deadline: datetime | None = None
    is_slow: bool = False
    requeue_at: datetime | None = None


def compute_deadline(created: datetime, seen: datetime, timeout: timedelta) -> datetime:
    """Return the deadline of a request that starts now.

    The API server truncates the creation time to seconds. A process that sees the request within that second knows the
    time more exactly; a later one uses the end of the second.
    """
    return min(max(created, seen), created + _STAMP) + timeout


def decide(
    state: RequestState, now: datetime, options: LifecycleOptions, *, location: ResolverLocation, fetch: FetchPhase
) -> RequestDecision:
    """Decide on the next action for a request.

    Args:
        state: The state of the request.
        now: The current time.
        options: The options for all requests.
        location: The process that serves its resolver.
        fetch: The phase of the fetch in this process.
    """
    if state.phase is RequestPhase.DONE:
        return _decide_finished(state, now, options)
    is_ours = options.keeps_lifecycle or location is ResolverLocation.HERE
    if not is_ours:
        return RequestDecision(RequestAction.NOTHING)
    if state.has_result:
        return RequestDecision(RequestAction.SETTLE)
    if fetch is FetchPhase.ENDED:
        # Also just after the deadline: an existing result is better than a timeout.
        return RequestDecision(RequestAction.FINISH)
    is_new = state.phase is RequestPhase.NEW
    if is_new and location is ResolverLocation.NOWHERE:
        return RequestDecision(RequestAction.REFUSE)
    deadline = state.deadline or compute_deadline(state.created, now, options.timeout)
    if now >= deadline:
        return RequestDecision(RequestAction.EXPIRE, deadline=deadline)
    half = deadline - options.timeout / 2
    is_slow = now >= half
    return RequestDecision(
        # A request whose resolver is expected or has disappeared waits, since its process starts or may only restart.
        RequestAction.FETCH if location is ResolverLocation.HERE else RequestAction.WAIT,
        is_start=is_new and options.keeps_lifecycle,
        deadline=deadline,
        is_slow=is_slow,
        requeue_at=deadline if is_slow else half,
    )


def _decide_finished(state: RequestState, now: datetime, rules: LifecycleOptions) -> RequestDecision:
    if not rules.keeps_lifecycle or rules.finished_lifetime is None:
        return RequestDecision(RequestAction.NOTHING)
    until = (state.finished or state.created) + rules.finished_lifetime
    return (
        RequestDecision(RequestAction.REMOVE) if now >= until else RequestDecision(RequestAction.WAIT, requeue_at=until)
    )
