"""What becomes of a request next: one decision of its state, the time and what is being done for it. Pure.

A request has one deadline, from its creation on. It begins as ``Unknown``, ends in ``True`` or ``False``, and what has
ended is never begun again; some time later it is removed. A process that serves its resolver fetches; the one that
keeps the lifecycle sees to it that every request begins and ends, whoever serves it, and also when nobody does.
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
    """How far a request is, by its condition."""

    NEW = "no condition yet"
    PENDING = "in progress"
    DONE = "resolved or failed"


class ResolverLocation(Enum):
    """Who fetches for a request."""

    HERE = "this process"
    ELSEWHERE = "another process that is alive"
    NOWHERE = "nobody that is known"


class FetchPhase(Enum):
    """What this process does for a request."""

    NONE = "nothing"
    RUNNING = "it fetches"
    ENDED = "it has a result or a failure that is not written yet"


class RequestAction(Enum):
    """What is to be done for a request."""

    NOTHING = "it is no business of this process"
    WAIT = "somebody fetches, or it stays until it is removed"
    FETCH = "fetch, unless that is under way"
    FINISH = "write what the fetch came to"
    SETTLE = "it has a result and no condition that says so"
    REFUSE = "nobody serves its resolver"
    EXPIRE = "its time is over"
    REMOVE = "it has been finished for long enough"


@dataclass(frozen=True, slots=True)
class RequestState:
    """What a request says of itself.

    Args:
        phase: How far it is.
        created: When, to the second.
        deadline: Until when it has to end; None before it has begun.
        finished: When it ended; None before.
        has_result: Content has been written.
    """

    phase: RequestPhase
    created: datetime
    deadline: datetime | None = None
    finished: datetime | None = None
    has_result: bool = False


@dataclass(frozen=True, slots=True)
class LifecycleOptions:
    """What holds for all requests.

    Args:
        timeout: How long one may take from its creation, the time in which it waits included.
        keeps_lifecycle: This process begins requests, ends them in time and removes them.
        finished_lifetime: How long a finished one stays; None for ever.
    """

    timeout: timedelta = timedelta(minutes=1)
    keeps_lifecycle: bool = True
    finished_lifetime: timedelta | None = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class RequestDecision:
    """What to do.

    Args:
        action: The deed.
        is_start: Say first that it is in progress.
        deadline: Until when it has to end; None when that does not matter any more.
        is_slow: Half of its time is over.
        requeue_at: When to decide again if nothing happens; None for never.
    """

    action: RequestAction
    is_start: bool = False
    deadline: datetime | None = None
    is_slow: bool = False
    requeue_at: datetime | None = None


def compute_deadline(created: datetime, seen: datetime, timeout: timedelta) -> datetime:
    """Until when a request has to end that is begun now.

    The server cuts the time of creation to the second. Whoever sees the request within that second knows better; who
    comes later takes the end of it.
    """
    return min(max(created, seen), created + _STAMP) + timeout


def decide(
    state: RequestState, now: datetime, options: LifecycleOptions, *, location: ResolverLocation, fetch: FetchPhase
) -> RequestDecision:
    """Decide what to do for a request.

    Args:
        state: What it says.
        now: The time.
        options: What holds for all.
        location: Who fetches for it.
        fetch: What this process does for it already.
    """
    if state.phase is RequestPhase.DONE:
        return _decide_finished(state, now, options)
    is_ours = options.keeps_lifecycle or location is ResolverLocation.HERE
    if not is_ours:
        return RequestDecision(RequestAction.NOTHING)
    if state.has_result:
        return RequestDecision(RequestAction.SETTLE)
    if fetch is FetchPhase.ENDED:
        # Also when the deadline has just passed: what is there is worth more than a message that it came late.
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
        # One whose resolver was there and is not any more waits: whoever serves it may only be restarting.
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
