"""The owner's own condition: one that sums up its components'."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.component.component import Component
from konverge.component.condition import generation_of
from konverge.component.status import Status
from konverge.kube import Condition, Object

__all__ = ["aggregate"]


def aggregate(condition_type: str, owner: Object, components: Sequence[Component]) -> Condition:
    """The condition that sums up the components' conditions on the owner; staged by whoever asks.

    True only if all are True. The reason is that of the highest-priority condition that is not True, else of the
    highest of all; of equals, the component that was named first. The message is the component's name and its message.
    """
    generation = generation_of(owner)
    if not components:
        return Condition(condition_type, "False", Status.UNKNOWN, "No components were aggregated.", generation)
    reported = [(component, component.condition(owner)) for component in components]
    waiting = [(component, found) for component, found in reported if found.status != "True"]
    component, found = max(waiting or reported, key=lambda pair: Status.of_reason(pair[1].reason).priority)
    message = f"{component.name}: {found.message}" if found.message else component.name
    return Condition(condition_type, "False" if waiting else "True", found.reason, message, generation)
