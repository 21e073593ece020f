"""The summary condition of the owner: one sentence about all of its components."""

from __future__ import annotations

from collections.abc import Sequence

from konverge._internal.component.component import Component
from konverge._internal.component.condition_reason import ConditionReason
from konverge._internal.component.condition_rules import read_generation
from konverge._internal.kube import Condition, Object

__all__ = ["aggregate", "summarize_conditions"]

_MAX_NAMES = 5
_REASON_LENGTH = 500

# The words for components with a true condition. Any other reason means healthy.
_WORDS = {
    ConditionReason.DISABLED: "disabled",
    ConditionReason.SUSPENDED: "suspended",
    ConditionReason.SUSPENDING: "being suspended",
    ConditionReason.PENDING_SUSPENSION: "being suspended",
}
_HEALTHY = "healthy"


def aggregate(condition_type: str, owner: Object, components: Sequence[Component]) -> Condition:
    """Summarize the components' conditions on the owner in one condition; set it with `ReconcileContext.stage`.

    The status is True only if all are True. The reason is that of the highest-priority condition that is not True, else
    of the highest of all. Disabled components count only if there are no others. Among equals, the first component
    wins. The message is one sentence: the number of healthy components, or the components that are not ready and their
    reasons.
    """
    if not components:
        message = "No components were aggregated."
        return Condition(condition_type, "False", ConditionReason.UNKNOWN, message, read_generation(owner))
    reported = [(component.name, component.condition(owner)) for component in components]
    return summarize_conditions(condition_type, reported, read_generation(owner))


def summarize_conditions(
    condition_type: str, reported: Sequence[tuple[str, Condition]], generation: int | None, *, noun: str = "component"
) -> Condition:
    """Summarize conditions in one condition, by the rule of `aggregate`.

    Args:
        condition_type: The condition type of the summary.
        reported: The name and condition of each part; at least one.
        generation: The owner's generation, which the summary observes.
        noun: The noun for a part in the message, in the singular.
    """
    waiting = sorted((part for part in reported if part[1].status != "True"), key=_read_priority, reverse=True)
    if waiting:
        message = _describe_not_ready(waiting, len(reported), noun)
        return Condition(condition_type, "False", waiting[0][1].reason, message, generation)
    at_work = [part for part in reported if part[1].reason != ConditionReason.DISABLED] or reported
    reason = max(at_work, key=_read_priority)[1].reason
    return Condition(condition_type, "True", reason, _describe_ready(reported, noun), generation)


def _read_priority(part: tuple[str, Condition]) -> int:
    return ConditionReason.of_reason(part[1].reason).priority


def _describe_not_ready(waiting: Sequence[tuple[str, Condition]], total: int, noun: str) -> str:
    """List the parts that are not ready with their reasons, the most critical first."""
    named = [f"{name} ({_describe_condition(condition)})" for name, condition in waiting[:_MAX_NAMES]]
    if len(waiting) > _MAX_NAMES:
        named.append(f"and {len(waiting) - _MAX_NAMES} more")
    if total == 1:
        return f"The {noun} {named[0]} is not ready."
    verb = "is" if len(waiting) == 1 else "are"
    return f"{len(waiting)} of {total} {noun}s {verb} not ready: {', '.join(named)}."


def _describe_condition(condition: Condition) -> str:
    message = condition.message.rstrip(".")
    if len(message) > _REASON_LENGTH:
        message = message[: _REASON_LENGTH - 1] + "…"
    return f"{condition.reason}: {message}" if message else condition.reason


def _describe_ready(reported: Sequence[tuple[str, Condition]], noun: str) -> str:
    """Count the parts in each state, and name those that are not active."""
    groups: dict[str, list[str]] = {_HEALTHY: []}
    for name, condition in reported:
        groups.setdefault(_WORDS.get(ConditionReason.of_reason(condition.reason), _HEALTHY), []).append(name)
    states = [(state, names) for state, names in groups.items() if names]
    if len(states) == 1:
        state, names = states[0]
        return f"The {noun} {names[0]} is {state}." if len(names) == 1 else f"All {len(names)} {noun}s are {state}."
    clauses = []
    for index, (state, names) in enumerate(states):
        plural = len(names) != 1
        counted = f"{len(names)} {noun}{'s' if plural else ''}" if index == 0 else str(len(names))
        listed = "" if state == _HEALTHY else f" ({_format_names(names)})"
        clauses.append(f"{counted} {'are' if plural else 'is'} {state}{listed}")
    return "; ".join(clauses) + "."


def _format_names(names: Sequence[str]) -> str:
    left = len(names) - _MAX_NAMES
    return ", ".join([*names[:_MAX_NAMES], *([f"and {left} more"] if left > 0 else [])])
