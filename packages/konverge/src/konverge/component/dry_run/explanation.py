"""Why a component says what it says, and what happens next, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from konverge.component.aggregation import AggregatedStatus
from konverge.component.component import Component
from konverge.component.condition_reason import PROGRESS_REASONS, ConditionReason
from konverge.component.condition_rules import compute_grace_deadline
from konverge.component.data_flow import build_data_topology
from konverge.component.dry_run.report import PrerequisiteReport, ResourceReport
from konverge.component.resource_options import ResourceMode
from konverge.kube import Condition, format_time
from konverge.primitives.resource_protocol import READY

__all__ = ["Explanation"]


class Explanation:
    """What follows from one pass of a component.

    Args:
        component: The component.
        before: The condition that the owner has.
        after: The one that the pass leaves.
        aggregate: What the resources come to, before grace and stickiness; None where they were not asked.
        resources: What became of them.
        prerequisites: What became of those.
        now: The time of the pass.
        error: What failed.
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
        """Until when (inclusive) it has grace; None when no clock runs."""
        return compute_grace_deadline(self._after, self._component.grace_period)

    def describe_rule(self) -> str:
        """Which rule makes the condition what it is."""
        status, aggregate = self._status, self._aggregate
        fixed = _RULES.get(status)
        if fixed is not None:
            return f"{_format_reason(status)}: {fixed}"
        if status in (ConditionReason.DEGRADED, ConditionReason.DOWN):
            ended = compute_grace_deadline(self._before, self._component.grace_period)
            when = f" at {format_time(ended)}" if ended is not None else ""
            return f"{_format_reason(status)}: its grace was over{when}; the worst grade of its resources counts"
        if aggregate is None:
            return f"{_format_reason(status)}: the least suspended of its resources counts"
        if aggregate.status is not status:
            told = ", ".join(sorted(each.value for each in PROGRESS_REASONS))
            return (
                f"{status} is kept: {told} stick to each other until the component is ready or graded; its resources "
                f"say {_format_reason(aggregate.status)}"
            )
        judged = list(self._iter_statuses())
        if not judged:
            return f"{_format_reason(status)}: none of its resources has a health to wait for"
        if len(judged) == 1:
            return f"{_format_reason(status)}: so says {judged[0][0]}, and nothing else that was asked has a health"
        if all(found == status for _, found in judged):
            return f"{_format_reason(status)}: all say so that have a health"
        said = ", ".join(f"{found} of {identity}" for identity, found in judged)
        if aggregate.is_ready:
            return f"{_format_reason(status)}: all are ready, and the highest of their states shows, of: {said}"
        return f"{_format_reason(status)}: the most critical state wins, of: {said}"

    def _iter_statuses(self) -> Iterator[tuple[str, str]]:
        for story in self._resources:
            if story.outcome == "halts":
                halt = "Blocked" if story.convergence is None else story.convergence.status
                yield story.identity, halt
            elif story.convergence is not None and not story.is_auxiliary:
                yield story.identity, story.convergence.status

    def describe_next(self, wakes_at: datetime | None) -> Iterator[str]:
        """What happens next, and what the author can do.

        Args:
            wakes_at: When the pass asks for another one by itself.
        """
        yield from self._describe_writes()
        yield from self._describe_waiting()
        yield from self._describe_grace()
        yield from self._describe_conflicts()
        if wakes_at is not None:
            yield f"It is looked at again by itself at {format_time(wakes_at)}."

    def _list_next_actions(self) -> list[str]:
        """What the next pass would do that the last one has not."""
        names = ", ".join(story.identity for story in self._resources if story.changes)
        news = [f"writes {names}"] if names else []
        if self._before is None or self._before.reason != self._after.reason:
            news.append(f"reports {self._status}")
        return news

    def _describe_writes(self) -> Iterator[str]:
        news = self._list_next_actions()
        if news:
            yield f"The next pass {' and '.join(news)}. Where an operator runs and does not, its log says why."

    def _describe_waiting(self) -> Iterator[str]:
        if self._error:
            yield (
                "The pass fails. It is tried again after a back-off, which grows, and at once when the owner or one of "
                "its objects changes."
            )
            return
        match self._status:
            case ConditionReason.PREREQUISITE_NOT_MET:
                waiting = next((each for each in self._prerequisites if each.verdict == "NotMet"), None)
                yield (
                    "It has not begun, and nothing of it is touched until the prerequisite is met"
                    f"{_format_prerequisite(waiting)}. Each pass of the owner asks again."
                )
            case ConditionReason.DISABLED:
                yield "Its objects are gone or going. It begins anew when the gate is on."
            case ConditionReason.SUSPENDED:
                yield "Nothing, until it is resumed."
            case ConditionReason.SUSPENDING | ConditionReason.PENDING_SUSPENSION:
                yield "A change of the objects that are not suspended yet wakes it."
            case ConditionReason.HEALTHY | ConditionReason.OPERATIONAL | ConditionReason.COMPLETED:
                if not self._list_next_actions():
                    yield "Nothing, until the owner or one of its objects changes."
            case _:
                yield from self._describe_not_ready()

    def _describe_not_ready(self) -> Iterator[str]:
        halting = next((story for story in self._resources if story.outcome == "halts"), None)
        if halting is not None:
            behind = [story.identity for story in self._resources if story.outcome == "not reached"]
            reason = halting.reason.rstrip(".")
            yield f"{halting.identity} halts it: {reason}." + (
                f" Behind it wait {', '.join(behind)}." if behind else ""
            )
            yield from self._describe_unblocking(halting)
        waiting = [
            story.identity
            for story in self._resources
            if story.convergence is not None
            and not story.is_auxiliary
            and story.outcome != "halts"
            and story.convergence.status not in READY
        ]
        if waiting:
            yield f"A change of {', '.join(waiting)} wakes it."

    def _describe_unblocking(self, halting: ResourceReport) -> Iterator[str]:
        if halting.missing_data:
            producers: Mapping[str, tuple[str, ...]] = {
                edge.name: edge.producers for edge in build_data_topology(self._component.entries)
            }
            for name in halting.missing_data:
                yield f'Data "{name}" comes from {", ".join(producers[name])}: its extractor has found nothing yet.'
        elif halting.mode == ResourceMode.READ_ONLY.value and halting.exists is False:
            yield f"It goes on as soon as {halting.identity} is there."
        elif halting.guard is not None and halting.guard.status == "Blocked":
            yield (
                "Its guard is asked again in each pass. A change of the owner, or of an object that the component "
                "manages or reads, makes one; for anything else that the guard depends on, declare a watch."
            )

    def _describe_grace(self) -> Iterator[str]:
        period = self._component.grace_period
        if self._status in (ConditionReason.DEGRADED, ConditionReason.DOWN):
            yield "It recovers by becoming ready."
            return
        ends = self.grace_ends
        if ends is None or self._status is ConditionReason.ERROR:
            return
        grades = [
            f"{story.grace.status} ({story.grace.reason})" if story.grace.reason else story.grace.status
            for story in self._resources
            if story.grace is not None and not story.is_auxiliary and story.grace.status != "Healthy"
        ]
        if self._status is ConditionReason.BLOCKED:
            grades = ["Down, as whatever is blocked"]
        would = f" As it is now, it would then be {'; '.join(grades)}." if grades else ""
        yield f"Its grace of {period.total_seconds():g} s ends at {format_time(ends)}.{would}"

    def _describe_conflicts(self) -> Iterator[str]:
        for story in self._resources:
            fighters = dict.fromkeys(contest.writer.manager for contest in story.contests if contest.is_fought_over)
            if fighters:
                yield (
                    f"{', '.join(fighters)} writes fields of {story.identity} that the component applies. Each pass "
                    "takes them back; who loses them writes again, until konverge slows the owner down. Leave the "
                    "fields out of the desired object, or stop the other writer."
                )


# What is said before resources are asked, or whatever they say.
_RULES = {
    ConditionReason.ERROR: "a step failed, and that outranks what its resources say",
    ConditionReason.FEATURE_GATE_ERROR: "its feature gate cannot be evaluated",
    ConditionReason.DISABLED: "its feature gate is off, which comes before everything else",
    ConditionReason.PREREQUISITE_NOT_MET: (
        "prerequisites are asked until it has begun, and the first that is not met decides"
    ),
}


def _format_reason(status: ConditionReason) -> str:
    return f"{status} (priority {status.priority})"


def _format_prerequisite(waiting: PrerequisiteReport | None) -> str:
    return "" if waiting is None else f" ({waiting.name})"
