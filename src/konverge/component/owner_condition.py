"""The owner's own condition: one sentence about all of its components."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.component.component import Component
from konverge.component.condition import generation_of
from konverge.component.status import Status
from konverge.kube import Condition, Object

__all__ = ["aggregate", "summed_up"]

_NAMED = 5
_REASON_LENGTH = 500

# What a component with a true condition is, for a person. Any other reason means healthy.
_WORDS = {
    Status.DISABLED: "disabled",
    Status.SUSPENDED: "suspended",
    Status.SUSPENDING: "being suspended",
    Status.PENDING_SUSPENSION: "being suspended",
}
_HEALTHY = "healthy"


def aggregate(condition_type: str, owner: Object, components: Sequence[Component]) -> Condition:
    """The condition that sums up the components' conditions on the owner; staged by whoever asks.

    True only if all are True. The reason is that of the highest-priority condition that is not True, else of the
    highest of all; disabled components count only where there are no others. Of equals, the component that was named
    first. The message is one sentence about the owner: how many components are healthy, or which ones are not ready
    and why.
    """
    if not components:
        message = "No components were aggregated."
        return Condition(condition_type, "False", Status.UNKNOWN, message, generation_of(owner))
    reported = [(component.name, component.condition(owner)) for component in components]
    return summed_up(condition_type, reported, generation_of(owner))


def summed_up(
    condition_type: str, reported: Sequence[tuple[str, Condition]], generation: int | None, *, noun: str = "component"
) -> Condition:
    """The condition that sums up others, by the rule of `aggregate`.

    Args:
        condition_type: Its own type.
        reported: What each part is called, and its condition; at least one.
        generation: The owner's, which it observes.
        noun: What a part is called in the message, in the singular.
    """
    waiting = sorted((part for part in reported if part[1].status != "True"), key=_priority, reverse=True)
    if waiting:
        message = _not_ready(waiting, len(reported), noun)
        return Condition(condition_type, "False", waiting[0][1].reason, message, generation)
    at_work = [part for part in reported if part[1].reason != Status.DISABLED] or reported
    reason = max(at_work, key=_priority)[1].reason
    return Condition(condition_type, "True", reason, _in_expected_state(reported, noun), generation)


def _priority(part: tuple[str, Condition]) -> int:
    return Status.of_reason(part[1].reason).priority


def _not_ready(waiting: Sequence[tuple[str, Condition]], total: int, noun: str) -> str:
    """Name the parts that are not ready, the most critical first, and why."""
    named = [f"{name} ({_why(condition)})" for name, condition in waiting[:_NAMED]]
    if len(waiting) > _NAMED:
        named.append(f"and {len(waiting) - _NAMED} more")
    if total == 1:
        return f"The {noun} {named[0]} is not ready."
    verb = "is" if len(waiting) == 1 else "are"
    return f"{len(waiting)} of {total} {noun}s {verb} not ready: {', '.join(named)}."


def _why(condition: Condition) -> str:
    message = condition.message.rstrip(".")
    if len(message) > _REASON_LENGTH:
        message = message[: _REASON_LENGTH - 1] + "…"
    return f"{condition.reason}: {message}" if message else condition.reason


def _in_expected_state(reported: Sequence[tuple[str, Condition]], noun: str) -> str:
    """Count the parts in each state; name those that are not at work."""
    groups: dict[str, list[str]] = {_HEALTHY: []}
    for name, condition in reported:
        groups.setdefault(_WORDS.get(Status.of_reason(condition.reason), _HEALTHY), []).append(name)
    found = [(state, names) for state, names in groups.items() if names]
    if len(found) == 1:
        state, names = found[0]
        return f"The {noun} {names[0]} is {state}." if len(names) == 1 else f"All {len(names)} {noun}s are {state}."
    clauses = []
    for place, (state, names) in enumerate(found):
        plural = len(names) != 1
        counted = f"{len(names)} {noun}{'s' if plural else ''}" if place == 0 else str(len(names))
        listed = "" if state == _HEALTHY else f" ({_listed(names)})"
        clauses.append(f"{counted} {'are' if plural else 'is'} {state}{listed}")
    return "; ".join(clauses) + "."


def _listed(names: Sequence[str]) -> str:
    left = len(names) - _NAMED
    return ", ".join([*names[:_NAMED], *([f"and {left} more"] if left > 0 else [])])
