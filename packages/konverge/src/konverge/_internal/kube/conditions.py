"""Conditions: the list in an object's status through which a controller reports (meta/v1 ``Condition``).

Conditions merge by type: writing one leaves the others unchanged. The transition time changes only with the *status*,
as in ``meta.SetStatusCondition`` of apimachinery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from konverge._internal.kube.objects import Object
from konverge._internal.kube.timestamps import format_time, parse_time

__all__ = ["MESSAGE_LIMIT", "Condition", "find_condition", "remove_condition", "set_condition"]

MESSAGE_LIMIT = 32768
"""The maximum length of a condition's message (meta/v1 ``Condition``); the server rejects longer ones."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an object. `status` is the text ``True``, ``False`` or ``Unknown``."""

    type: str
    status: str
    reason: str
    message: str = ""
    observed_generation: int | None = None
    last_transition_time: datetime | None = None

    @classmethod
    def from_object(cls, entry: Mapping[str, Any]) -> Condition:
        """Read a condition from JSON; a field that is missing or of the wrong type counts as unset."""
        generation = entry.get("observedGeneration")
        transition_time: datetime | None = None
        text = entry.get("lastTransitionTime")
        if isinstance(text, str):
            try:
                transition_time = parse_time(text)
            except ValueError:
                transition_time = None
        return cls(
            type=str(entry.get("type") or ""),
            status=str(entry.get("status") or "Unknown"),
            reason=str(entry.get("reason") or ""),
            message=str(entry.get("message") or ""),
            observed_generation=generation if isinstance(generation, int) else None,
            last_transition_time=transition_time,
        )

    def to_object(self) -> Object:
        """Return the JSON form, in the API's order of fields."""
        entry: Object = {"type": self.type, "status": self.status}
        if self.observed_generation is not None:
            entry["observedGeneration"] = self.observed_generation
        if self.last_transition_time is not None:
            entry["lastTransitionTime"] = format_time(self.last_transition_time)
        entry["reason"] = self.reason
        entry["message"] = self.message
        return entry


def _list_conditions(obj: Mapping[str, Any]) -> list[Any]:
    status = obj.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    return conditions if isinstance(conditions, list) else []


def find_condition(obj: Mapping[str, Any], condition_type: str) -> Condition | None:
    """Return the object's condition of that type; None if it has none."""
    for entry in _list_conditions(obj):
        if (type(entry) is dict or isinstance(entry, Mapping)) and entry.get("type") == condition_type:
            return Condition.from_object(entry)
    return None


def set_condition(obj: Object, condition: Condition, now: datetime) -> Condition:
    """Set a condition in the object's status, in place, and return it as it was stored.

    Args:
        obj: The object; its ``status`` and ``status.conditions`` are created if missing or of the wrong type.
        condition: The condition to store. Without a transition time it keeps the stored time while the status is
            equal, and gets `now` if the status differs or the type is new.
        now: The time of the reconcile.
    """
    status = obj.get("status")
    if not isinstance(status, dict):
        status = obj["status"] = {}
    conditions = status.get("conditions")
    if not isinstance(conditions, list):
        conditions = status["conditions"] = []
    if condition.last_transition_time is None:
        earlier = find_condition(obj, condition.type)
        is_unchanged = earlier is not None and earlier.status == condition.status
        transition_time = earlier.last_transition_time if earlier is not None and is_unchanged else None
        condition = replace(condition, last_transition_time=transition_time or now)
    for index, entry in enumerate(conditions):
        if isinstance(entry, Mapping) and entry.get("type") == condition.type:
            conditions[index] = condition.to_object()
            return condition
    conditions.append(condition.to_object())
    return condition


def remove_condition(obj: Object, condition_type: str) -> bool:
    """Remove the condition of that type from the object, in place; return True if there was one."""
    conditions = _list_conditions(obj)
    kept = [entry for entry in conditions if not (isinstance(entry, Mapping) and entry.get("type") == condition_type)]
    if len(kept) == len(conditions):
        return False
    obj["status"]["conditions"] = kept
    return True
