"""Conditions of workload controllers, with their own rules for changes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from konverge._internal.kube import Object, format_time

__all__ = ["build_deployment_condition", "find_condition", "list_conditions", "with_condition", "without_condition"]


def list_conditions(obj: Object) -> list[Object]:
    """Return the conditions in an object's status; an empty list if there are none."""
    return (obj.get("status") or {}).get("conditions") or []


def find_condition(conditions: Iterable[Object], condition_type: str) -> Object | None:
    """Return the condition of that type; None if absent."""
    return next((entry for entry in conditions if entry.get("type") == condition_type), None)


def build_deployment_condition(condition_type: str, status: str, reason: str, message: str, now: datetime) -> Object:
    """Return a Deployment's condition, which also contains the time of its last write."""
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
    """Return the conditions with this one as the last.

    A stored condition of equal status and reason remains unchanged, with its message and times, unless `renew` is set.
    One of equal status keeps its transition time.
    """
    earlier = find_condition(conditions, condition["type"])
    if earlier is not None and earlier["status"] == condition["status"]:
        if earlier["reason"] == condition["reason"] and not renew:
            return conditions
        condition = {**condition, "lastTransitionTime": earlier["lastTransitionTime"]}
    return [*without_condition(conditions, condition["type"]), condition]


def without_condition(conditions: list[Object], condition_type: str) -> list[Object]:
    """Return the conditions without those of that type."""
    return [entry for entry in conditions if entry.get("type") != condition_type]
