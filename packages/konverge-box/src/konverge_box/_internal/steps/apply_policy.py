"""The decision about one object of an entry. It is pure, and the same for all kinds.

It depends on the policy of the entry (`ApplyPolicy`), on its conditions and on the state in the cluster. An object is
deleted only if the policy deletes, the object belongs to the custom resource, and no other entry declares it.
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

FOREIGN_OBJECT = "it does not belong to this custom resource"
"""The explanation for an object that is not declared, and is not deleted either."""


class ObjectAction(Enum):
    """The action on an object in this reconcile."""

    APPLY = "apply"
    """The object is created or updated."""
    LEAVE = "leave"
    """The object exists and stays unchanged. Its health counts."""
    SKIP = "skip"
    """Nothing happens, and no health counts."""
    DELETE = "delete"


class ApplyTiming(Enum):
    """The times at which a rendered object is applied."""

    ALWAYS = "always"
    """In each reconcile, which corrects differences."""
    MADE = "made"
    """Once. An object that a user deletes is not created again."""
    RUN = "run"
    """Once, for a Job, which is never deleted."""
    ONCE = "once"
    """Whenever the object is absent or a user requests new values: for a Secret with generated values."""
    RENEWED = "renewed"
    """Also when its values have expired."""


class ApplyPolicy(NamedTuple):
    """The policy of an entry for its object.

    Args:
        timing: The times at which the object is applied.
        deletes: Tells whether the object is deleted when the entry no longer declares it.
    """

    timing: ApplyTiming
    deletes: bool

    @property
    def is_marked(self) -> bool:
        """Tell whether a mark on the owner records that the object was created."""
        return self.timing in (ApplyTiming.MADE, ApplyTiming.RUN)

    @property
    def can_remove(self) -> bool:
        """Tell whether the policy ever deletes the object."""
        return self.deletes and self.timing is not ApplyTiming.RUN


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """The state of the object in the cluster.

    Args:
        exists: An object of that name exists.
        is_ours: The object was created for this owner.
        is_marked: The owner has the mark that the object was created once.
        renewal: The reason why its values are made again; empty without one.
    """

    exists: bool = False
    is_ours: bool = False
    is_marked: bool = False
    renewal: str = ""


class ActionDecision(NamedTuple):
    """The action on an object, with an explanation."""

    action: ObjectAction
    explanation: str


def decide_action(policy: ApplyPolicy, seen: ObservedObject, *, is_on: bool, is_wanted: bool) -> ActionDecision:
    """Decide the action on an object.

    Args:
        policy: The policy of the entry.
        seen: The state of the object in the cluster.
        is_on: The conditions of the entry and of its group hold.
        is_wanted: Another entry of the custom resource declares the object.
    """
    if is_on:
        return _decide_desired(policy.timing, seen)
    if is_wanted:
        return ActionDecision(ObjectAction.SKIP, "another entry declares it")
    if not policy.can_remove:
        return ActionDecision(ObjectAction.SKIP, "its conditions do not hold; an existing object stays")
    if seen.exists and seen.is_ours:
        return ActionDecision(ObjectAction.DELETE, "its conditions do not hold")
    return ActionDecision(ObjectAction.SKIP, "its conditions do not hold" if not seen.exists else FOREIGN_OBJECT)


def _decide_desired(timing: ApplyTiming, seen: ObservedObject) -> ActionDecision:
    if timing is ApplyTiming.ALWAYS:
        return ActionDecision(ObjectAction.APPLY, "kept as declared")
    if not seen.exists:
        if timing in (ApplyTiming.MADE, ApplyTiming.RUN) and seen.is_marked:
            return ActionDecision(ObjectAction.SKIP, "it was created once and is not created again")
        return ActionDecision(ObjectAction.APPLY, "it does not exist")
    if timing in (ApplyTiming.ONCE, ApplyTiming.RENEWED) and seen.is_ours and seen.renewal:
        return ActionDecision(ObjectAction.APPLY, seen.renewal)
    return ActionDecision(ObjectAction.LEAVE, "it exists and stays unchanged")
