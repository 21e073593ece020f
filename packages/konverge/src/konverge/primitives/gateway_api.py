"""The health of the Gateway API's kinds: conditions on several parts of one status, the worst of which counts.

The API's conditions are always there once a controller has taken the object on, and name the generation that they have
seen. One that is False refuses, unless its reason says that it only waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from konverge.primitives.resource_protocol import ConvergingStatus
from konverge.primitives.status_conditions import ReportedCondition, read_condition

__all__ = ["GATEWAY_GROUP", "ConditionFinding", "evaluate_condition", "find_unmet_conditions", "select_worst"]

GATEWAY_GROUP = "gateway.networking.k8s.io"

ConditionFinding: TypeAlias = tuple[ConvergingStatus, str]
"""How far one part is, and why."""

_WAITING = frozenset({"Pending", "NoResources", "AddressNotAssigned"})


def evaluate_condition(found: ReportedCondition, where: str = "") -> ConditionFinding:
    """What is to be thought of a condition that is not True."""
    refuses = found.status == "False" and found.reason not in _WAITING
    status = ConvergingStatus.OPERATION_FAILING if refuses else ConvergingStatus.OPERATION_PENDING
    return status, f"{where}{found.description}"


def find_unmet_conditions(
    holder: Mapping[str, Any], condition_types: Iterable[str], generation: int, where: str = ""
) -> Iterator[ConditionFinding]:
    """The conditions of one part that are not True, or not of this generation.

    Args:
        holder: What has ``status.conditions``.
        condition_types: Those that must be True.
        generation: The object's.
        where: Which part it is, put before each reason.
    """
    for condition_type in condition_types:
        found = read_condition(holder, condition_type, generation)
        if found.status != "True":
            yield evaluate_condition(found, where)


def select_worst(findings: Iterable[ConditionFinding], ready: str) -> ConditionFinding:
    """All that fails, else all that is pending, else that it is operational."""
    listed = list(findings)
    for status in (ConvergingStatus.OPERATION_FAILING, ConvergingStatus.OPERATION_PENDING):
        if reasons := [reason for found, reason in listed if found is status]:
            return status, "; ".join(reasons)
    return ConvergingStatus.OPERATIONAL, ready
