"""The owner's own condition: one that sums up its components'."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.component.component import Component
from konverge.component.condition import generation_of
from konverge.component.status import Status
from konverge.kube import Condition, Object

__all__ = ["aggregate", "summed_up"]


def aggregate(condition_type: str, owner: Object, components: Sequence[Component]) -> Condition:
    """The condition that sums up the components' conditions on the owner; staged by whoever asks.

    True only if all are True. The reason is that of the highest-priority condition that is not True, else of the
    highest of all; of equals, the component that was named first. The message is the component's name and its message.
    """
    if not components:
        message = "No components were aggregated."
        return Condition(condition_type, "False", Status.UNKNOWN, message, generation_of(owner))
    reported = [(component.name, component.condition(owner)) for component in components]
    return summed_up(condition_type, reported, generation_of(owner))


def summed_up(condition_type: str, reported: Sequence[tuple[str, Condition]], generation: int | None) -> Condition:
    """The condition that sums up others, by the rule of `aggregate`.

    Args:
        condition_type: Its own type.
        reported: What each part is called, and its condition; at least one.
        generation: The owner's, which it observes.
    """
    waiting = [(name, found) for name, found in reported if found.status != "True"]
    name, found = max(waiting or reported, key=lambda pair: Status.of_reason(pair[1].reason).priority)
    message = f"{name}: {found.message}" if found.message else name
    return Condition(condition_type, "False" if waiting else "True", found.reason, message, generation)
