"""kstatus: the status of an object by the conditions that most kinds have (sigs.k8s.io/cli-utils, ``pkg/kstatus``).

The first rule that matches decides:

1. The object is being deleted: terminating.
2. ``status.observedGeneration`` is older than the spec: in progress. A status without it counts as new.
3. Condition ``Stalled`` is True: failed. (kstatus uses the first of ``Stalled`` and ``Reconciling`` in the list; here
   the more critical one wins.)
4. Condition ``Reconciling`` is True: in progress.
5. Condition ``Ready`` is present and not True: in progress. A permanent failure looks the same.
6. Otherwise current, even without a status: perhaps no controller will write one.

konverge adds two rules. Rule 2 also applies to a condition with an observed generation. An author can require
conditions that the kind reports. This closes the gap of rule 6 between the creation of an object and its first report.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from konverge._internal.kube import Object, find_condition
from konverge._internal.primitives.field_access import read_integer, read_text
from konverge._internal.primitives.resource_protocol import Convergence, ConvergingStatus, Grace, GraceStatus
from konverge._internal.primitives.status_conditions import describe_termination, read_condition, read_generation

__all__ = ["Kstatus", "compute_kstatus", "convergence_by_kstatus", "grace_by_kstatus"]


class Kstatus(StrEnum):
    """The status of an object in the terms of kstatus."""

    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"


_CONVERGING = {
    Kstatus.CURRENT: ConvergingStatus.OPERATIONAL,
    Kstatus.IN_PROGRESS: ConvergingStatus.OPERATION_PENDING,
    Kstatus.FAILED: ConvergingStatus.OPERATION_FAILING,
    # An object that another client deleted is created again once it is gone.
    Kstatus.TERMINATING: ConvergingStatus.OPERATION_PENDING,
}


def compute_kstatus(live: Object, required_conditions: Sequence[str] = ()) -> tuple[Kstatus, str]:
    """Return the kstatus of a live object and the reason, whatever the object contains.

    Args:
        live: The object.
        required_conditions: The types of further conditions that must be True; an absent one means in progress.
    """
    if why := describe_termination(live):
        return Kstatus.TERMINATING, why
    generation = read_generation(live)
    if read_integer(live, "status", "observedGeneration", default=generation) < generation:
        kind = read_text(live, "kind").lower() or "the object's"
        return Kstatus.IN_PROGRESS, f"Waiting for {kind} controller to observe latest spec"
    for condition_type, bad in (("Stalled", Kstatus.FAILED), ("Reconciling", Kstatus.IN_PROGRESS)):
        condition = read_condition(live, condition_type, generation)
        if condition.status == "True":
            return bad, condition.description
        if condition.is_stale:
            return Kstatus.IN_PROGRESS, condition.description
    for condition_type in _list_good_types(required_conditions):
        condition = read_condition(live, condition_type, generation)
        if condition.status != "True" and (condition.is_present or condition_type in required_conditions):
            return Kstatus.IN_PROGRESS, condition.description
    return Kstatus.CURRENT, "Resource is current"


def convergence_by_kstatus(live: Object, required_conditions: Sequence[str] = ()) -> Convergence:
    """Return Operational for current, OperationFailing for failed, and OperationPending for the others."""
    status, reason = compute_kstatus(live, required_conditions)
    return Convergence(_CONVERGING[status], reason)


def grace_by_kstatus(live: Object, required_conditions: Sequence[str] = ()) -> Grace:
    """Return the grace of a live object: Down if it reports a failure, Degraded if it reports nothing.

    It is Down if ``Ready`` or a required condition is False, if it failed, or if it is being deleted. It is Degraded if
    its controller has not observed the latest spec or is still processing it: the previous state may still work.
    """
    status, reason = compute_kstatus(live, required_conditions)
    if status is Kstatus.CURRENT:
        return Grace(GraceStatus.HEALTHY, reason)
    conditions = (find_condition(live, condition_type) for condition_type in _list_good_types(required_conditions))
    is_unready = any(condition is not None and condition.status == "False" for condition in conditions)
    if is_unready or status in (Kstatus.FAILED, Kstatus.TERMINATING):
        return Grace(GraceStatus.DOWN, reason)
    return Grace(GraceStatus.DEGRADED, reason)


def _list_good_types(required_conditions: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(("Ready", *required_conditions)))
