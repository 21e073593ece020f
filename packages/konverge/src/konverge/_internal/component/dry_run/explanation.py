"""The explanation of a component's condition and of the next events, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from konverge._internal.component.aggregation import AggregatedStatus
from konverge._internal.component.component import Component
from konverge._internal.component.condition_reason import PROGRESS_REASONS, ConditionReason
from konverge._internal.component.condition_rules import compute_grace_deadline
from konverge._internal.component.data_flow import build_data_topology
from konverge._internal.component.dry_run.report import PrerequisiteReport, ResourceReport
from konverge._internal.component.resource_options import ResourceMode
from konverge._internal.kube import Condition, format_time
from konverge._internal.primitives.resource_protocol import READY

__all__ = ["Explanation"]


class Explanation:
    """The explanation of one reconcile of a component.

    Args:
        component: The component.
        before: The condition that the owner has.
        after: The condition after the reconcile.
        aggregate: The aggregated status of the resources, before grace and stickiness; None if it was not computed.
        resources: The reports of the resources.
        prerequisites: The reports of the prerequisites.
        now: The time of the reconcile.
        error: The error; empty for none.
    """

    def __init__(
        self,
        component: Component,
        before: Condition | None,
        after: Condition,
        aggregate: AggregatedStatus | None,
        resources: Sequence[ResourceReport],
        prerequisites: Sequence[PrerequisiteReport],
        now: datetime,
        error: str,
    ) -> None:
        self._component = component
        self._before = before
        self._after = after
        self._status = ConditionReason.of_reason(after.reason)
        self._aggregate = aggregate
        self._resources = resources
        self._prerequisites = prerequisites
        self._now = now
        self._error = error

    @property
    def grace_ends(self) -> datetime | None:
        """The end (inclusive) of the grace period; None if it is not running."""
        return compute_grace_deadline(self._after, self._component.grace_period)

    def describe_rule(self) -> str:
        """Describe the rule behind the condition."""
        status, aggregate = self._status, self._aggregate
        fixed = _RULES.get(status)
        if fixed is not None:
            return f"{_format_reason(status)}: {fixed}"
        if status in (ConditionReason.DEGRADED, ConditionReason.DOWN):
            ended = compute_grace_deadline(self._before, self._component.grace_period)
            when = f" at {format_time(ended)}" if ended is not None else ""
            return f"{_format_reason(status)}: its grace period ended{when}; the worst grade of its resources counts"
        if aggregate is None:
            return f"{_format_reason(status)}: the least suspended of its resources counts"
        if aggregate.status is not status:
            reasons = ", ".join(sorted(reason.value for reason in PROGRESS_REASONS))
            return (
                f"{status} is kept: the first of {reasons} stays until the component is ready or graded; its resources "
                f"report {_format_reason(aggregate.status)}"
            )
        judged = list(self._iter_statuses())
        if not judged:
            return f"{_format_reason(status)}: none of its resources has a health status"
        if len(judged) == 1:
            return f"{_format_reason(status)}: the status of {judged[0][0]}, the only resource with a health status"
        if all(reported == status for _, reported in judged):
            return f"{_format_reason(status)}: the status of all resources with a health status"
        statuses = ", ".join(f"{reported} of {identity}" for identity, reported in judged)
        if aggregate.is_ready:
            return f"{_format_reason(status)}: all are ready; the highest state counts, of: {statuses}"
        return f"{_format_reason(status)}: the most critical state counts, of: {statuses}"

    def _iter_statuses(self) -> Iterator[tuple[str, str]]:
        for report in self._resources:
            if report.outcome == "halts":
                halt = "Blocked" if report.convergence is None else report.convergence.status
                yield report.identity, halt
            elif report.convergence is not None and not report.is_auxiliary:
                yield report.identity, report.convergence.status

    def describe_next(self, wakes_at: datetime | None) -> Iterator[str]:
        """Describe the next events, and possible actions of the author.

        Args:
            wakes_at: The time of the requeue that the reconcile requests; None for none.
        """
        yield from self._describe_writes()
        yield from self._describe_waiting()
        yield from self._describe_grace()
        yield from self._describe_conflicts()
        if wakes_at is not None:
            yield f"The next scheduled reconcile is at {format_time(wakes_at)}."

    def _list_next_actions(self) -> list[str]:
        """List the actions of the next reconcile that the last one did not take."""
        names = ", ".join(report.identity for report in self._resources if report.changes)
        news = [f"writes {names}"] if names else []
        if self._before is None or self._before.reason != self._after.reason:
            news.append(f"reports {self._status}")
        return news

    def _describe_writes(self) -> Iterator[str]:
        news = self._list_next_actions()
        if news:
            yield f"The next reconcile {' and '.join(news)}. If a running operator does not, its log has the reason."

    def _describe_waiting(self) -> Iterator[str]:
        if self._error:
            yield (
                "The reconcile fails. It is retried after a growing backoff, and immediately after a change of the "
                "owner or one of its objects."
            )
            return
        match self._status:
            case ConditionReason.PREREQUISITE_NOT_MET:
                waiting = next((report for report in self._prerequisites if report.verdict == "NotMet"), None)
                yield (
                    "The component has not begun: it writes no object until the prerequisite is met"
                    f"{_format_prerequisite(waiting)}. Each reconcile of the owner checks it again."
                )
            case ConditionReason.DISABLED:
                yield "Its objects are deleted. The component begins again when the gate is on."
            case ConditionReason.SUSPENDED:
                yield "Nothing, until the component is resumed."
            case ConditionReason.SUSPENDING | ConditionReason.PENDING_SUSPENSION:
                yield "A change of an object that is not suspended yet triggers a reconcile."
            case ConditionReason.HEALTHY | ConditionReason.OPERATIONAL | ConditionReason.COMPLETED:
                if not self._list_next_actions():
                    yield "Nothing, until the owner or one of its objects changes."
            case _:
                yield from self._describe_not_ready()

    def _describe_not_ready(self) -> Iterator[str]:
        halting = next((report for report in self._resources if report.outcome == "halts"), None)
        if halting is not None:
            behind = [report.identity for report in self._resources if report.outcome == "not reached"]
            reason = halting.reason.rstrip(".")
            yield f"{halting.identity} halts the component: {reason}." + (
                f" Waiting for it: {', '.join(behind)}." if behind else ""
            )
            yield from self._describe_unblocking(halting)
        waiting = [
            report.identity
            for report in self._resources
            if report.convergence is not None
            and not report.is_auxiliary
            and report.outcome != "halts"
            and report.convergence.status not in READY
        ]
        if waiting:
            yield f"A change of {', '.join(waiting)} triggers a reconcile."

    def _describe_unblocking(self, halting: ResourceReport) -> Iterator[str]:
        if halting.missing_data:
            producers: Mapping[str, tuple[str, ...]] = {
                edge.name: edge.producers for edge in build_data_topology(self._component.entries)
            }
            for name in halting.missing_data:
                yield f'Data "{name}" comes from {", ".join(producers[name])}: its extractor has returned no value yet.'
        elif halting.mode == ResourceMode.READ_ONLY.value and halting.exists is False:
            yield f"The component continues as soon as {halting.identity} exists."
        elif halting.guard is not None and halting.guard.status == "Blocked":
            yield (
                "Each reconcile evaluates its guard again. A change of the owner, or of an object that the component "
                "manages or reads, triggers one. Declare a watch for any other object that the guard depends on."
            )

    def _describe_grace(self) -> Iterator[str]:
        period = self._component.grace_period
        if self._status in (ConditionReason.DEGRADED, ConditionReason.DOWN):
            yield "The component recovers when it is ready."
            return
        ends = self.grace_ends
        if ends is None or self._status is ConditionReason.ERROR:
            return
        grades = [
            f"{report.grace.status} ({report.grace.reason})" if report.grace.reason else report.grace.status
            for report in self._resources
            if report.grace is not None and not report.is_auxiliary and report.grace.status != "Healthy"
        ]
        if self._status is ConditionReason.BLOCKED:
            grades = ["Down, like any blocked component"]
        would = f" With its present state, it would then be {'; '.join(grades)}." if grades else ""
        yield f"Its grace period of {period.total_seconds():g} s ends at {format_time(ends)}.{would}"

    def _describe_conflicts(self) -> Iterator[str]:
        for report in self._resources:
            fighters = dict.fromkeys(conflict.writer.manager for conflict in report.contests if conflict.is_fought_over)
            if fighters:
                yield (
                    f"{', '.join(fighters)} writes fields of {report.identity} that the component applies. Each "
                    "reconcile takes them back, the other manager writes again, and konverge slows the owner down. "
                    "Remove the fields from the desired object, or stop the other manager."
                )


# The rules that apply before resources are processed, or regardless of their status.
_RULES = {
    ConditionReason.ERROR: "a step failed, which takes precedence over the status of its resources",
    ConditionReason.FEATURE_GATE_ERROR: "its feature gate cannot be evaluated",
    ConditionReason.DISABLED: "its feature gate is off, which takes precedence over everything else",
    ConditionReason.PREREQUISITE_NOT_MET: (
        "prerequisites are checked until the component has begun; the first one that is not met counts"
    ),
}


def _format_reason(status: ConditionReason) -> str:
    return f"{status} (priority {status.priority})"


def _format_prerequisite(waiting: PrerequisiteReport | None) -> str:
    return "" if waiting is None else f" ({waiting.name})"
