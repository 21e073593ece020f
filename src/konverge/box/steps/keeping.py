"""What is done with an object that an entry of the file stands for. Pure, and the same for all kinds.

The decision rests on how the entry treats its object (`Keeping`), whether its conditions hold, and what the cluster
has. An object is deleted only where its entry keeps it, only if it is ours, and only if no other entry wants it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

__all__ = ["SPARED", "Decided", "Decision", "Keeping", "Sighting", "Values", "decide"]

SPARED = "it is somebody else's"
"""Why an object that is not wanted is not deleted either."""


class Decision(Enum):
    """What happens in this pass."""

    APPLY = "apply"
    """It is made, or made to be as declared."""
    LEAVE = "leave"
    """It is there and stays as it is; its health counts."""
    SKIP = "skip"
    """Nothing is done about it."""
    DELETE = "delete"


class Values(Enum):
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


class Keeping(NamedTuple):
    """How an entry treats its object.

    Args:
        values: When what it renders is applied.
        removes: Whether the object goes when the entry does not want it any more.
    """

    values: Values
    removes: bool

    @property
    def is_marked(self) -> bool:
        """Tell whether it is noted on the owner that the object was made."""
        return self.values in (Values.MADE, Values.RUN)

    @property
    def can_remove(self) -> bool:
        """Tell whether it ever deletes the object."""
        return self.removes and self.values is not Values.RUN


@dataclass(frozen=True, slots=True)
class Sighting:
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


class Decided(NamedTuple):
    """A decision and why."""

    decision: Decision
    why: str


def decide(keeping: Keeping, seen: Sighting, *, passes: bool, is_wanted: bool) -> Decided:
    """What is done with the object.

    Args:
        keeping: How the entry treats it.
        seen: What the cluster has.
        passes: The entry's conditions hold, and those of its group.
        is_wanted: Another entry of the custom resource wants the object.
    """
    if passes:
        return _wanted(keeping.values, seen)
    if is_wanted:
        return Decided(Decision.SKIP, "another entry wants it")
    if not keeping.can_remove:
        return Decided(Decision.SKIP, "its conditions do not hold; what was made stays")
    if seen.exists and seen.is_ours:
        return Decided(Decision.DELETE, "its conditions do not hold")
    return Decided(Decision.SKIP, "its conditions do not hold" if not seen.exists else SPARED)


def _wanted(values: Values, seen: Sighting) -> Decided:
    if values is Values.ALWAYS:
        return Decided(Decision.APPLY, "kept as declared")
    if not seen.exists:
        if values in (Values.MADE, Values.RUN) and seen.is_marked:
            return Decided(Decision.SKIP, "it was made once, and is not made again")
        return Decided(Decision.APPLY, "there is none")
    if values is Values.RENEWED and seen.is_ours and seen.is_due:
        return Decided(Decision.APPLY, "its values are made anew")
    return Decided(Decision.LEAVE, "it is there, and left as it is")
