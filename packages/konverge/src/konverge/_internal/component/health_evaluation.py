"""Step 5 of a reconcile: the status of the component from the health of its resources.

The functions of the resources judge their live objects; `aggregation` and `condition_rules` decide. If a component is
late, the causes that an examination finds (`diagnosis`) follow the reasons of its resources, in parentheses.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from konverge._internal.component.aggregation import AggregatedStatus, aggregate_convergence, aggregate_grades
from konverge._internal.component.component_spec import ComponentSpec, RegisteredResource
from konverge._internal.component.condition_reason import ConditionReason
from konverge._internal.component.condition_rules import apply_grace, find_not_ready_time, is_expired
from konverge._internal.component.diagnosis import ExaminationSchedule, is_examined
from konverge._internal.component.lifecycle_calls import CONVERGENCES, GRADES, call_lifecycle
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.kube import Condition, Object
from konverge._internal.primitives.resource_protocol import Convergence, Grace, GraceStatus, Operation

__all__ = ["HealthEvaluation", "ResourceResult"]

J = TypeVar("J", Convergence, Grace)

_log = logging.getLogger("konverge.component")

_CONVERGING = "failed to determine converging status of resource"
_GRACE = "failed to determine grace status of resource"
_MAX_EXAMINED = 3


@dataclass(frozen=True, slots=True)
class ResourceResult:
    """Result of step 4 for one resource: its live object, or the reason why it halts the component."""

    entry: RegisteredResource
    live: Object | None
    operation: Operation = Operation.NONE
    halt: Convergence | None = None


class _Judged(NamedTuple):
    """A resource with the converging status that counts for the component."""

    result: ResourceResult
    convergence: Convergence


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

    async def aggregate(self, processed: Sequence[ResourceResult]) -> AggregatedStatus:
        """Return the status of the component.

        Args:
            processed: The results of step 4.

        Raises:
            konverge.errors.ReconcileError: A function of a resource failed.
        """
        judged = list(self._iter_judged(processed))
        verdict = aggregate_convergence([convergence for _, convergence in judged])
        causes: Mapping[str, str] = {}
        if not verdict.is_ready and self._ctx.diagnosis is not None:
            causes = await self._examine(judged, verdict)
            verdict = aggregate_convergence(
                [_add_causes(convergence, causes.get(result.entry.identity)) for result, convergence in judged]
            )
        return apply_grace(
            verdict,
            self._earlier,
            period=self._component.grace_period,
            now=self._now,
            graded=lambda: self._grade_resources(processed, causes),
        )

    def _iter_judged(self, processed: Iterable[ResourceResult]) -> Iterable[_Judged]:
        for result in processed:
            if result.halt is not None:
                yield _Judged(result, result.halt)
                continue
            # Called for auxiliary resources too, so that the error of a handler shows wherever it is used.
            convergence = self._read_converging_status(result)
            if convergence is not None and result.entry.counts_health:
                yield _Judged(result, convergence)

    def _read_converging_status(self, result: ResourceResult) -> Convergence | None:
        handler = result.entry.resource.converging_status
        return call_lifecycle(
            self._ctx, _CONVERGING, result.entry, handler, result.live, result.operation, expected=CONVERGENCES
        )

    async def _examine(self, judged: Sequence[_Judged], verdict: AggregatedStatus) -> Mapping[str, str]:
        """Return the causes of the resources that are late, by identity, and request the next examination."""
        diagnosis = self._ctx.diagnosis
        waiting = [
            result
            for result, convergence in judged
            if result.live is not None and not convergence.status.is_ready and is_examined(result.entry.resource.gvk)
        ]
        if diagnosis is None or not waiting:
            return {}
        if verdict.status is ConditionReason.BLOCKED and not self._is_expired():
            return {}  # the message of a blocked component is the reason of its guard alone
        schedule = ExaminationSchedule(find_not_ready_time(self._earlier) or self._now)
        self._ctx.request_requeue(schedule.find_next_time(self._now))
        if not schedule.is_late(self._now):
            return {}
        causes = {}
        for result in waiting[:_MAX_EXAMINED]:
            assert result.live is not None
            key = result.entry.resource.key
            found = await diagnosis.examine(result.live)
            hidden = [self._ctx.secret_values.hide(cause, public=(key.name, key.namespace)) for cause in found]
            causes[result.entry.identity] = "; ".join(hidden)
        return causes

    def _is_expired(self) -> bool:
        return is_expired(self._earlier, self._component.grace_period, self._now)

    def _grade_resources(
        self, processed: Iterable[ResourceResult], causes: Mapping[str, str]
    ) -> AggregatedStatus | None:
        grades = []
        for result in processed:
            entry = result.entry
            if result.halt is not None:
                grades.append(Grace(GraceStatus.DOWN, result.halt.reason))
                continue
            if not entry.counts_health:
                continue
            grade = call_lifecycle(self._ctx, _GRACE, entry, entry.resource.grace_status, result.live, expected=GRADES)
            if grade is not None:
                grades.append(_add_causes(grade, causes.get(entry.identity)))
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


def _add_causes(judgement: J, causes: str | None) -> J:
    """Return the result with the causes after its reason, unless the reason has them already."""
    if not causes or causes in judgement.reason:
        return judgement
    return replace(judgement, reason=f"{judgement.reason} ({causes})" if judgement.reason else causes)
