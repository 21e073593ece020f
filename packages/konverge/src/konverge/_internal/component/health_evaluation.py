"""Step 5 of a reconcile: the status of the component from the health of its resources.

The functions of the resources judge their live objects; `aggregation` and `condition_rules` decide.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from konverge._internal.component.aggregation import AggregatedStatus, aggregate_convergence, aggregate_grades
from konverge._internal.component.component_spec import ComponentSpec, RegisteredResource
from konverge._internal.component.condition_rules import apply_grace
from konverge._internal.component.lifecycle_calls import CONVERGENCES, GRADES, call_lifecycle
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.kube import Condition, Object
from konverge._internal.primitives.resource_protocol import Convergence, Grace, GraceStatus, Operation

__all__ = ["HealthEvaluation", "ResourceResult"]

_log = logging.getLogger("konverge.component")

_CONVERGING = "failed to determine converging status of resource"
_GRACE = "failed to determine grace status of resource"


@dataclass(frozen=True, slots=True)
class ResourceResult:
    """Result of step 4 for one resource: its live object, or the reason why it halts the component."""

    entry: RegisteredResource
    live: Object | None
    operation: Operation = Operation.NONE
    halt: Convergence | None = None


class HealthEvaluation:
    """The evaluation of the resources of one reconcile.

    Args:
        component: The component.
        ctx: The reconcile.
        earlier: The condition before this reconcile.
        now: The time of the reconcile.
    """

    def __init__(
        self, component: ComponentSpec, ctx: ReconcileContext, earlier: Condition | None, now: datetime
    ) -> None:
        self._component = component
        self._ctx = ctx
        self._earlier = earlier
        self._now = now

    def aggregate(self, processed: Sequence[ResourceResult]) -> AggregatedStatus:
        """Return the status of the component.

        Args:
            processed: The results of step 4.

        Raises:
            konverge.errors.ReconcileError: A function of a resource failed.
        """
        return apply_grace(
            aggregate_convergence(self._collect_convergence(processed)),
            self._earlier,
            period=self._component.grace_period,
            now=self._now,
            graded=lambda: self._grade_resources(processed),
        )

    def _collect_convergence(self, processed: Iterable[ResourceResult]) -> list[Convergence]:
        results = []
        for result in processed:
            if result.halt is not None:
                results.append(result.halt)
                continue
            # Called for auxiliary resources too, so that the error of a handler shows wherever it is used.
            convergence = self._read_converging_status(result)
            if convergence is not None and not result.entry.treatment.is_auxiliary:
                results.append(convergence)
        return results

    def _read_converging_status(self, result: ResourceResult) -> Convergence | None:
        handler = result.entry.resource.converging_status
        return call_lifecycle(
            self._ctx, _CONVERGING, result.entry, handler, result.live, result.operation, expected=CONVERGENCES
        )

    def _grade_resources(self, processed: Iterable[ResourceResult]) -> AggregatedStatus | None:
        grades = []
        for result in processed:
            entry = result.entry
            if result.halt is not None:
                grades.append(Grace(GraceStatus.DOWN, result.halt.reason))
                continue
            if entry.treatment.is_auxiliary:
                continue
            grade = call_lifecycle(self._ctx, _GRACE, entry, entry.resource.grace_status, result.live, expected=GRADES)
            if grade is not None:
                grades.append(grade)
                self._log_grace_inconsistency(result, grade)
        return aggregate_grades(grades)

    def _log_grace_inconsistency(self, result: ResourceResult, grade: Grace) -> None:
        if grade.status is not GraceStatus.HEALTHY or not result.entry.treatment.warns_of_grace_inconsistency:
            return
        converging = self._read_converging_status(result)
        if converging is not None and not converging.status.is_ready:
            _log.info(
                "grace inconsistency: the grace handler reports Healthy for a resource that has not converged",
                extra=self._component.log_fields
                | {
                    "resource": result.entry.identity,
                    "converging_status": converging.status.value,
                    "grace_status": grade.status.value,
                },
            )
