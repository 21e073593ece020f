"""What the conditions of a live object say of its latest spec.

A condition that names an older generation than the object's speaks of a spec that is gone: whatever it says, what it
will say of this one is not known yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from konverge.kube import Object, find_condition
from konverge.primitives.field_access import read_integer, read_text

__all__ = ["ReportedCondition", "describe_termination", "read_condition", "read_generation"]


class ReportedCondition(NamedTuple):
    """One condition, as far as it speaks of the latest spec."""

    status: str
    """``True``, ``False`` or ``Unknown``; a condition that is stale or absent is unknown."""
    reason: str
    """The condition's own, empty when it is stale or absent."""
    description: str
    """All of it in words, for example ``Ready is False (Provisioning): waiting for disks``."""
    is_present: bool = True
    is_stale: bool = False


def read_generation(live: Object) -> int:
    """The generation of the object's spec; 0 when the server counts none for its kind."""
    return read_integer(live, "metadata", "generation")


def read_condition(holder: Mapping[str, Any], condition_type: str, generation: int) -> ReportedCondition:
    """Read one condition.

    Args:
        holder: What has ``status.conditions``: the object, or a part of its status as ``{"status": part}``.
        condition_type: Which one.
        generation: What the condition has to have seen; one that names no generation is believed to have.
    """
    found = find_condition(holder, condition_type)
    if found is None:
        return ReportedCondition("Unknown", "", f"Waiting for condition {condition_type}", is_present=False)
    if found.observed_generation is not None and found.observed_generation < generation:
        told = f"Waiting for condition {condition_type} to be of the latest spec"
        return ReportedCondition("Unknown", "", told, is_stale=True)
    status = found.status if found.status in ("True", "False") else "Unknown"
    reason = f" ({found.reason})" if found.reason else ""
    message = f": {found.message}" if found.message else ""
    return ReportedCondition(status, found.reason, f"{condition_type} is {status}{reason}{message}")


def describe_termination(live: Object) -> str:
    """Tell that the object is being deleted; empty when it is not."""
    if not read_text(live, "metadata", "deletionTimestamp"):
        return ""
    return f"{read_text(live, 'kind') or 'Object'} is being deleted"
