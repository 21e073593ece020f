"""Conditions: the list in an object's status through which a controller reports (meta/v1 ``Condition``).

Conditions merge by type: writing one leaves the others alone, and the transition time moves only when the *status*
does, as ``meta.SetStatusCondition`` of apimachinery has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from konverge.kube.objects import Object
from konverge.kube.timestamps import format_time, parse_time

__all__ = ["MESSAGE_LIMIT", "Condition", "find_condition", "remove_condition", "set_condition"]

MESSAGE_LIMIT = 32768
"""How long a condition's message may be (meta/v1 ``Condition``); a longer one has the whole status refused."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. `status` is ``True``, ``False`` or ``Unknown``, as text."""

    type: str
    status: str
    reason: str
    message: str = ""
    observed_generation: int | None = None
    last_transition_time: datetime | None = None

    @classmethod
    def from_object(cls, found: Mapping[str, Any]) -> Condition:
        """Read one from JSON; a field that is missing or of the wrong type counts as unset (anybody may write one)."""
        generation = found.get("observedGeneration")
        moment: datetime | None = None
        written = found.get("lastTransitionTime")
        if isinstance(written, str):
            try:
                moment = parse_time(written)
            except ValueError:
                moment = None
        return cls(
            type=str(found.get("type") or ""),
            status=str(found.get("status") or "Unknown"),
            reason=str(found.get("reason") or ""),
            message=str(found.get("message") or ""),
            observed_generation=generation if isinstance(generation, int) else None,
            last_transition_time=moment,
        )

    def to_object(self) -> Object:
        """The JSON form, in the API's order of fields."""
        found: Object = {"type": self.type, "status": self.status}
        if self.observed_generation is not None:
            found["observedGeneration"] = self.observed_generation
        if self.last_transition_time is not None:
            found["lastTransitionTime"] = format_time(self.last_transition_time)
        found["reason"] = self.reason
        found["message"] = self.message
        return found


def _list_conditions(obj: Mapping[str, Any]) -> list[Any]:
    status = obj.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    return conditions if isinstance(conditions, list) else []


def find_condition(obj: Mapping[str, Any], condition_type: str) -> Condition | None:
    """The object's condition of that type, None when it has none."""
    for found in _list_conditions(obj):
        if (type(found) is dict or isinstance(found, Mapping)) and found.get("type") == condition_type:
            return Condition.from_object(found)
    return None


def set_condition(obj: Object, condition: Condition, now: datetime) -> Condition:
    """Put a condition into the object's status, in place, and return it as it was stored.

    Args:
        obj: The object; its ``status`` and ``status.conditions`` are made when missing or of the wrong type.
        condition: What to store. Without a transition time of its own it keeps the stored one's while the status is
            equal, and gets `now` when the status differs or the type is new.
        now: The time of the pass.
    """
    status = obj.get("status")
    if not isinstance(status, dict):
        status = obj["status"] = {}
    conditions = status.get("conditions")
    if not isinstance(conditions, list):
        conditions = status["conditions"] = []
    if condition.last_transition_time is None:
        earlier = find_condition(obj, condition.type)
        unchanged = earlier is not None and earlier.status == condition.status
        moment = earlier.last_transition_time if earlier is not None and unchanged else None
        condition = replace(condition, last_transition_time=moment or now)
    for index, found in enumerate(conditions):
        if isinstance(found, Mapping) and found.get("type") == condition.type:
            conditions[index] = condition.to_object()
            return condition
    conditions.append(condition.to_object())
    return condition


def remove_condition(obj: Object, condition_type: str) -> bool:
    """Take the condition of that type out of the object, in place; tell whether there was one."""
    conditions = _list_conditions(obj)
    kept = [found for found in conditions if not (isinstance(found, Mapping) and found.get("type") == condition_type)]
    if len(kept) == len(conditions):
        return False
    obj["status"]["conditions"] = kept
    return True
