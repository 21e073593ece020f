"""kstatus: how far an object is, by the conditions that most kinds have (sigs.k8s.io/cli-utils, ``pkg/kstatus``).

The first of these that holds decides:

1. It is being deleted: terminating.
2. ``status.observedGeneration`` is older than the spec: in progress. A status without it is believed to be new.
3. Condition ``Stalled`` is True: failed. (kstatus takes ``Stalled`` or ``Reconciling``, whichever is listed first; here
   the more critical one wins.)
4. Condition ``Reconciling`` is True: in progress.
5. Condition ``Ready`` is there and not True: in progress. It cannot be told from doomed.
6. Else it is current, also where it has no status at all: nobody may be going to write one.

Beyond kstatus, a condition that names the generation it has seen is held to it as in rule 2, and an author who knows
that the kind reports certain conditions can have them waited for, which closes the gap of rule 6: between the creation
of an object and the first report on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from konverge.kube import Object, find_condition
from konverge.primitives.field_access import read_integer, read_text
from konverge.primitives.resource_protocol import Convergence, ConvergingStatus, Grace, GraceStatus
from konverge.primitives.status_conditions import describe_termination, read_condition, read_generation

__all__ = ["Kstatus", "compute_kstatus", "convergence_by_kstatus", "grace_by_kstatus"]


class Kstatus(StrEnum):
    """How far an object is, in kstatus' words."""

    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"


_CONVERGING = {
    Kstatus.CURRENT: ConvergingStatus.OPERATIONAL,
    Kstatus.IN_PROGRESS: ConvergingStatus.OPERATION_PENDING,
    Kstatus.FAILED: ConvergingStatus.OPERATION_FAILING,
    # What was deleted behind our back is made anew as soon as it is gone.
    Kstatus.TERMINATING: ConvergingStatus.OPERATION_PENDING,
}


def compute_kstatus(live: Object, required_conditions: Sequence[str] = ()) -> tuple[Kstatus, str]:
    """Judge a live object, whatever is in it; answers with the reason.

    Args:
        live: The object.
        required_conditions: The types of conditions that must be True besides; one that is absent is waited for.
    """
    if why := describe_termination(live):
        return Kstatus.TERMINATING, why
    generation = read_generation(live)
    if read_integer(live, "status", "observedGeneration", default=generation) < generation:
        kind = read_text(live, "kind").lower() or "the object's"
        return Kstatus.IN_PROGRESS, f"Waiting for {kind} controller to observe latest spec"
    for condition_type, bad in (("Stalled", Kstatus.FAILED), ("Reconciling", Kstatus.IN_PROGRESS)):
        found = read_condition(live, condition_type, generation)
        if found.status == "True":
            return bad, found.description
        if found.is_stale:
            return Kstatus.IN_PROGRESS, found.description
    for condition_type in _list_good_types(required_conditions):
        found = read_condition(live, condition_type, generation)
        if found.status != "True" and (found.is_present or condition_type in required_conditions):
            return Kstatus.IN_PROGRESS, found.description
    return Kstatus.CURRENT, "Resource is current"


def convergence_by_kstatus(live: Object, required_conditions: Sequence[str] = ()) -> Convergence:
    """Operational when current, failing when failed, pending until then and while it is being deleted."""
    status, reason = compute_kstatus(live, required_conditions)
    return Convergence(_CONVERGING[status], reason)


def grace_by_kstatus(live: Object, required_conditions: Sequence[str] = ()) -> Grace:
    """Grade a live object: Down where it says itself that it does not work, Degraded where it does not say.

    ``Ready`` or a required condition False, failed, being deleted: Down. A controller that has not seen the latest
    spec, or is at work on it, may well keep up what was there before: Degraded.
    """
    status, reason = compute_kstatus(live, required_conditions)
    if status is Kstatus.CURRENT:
        return Grace(GraceStatus.HEALTHY, reason)
    found = (find_condition(live, condition_type) for condition_type in _list_good_types(required_conditions))
    says_no = any(condition is not None and condition.status == "False" for condition in found)
    if says_no or status in (Kstatus.FAILED, Kstatus.TERMINATING):
        return Grace(GraceStatus.DOWN, reason)
    return Grace(GraceStatus.DEGRADED, reason)


def _list_good_types(required_conditions: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(("Ready", *required_conditions)))
