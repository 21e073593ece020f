"""The reasons of a component's condition, with their priority and condition status.

One table, in the order of the component specification ("Condition priority and aggregation"). The wider classes of
severity decide which reasons the message contains: the message of a Scaling component also names other progress.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from konverge._internal.primitives.resource_protocol import ConvergingStatus

__all__ = ["PROGRESS_REASONS", "ConditionReason", "severity_of"]


class ConditionReason(StrEnum):
    """A component's status: the ``reason`` of its condition."""

    ERROR = "Error"
    FEATURE_GATE_ERROR = "FeatureGateError"
    DOWN = "Down"
    DEGRADED = "Degraded"
    PENDING_SUSPENSION = "PendingSuspension"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    DISABLED = "Disabled"
    FAILING = "Failing"
    OPERATION_FAILING = "OperationFailing"
    TASK_FAILING = "TaskFailing"
    BLOCKED = "Blocked"
    PREREQUISITE_NOT_MET = "PrerequisiteNotMet"
    SCALING = "Scaling"
    TASK_RUNNING = "TaskRunning"
    UPDATING = "Updating"
    CREATING = "Creating"
    OPERATION_PENDING = "OperationPending"
    TASK_PENDING = "TaskPending"
    HEALTHY = "Healthy"
    OPERATIONAL = "Operational"
    COMPLETED = "Completed"
    UNKNOWN = "Unknown"

    @classmethod
    def of_reason(cls, reason: str) -> ConditionReason:
        """Return the status for the reason of a condition; ``Unknown`` for any other reason."""
        try:
            return cls(reason)
        except ValueError:
            return cls.UNKNOWN

    @property
    def priority(self) -> int:
        """The priority: the highest of several reasons is reported."""
        return _TABLE[self].priority

    @property
    def condition_status(self) -> str:
        """``True``, ``False`` or ``Unknown``: True means that the component is in its expected state."""
        return _TABLE[self].condition_status


class _ReasonRow(NamedTuple):
    priority: int
    condition_status: str


_TABLE = {
    ConditionReason.ERROR: _ReasonRow(20, "False"),
    ConditionReason.FEATURE_GATE_ERROR: _ReasonRow(20, "False"),
    ConditionReason.DOWN: _ReasonRow(19, "False"),
    ConditionReason.DEGRADED: _ReasonRow(18, "False"),
    ConditionReason.PENDING_SUSPENSION: _ReasonRow(17, "True"),
    ConditionReason.SUSPENDING: _ReasonRow(16, "True"),
    ConditionReason.SUSPENDED: _ReasonRow(15, "True"),
    ConditionReason.DISABLED: _ReasonRow(14, "True"),
    ConditionReason.FAILING: _ReasonRow(13, "False"),
    ConditionReason.OPERATION_FAILING: _ReasonRow(12, "False"),
    ConditionReason.TASK_FAILING: _ReasonRow(11, "False"),
    ConditionReason.BLOCKED: _ReasonRow(10, "False"),
    ConditionReason.PREREQUISITE_NOT_MET: _ReasonRow(10, "False"),
    ConditionReason.SCALING: _ReasonRow(9, "False"),
    ConditionReason.TASK_RUNNING: _ReasonRow(8, "False"),
    ConditionReason.UPDATING: _ReasonRow(7, "False"),
    ConditionReason.CREATING: _ReasonRow(6, "False"),
    ConditionReason.OPERATION_PENDING: _ReasonRow(5, "False"),
    ConditionReason.TASK_PENDING: _ReasonRow(4, "False"),
    ConditionReason.HEALTHY: _ReasonRow(3, "True"),
    ConditionReason.OPERATIONAL: _ReasonRow(2, "True"),
    ConditionReason.COMPLETED: _ReasonRow(1, "True"),
    ConditionReason.UNKNOWN: _ReasonRow(0, "Unknown"),
}

PROGRESS_REASONS = frozenset({ConditionReason.CREATING, ConditionReason.UPDATING, ConditionReason.SCALING})
"""The three states of a workload in progress. The first one is kept, so that a condition does not flicker."""

_SEVERITY = {
    ConvergingStatus.HEALTHY: 1,
    ConvergingStatus.OPERATIONAL: 1,
    ConvergingStatus.COMPLETED: 1,
    ConvergingStatus.CREATING: 2,
    ConvergingStatus.OPERATION_PENDING: 2,
    ConvergingStatus.TASK_PENDING: 2,
    ConvergingStatus.BLOCKED: 2,
    ConvergingStatus.UPDATING: 3,
    ConvergingStatus.SCALING: 4,
    ConvergingStatus.TASK_RUNNING: 4,
    ConvergingStatus.FAILING: 5,
    ConvergingStatus.OPERATION_FAILING: 5,
    ConvergingStatus.TASK_FAILING: 5,
}


def severity_of(status: ConvergingStatus) -> int:
    """Return the class of severity, from 1 (ready) to 5 (failing)."""
    return _SEVERITY[status]
