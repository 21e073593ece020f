"""What is done with an object that an entry of the file stands for. Pure, and the same for all kinds.

The decision rests on how the entry treats its object (`ApplyPolicy`), whether its conditions hold, and what the cluster
has. An object is deleted only where its entry keeps it, only if it is ours, and only if no other entry wants it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

__all__ = [
    "FOREIGN_OBJECT",
    "ActionDecision",
    "ApplyPolicy",
    "ApplyTiming",
    "ObjectAction",
    "ObservedObject",
    "decide_action",
]

FOREIGN_OBJECT = "it is somebody else's"
"""Why an object that is not wanted is not deleted either."""


class ObjectAction(Enum):
    """What happens in this pass."""

    APPLY = "apply"
    """It is made, or made to be as declared."""
    LEAVE = "leave"
    """It is there and stays as it is; its health counts."""
    SKIP = "skip"
    """Nothing is done about it."""
    DELETE = "delete"


class ApplyTiming(Enum):
    """When what an entry renders is applied."""

    ALWAYS = "always"
    """In each pass: what differs is corrected."""
    MADE = "made"
    """Once; who deletes the object by hand does not get it again."""
    RUN = "run"
    """Once, for a Job: nor is it ever deleted."""
    ONCE = "once"
    """Whenever there is none: the values of a Secret."""
    RENEWED = "renewed"
    """Whenever there is none, or its time has come."""


class ApplyPolicy(NamedTuple):
    """How an entry treats its object.

    Args:
        timing: When what it renders is applied.
        deletes: Whether the object goes when the entry does not want it any more.
    """

    timing: ApplyTiming
    deletes: bool

    @property
    def is_marked(self) -> bool:
        """Tell whether it is noted on the owner that the object was made."""
        return self.timing in (ApplyTiming.MADE, ApplyTiming.RUN)

    @property
    def can_remove(self) -> bool:
        """Tell whether it ever deletes the object."""
        return self.deletes and self.timing is not ApplyTiming.RUN


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """What the cluster has.

    Args:
        exists: There is an object of that name.
        is_ours: It was made for this owner.
        is_marked: The owner is marked: the object has been made once.
        is_due: Its values have reached their age.
    """

    exists: bool = False
    is_ours: bool = False
    is_marked: bool = False
    is_due: bool = False


class ActionDecision(NamedTuple):
    """A decision and why."""

    action: ObjectAction
    explanation: str


def decide_action(keeping: ApplyPolicy, seen: ObservedObject, *, passes: bool, is_wanted: bool) -> ActionDecision:
    """What is done with the object.

    Args:
        keeping: How the entry treats it.
        seen: What the cluster has.
        passes: The entry's conditions hold, and those of its group.
        is_wanted: Another entry of the custom resource wants the object.
    """
    if passes:
        return _decide_desired(keeping.timing, seen)
    if is_wanted:
        return ActionDecision(ObjectAction.SKIP, "another entry wants it")
    if not keeping.can_remove:
        return ActionDecision(ObjectAction.SKIP, "its conditions do not hold; what was made stays")
    if seen.exists and seen.is_ours:
        return ActionDecision(ObjectAction.DELETE, "its conditions do not hold")
    return ActionDecision(ObjectAction.SKIP, "its conditions do not hold" if not seen.exists else FOREIGN_OBJECT)


def _decide_desired(values: ApplyTiming, seen: ObservedObject) -> ActionDecision:
    if values is ApplyTiming.ALWAYS:
        return ActionDecision(ObjectAction.APPLY, "kept as declared")
    if not seen.exists:
        if values in (ApplyTiming.MADE, ApplyTiming.RUN) and seen.is_marked:
            return ActionDecision(ObjectAction.SKIP, "it was made once, and is not made again")
        return ActionDecision(ObjectAction.APPLY, "there is none")
    if values is ApplyTiming.RENEWED and seen.is_ours and seen.is_due:
        return ActionDecision(ObjectAction.APPLY, "its values are made anew")
    return ActionDecision(ObjectAction.LEAVE, "it is there, and left as it is")
