"""Health of the kinds of the Gateway API: several parts of the status have conditions, and the worst one counts.

A controller that handles an object always sets the API's conditions with their observed generation. A condition with
status False is a rejection, unless its reason is one of waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from konverge._internal.primitives.resource_protocol import ConvergingStatus
from konverge._internal.primitives.status_conditions import ReportedCondition, read_condition

__all__ = ["GATEWAY_GROUP", "ConditionFinding", "evaluate_condition", "find_unmet_conditions", "select_worst"]

GATEWAY_GROUP = "gateway.networking.k8s.io"

ConditionFinding: TypeAlias = tuple[ConvergingStatus, str]
"""The status of one part and its reason."""

_WAITING = frozenset({"Pending", "NoResources", "AddressNotAssigned"})


def evaluate_condition(condition: ReportedCondition, prefix: str = "") -> ConditionFinding:
    """Return the status of a part that has this condition, which is not True."""
    is_rejection = condition.status == "False" and condition.reason not in _WAITING
    status = ConvergingStatus.OPERATION_FAILING if is_rejection else ConvergingStatus.OPERATION_PENDING
    return status, f"{prefix}{condition.description}"


def find_unmet_conditions(
    holder: Mapping[str, Any], condition_types: Iterable[str], generation: int, prefix: str = ""
) -> Iterator[ConditionFinding]:
    """Yield a finding for each condition of one part that is not True or not of this generation.

    Args:
        holder: The mapping with ``status.conditions``.
        condition_types: The types of the conditions that must be True.
        generation: The generation of the object.
        prefix: The name of the part, put before each reason.
    """
    for condition_type in condition_types:
        condition = read_condition(holder, condition_type, generation)
        if condition.status != "True":
            yield evaluate_condition(condition, prefix)


def select_worst(findings: Iterable[ConditionFinding], ready: str) -> ConditionFinding:
    """Return the failing findings together, else the pending ones, else Operational with the given reason."""
    collected = list(findings)
    for status in (ConvergingStatus.OPERATION_FAILING, ConvergingStatus.OPERATION_PENDING):
        if reasons := [reason for part_status, reason in collected if part_status is status]:
            return status, "; ".join(reasons)
    return ConvergingStatus.OPERATIONAL, ready
