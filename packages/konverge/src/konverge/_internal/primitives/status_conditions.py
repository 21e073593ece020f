"""Conditions of a live object, as far as they concern its latest spec.

A condition with an older observed generation than the object's concerns an earlier spec. Its status for the latest spec
is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from konverge._internal.kube import Object, find_condition
from konverge._internal.primitives.field_access import read_integer, read_text

__all__ = ["ReportedCondition", "describe_termination", "read_condition", "read_generation"]


class ReportedCondition(NamedTuple):
    """One condition, as far as it concerns the latest spec."""

    status: str
    """``True``, ``False`` or ``Unknown``; a stale or absent condition is unknown."""
    reason: str
    """The condition's reason; empty if the condition is stale or absent."""
    description: str
    """The whole condition as text, for example ``Ready is False (Provisioning): waiting for disks``."""
    is_present: bool = True
    is_stale: bool = False


def read_generation(live: Object) -> int:
    """Return the generation of the object's spec; 0 if the server sets none for its kind."""
    return read_integer(live, "metadata", "generation")


def read_condition(holder: Mapping[str, Any], condition_type: str, generation: int) -> ReportedCondition:
    """Read one condition for the latest spec.

    Args:
        holder: The mapping with ``status.conditions``: the object, or a part of its status as ``{"status": part}``.
        condition_type: The type of the condition.
        generation: The object's generation. A condition with an older observed generation is stale; one without an
            observed generation counts as current.
    """
    condition = find_condition(holder, condition_type)
    if condition is None:
        return ReportedCondition("Unknown", "", f"Waiting for condition {condition_type}", is_present=False)
    if condition.observed_generation is not None and condition.observed_generation < generation:
        description = f"Waiting for condition {condition_type} to be of the latest spec"
        return ReportedCondition("Unknown", "", description, is_stale=True)
    status = condition.status if condition.status in ("True", "False") else "Unknown"
    reason = f" ({condition.reason})" if condition.reason else ""
    message = f": {condition.message}" if condition.message else ""
    return ReportedCondition(status, condition.reason, f"{condition_type} is {status}{reason}{message}")


def describe_termination(live: Object) -> str:
    """Return a reason if the object is being deleted; empty otherwise."""
    if not read_text(live, "metadata", "deletionTimestamp"):
        return ""
    return f"{read_text(live, 'kind') or 'Object'} is being deleted"
