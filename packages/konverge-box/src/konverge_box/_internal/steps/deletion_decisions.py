"""The next action on one Job or object of a deletion, from its state in the cluster. Pure.

The decision uses only the state of the cluster, so that it is the same after a crash.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple

from konverge._internal.kube import Condition, Object, find_condition, is_deleting
from konverge_box._internal.expressions.schedules import format_period
from konverge_box._internal.steps.labels import ENTRY
from konverge_box._internal.steps.ownership import is_handed_over, is_ours

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
"""Delay until the next reconcile without a change: the operator may not watch the kind."""

REQUEUE_AFTER_OVERDUE = timedelta(minutes=1)

_WAY_OUT = "The deletion continues; to delete the object without it, remove the finalizer of the object"


class DeletionAction(Enum):
    """The next action of a deletion."""

    NOTHING = "nothing"
    """Do nothing: the work is complete."""
    ACT = "act"
    """Create the Job, or delete the object."""
    NOTE = "note"
    """Record the completion of the Job before anything else."""
    WAIT = "wait"
    """Wait for work in progress."""
    REPORT = "report"
    """Report a problem that requires the help of a user."""


class DeletionDecision(NamedTuple):
    """The next action, with a message."""

    action: DeletionAction
    message: str = ""


def is_of_deletion(job: Object, owner: Object, entry: str) -> bool:
    """Tell whether this deletion of the owner created the Job for that entry."""
    labels = job["metadata"].get("labels") or {}
    return is_handed_over(job, owner) and bool(labels.get(ENTRY) == entry)


def decide_job(live: Object | None, owner: Object, *, named: str, entry: str, has_run: bool) -> DeletionDecision:
    """Decide the next action on a Job.

    It runs once, to completion. A failed Job stays, and so does the owner.

    Args:
        live: The Job; None when it does not exist.
        owner: The custom resource.
        named: The name of the Job in messages.
        entry: The label value of the Jobs of this deletion.
        has_run: The owner records that the Job is complete.
    """
    if has_run:
        return DeletionDecision(DeletionAction.NOTHING)
    if live is None:
        return DeletionDecision(DeletionAction.ACT)
    is_of_this = is_of_deletion(live, owner, entry)
    if is_of_this and _find_true_condition(live, "Complete"):
        return DeletionDecision(DeletionAction.NOTE)
    if is_deleting(live):
        return DeletionDecision(DeletionAction.WAIT, f"{named} is still being deleted, and is then created again")
    if not is_of_this:
        problem = "a Job of that name exists already and does not belong to this deletion"
        return DeletionDecision(
            DeletionAction.REPORT, f"{named}: {problem}. Give the Job in the box another name, or delete the other Job"
        )
    if failed := _find_true_condition(live, "Failed"):
        why = (failed.message or failed.reason or "without a reason").rstrip(".")
        return DeletionDecision(DeletionAction.REPORT, f"{named} failed: {why}. Delete the Job to run it again")
    return DeletionDecision(DeletionAction.WAIT, f"{named} runs")


def decide_target(live: Object | None, owner: Object, *, named: str) -> DeletionDecision:
    """Decide the next action on an object of a deletion. An object that does not belong to the owner is kept."""
    if live is None:
        return DeletionDecision(DeletionAction.NOTHING)
    if not is_ours(live, owner):
        return DeletionDecision(DeletionAction.NOTHING, f"{named} does not belong to this object and is kept")
    if is_deleting(live):
        held = ", ".join(map(str, (live["metadata"].get("finalizers") or [])[:5]))
        return DeletionDecision(DeletionAction.WAIT, f"{named} is being deleted{f' (held by {held})' if held else ''}")
    return DeletionDecision(DeletionAction.ACT)


def describe_overdue(started: datetime, now: datetime, timeout: timedelta) -> str:
    """Describe a deletion that exceeds its timeout; return an empty text before."""
    return "" if now - started < timeout else f"Not complete after {format_period(timeout)}. {_WAY_OUT}"


def compute_requeue_after(started: datetime, now: datetime, timeout: timedelta) -> timedelta:
    """Return the delay until the next reconcile without a change, so that the timeout is reported in time."""
    left = started + timeout - now
    return min(REQUEUE_AFTER, left) if left > timedelta(0) else REQUEUE_AFTER_OVERDUE


def _find_true_condition(job: Object, condition_type: str) -> Condition | None:
    condition = find_condition(job, condition_type)
    return condition if condition is not None and condition.status == "True" else None
