"""Conditions as the workload controllers keep them: with their own rules of what counts as a change."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from konverge.kube import Object, format_time

__all__ = ["build_deployment_condition", "find_condition", "list_conditions", "with_condition", "without_condition"]


def list_conditions(obj: Object) -> list[Object]:
    """The conditions in an object's status; an empty list without."""
    return (obj.get("status") or {}).get("conditions") or []


def find_condition(conditions: Iterable[Object], condition_type: str) -> Object | None:
    """The condition of that type, None without."""
    return next((each for each in conditions if each.get("type") == condition_type), None)


def build_deployment_condition(condition_type: str, status: str, reason: str, message: str, now: datetime) -> Object:
    """A Deployment's condition, which also tells when it was last written."""
    moment = format_time(now)
    return {
        "type": condition_type,
        "status": status,
        "lastUpdateTime": moment,
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }


def with_condition(conditions: list[Object], condition: Object, *, renew: bool = False) -> list[Object]:
    """The conditions with this one in them, last.

    A stored one of equal status and reason stays as it is, its message and times too, unless `renew` is set. One of
    equal status keeps its transition time.
    """
    earlier = find_condition(conditions, condition["type"])
    if earlier is not None and earlier["status"] == condition["status"]:
        if earlier["reason"] == condition["reason"] and not renew:
            return conditions
        condition = {**condition, "lastTransitionTime": earlier["lastTransitionTime"]}
    return [*without_condition(conditions, condition["type"]), condition]


def without_condition(conditions: list[Object], condition_type: str) -> list[Object]:
    """The conditions without those of that type."""
    return [each for each in conditions if each.get("type") != condition_type]
