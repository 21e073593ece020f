"""What is to happen next to one Job or object of a deletion, from how it stands in the cluster. Pure.

Nothing else is known than what the cluster has, so whoever comes after a crash decides the same.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple

from konverge.kube import Condition, Object, find_condition, is_deleting
from konverge_box.expressions.schedules import format_period
from konverge_box.steps.labels import ENTRY
from konverge_box.steps.ownership import is_handed_over, is_ours

__all__ = [
    "DeletionAction",
    "DeletionDecision",
    "compute_requeue_after",
    "decide_job",
    "decide_target",
    "describe_overdue",
    "is_of_deletion",
]

REQUEUE_AFTER = timedelta(seconds=15)
"""How long until the next look when no change wakes, which happens where the operator watches nothing."""

REQUEUE_AFTER_OVERDUE = timedelta(minutes=1)

_WAY_OUT = "It is tried further; to let the object go without it, take its finalizer away"


class DeletionAction(Enum):
    """What is to be done."""

    NOTHING = "nothing"
    """It is over."""
    ACT = "act"
    """The Job is to be created, the object to be deleted."""
    NOTE = "note"
    """The Job has just ended; that is to be noted before anything else."""
    WAIT = "wait"
    """It is under way."""
    REPORT = "report"
    """It cannot go on without somebody's help."""


class DeletionDecision(NamedTuple):
    """A decision, and what is to be said of it."""

    action: DeletionAction
    message: str = ""


def is_of_deletion(job: Object, owner: Object, entry: str) -> bool:
    """Tell whether a Job was created by this deletion of the owner, for that entry."""
    labels = job["metadata"].get("labels") or {}
    return is_handed_over(job, owner) and bool(labels.get(ENTRY) == entry)


def decide_job(live: Object | None, owner: Object, *, named: str, entry: str, has_run: bool) -> DeletionDecision:
    """What is to happen to a Job.

    It runs once, to its end; one that failed stays, and so does the owner.

    Args:
        live: The Job; None when there is none.
        owner: The custom resource.
        named: What the Job is called in messages.
        entry: The label by which a Job of this deletion is known.
        has_run: It is noted that it has run.
    """
    if has_run:
        return DeletionDecision(DeletionAction.NOTHING)
    if live is None:
        return DeletionDecision(DeletionAction.ACT)
    is_of_this = is_of_deletion(live, owner, entry)
    if is_of_this and _find_true_condition(live, "Complete"):
        return DeletionDecision(DeletionAction.NOTE)
    if is_deleting(live):
        return DeletionDecision(DeletionAction.WAIT, f"{named}, which is to be made anew, is still being deleted")
    if not is_of_this:
        problem = "there is a Job of that name already, which is not of this deletion"
        return DeletionDecision(
            DeletionAction.REPORT, f"{named}: {problem}. Give the one in the box a name of its own, or delete the other"
        )
    if failed := _find_true_condition(live, "Failed"):
        why = (failed.message or failed.reason or "it does not say why").rstrip(".")
        return DeletionDecision(DeletionAction.REPORT, f"{named} failed: {why}. Delete the Job to have it run again")
    return DeletionDecision(DeletionAction.WAIT, f"{named} runs")


def decide_target(live: Object | None, owner: Object, *, named: str) -> DeletionDecision:
    """What is to happen to an object that is to be deleted: only if it is ours, and once it is enough."""
    if live is None:
        return DeletionDecision(DeletionAction.NOTHING)
    if not is_ours(live, owner):
        return DeletionDecision(DeletionAction.NOTHING, f"{named} is not of this object, and stays")
    if is_deleting(live):
        held = ", ".join(map(str, (live["metadata"].get("finalizers") or [])[:5]))
        return DeletionDecision(DeletionAction.WAIT, f"{named} is being deleted{f' (held by {held})' if held else ''}")
    return DeletionDecision(DeletionAction.ACT)


def describe_overdue(began: datetime, now: datetime, timeout: timedelta) -> str:
    """What is to be said of a deletion that should be over; empty while it has time."""
    return "" if now - began < timeout else f"Not done after {format_period(timeout)}. {_WAY_OUT}"


def compute_requeue_after(began: datetime, now: datetime, timeout: timedelta) -> timedelta:
    """When to look again if nothing wakes: in time to say that it is late."""
    left = began + timeout - now
    return min(REQUEUE_AFTER, left) if left > timedelta(0) else REQUEUE_AFTER_OVERDUE


def _find_true_condition(job: Object, condition_type: str) -> Condition | None:
    found = find_condition(job, condition_type)
    return found if found is not None and found.status == "True" else None
