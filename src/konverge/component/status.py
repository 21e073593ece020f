"""The reasons a component's condition can have, their priority and the condition status that goes with each.

One table, in the order of the component specification ("Condition priority and aggregation"). The wider classes of
severity decide whose reasons are told in the message: a component that is Scaling also says what else is on its way.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from konverge.primitives.lifecycle import ConvergingStatus

__all__ = ["PROGRESS", "Status", "severity"]


class Status(StrEnum):
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
    def of_reason(cls, reason: str) -> Status:
        """The status a condition's reason stands for; a reason that nobody knows counts as ``Unknown``."""
        try:
            return cls(reason)
        except ValueError:
            return cls.UNKNOWN

    @property
    def priority(self) -> int:
        """How critical it is: of several, the highest shows."""
        return _TABLE[self].priority

    @property
    def condition_status(self) -> str:
        """``True``, ``False`` or ``Unknown``: True says that the component is in its expected state."""
        return _TABLE[self].condition_status


class _Row(NamedTuple):
    priority: int
    condition_status: str


_TABLE = {
    Status.ERROR: _Row(20, "False"),
    Status.FEATURE_GATE_ERROR: _Row(20, "False"),
    Status.DOWN: _Row(19, "False"),
    Status.DEGRADED: _Row(18, "False"),
    Status.PENDING_SUSPENSION: _Row(17, "True"),
    Status.SUSPENDING: _Row(16, "True"),
    Status.SUSPENDED: _Row(15, "True"),
    Status.DISABLED: _Row(14, "True"),
    Status.FAILING: _Row(13, "False"),
    Status.OPERATION_FAILING: _Row(12, "False"),
    Status.TASK_FAILING: _Row(11, "False"),
    Status.BLOCKED: _Row(10, "False"),
    Status.PREREQUISITE_NOT_MET: _Row(10, "False"),
    Status.SCALING: _Row(9, "False"),
    Status.TASK_RUNNING: _Row(8, "False"),
    Status.UPDATING: _Row(7, "False"),
    Status.CREATING: _Row(6, "False"),
    Status.OPERATION_PENDING: _Row(5, "False"),
    Status.TASK_PENDING: _Row(4, "False"),
    Status.HEALTHY: _Row(3, "True"),
    Status.OPERATIONAL: _Row(2, "True"),
    Status.COMPLETED: _Row(1, "True"),
    Status.UNKNOWN: _Row(0, "Unknown"),
}

PROGRESS = frozenset({Status.CREATING, Status.UPDATING, Status.SCALING})
"""The three states of a workload on its way. They stick to each other, so that a condition does not flicker."""

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


def severity(status: ConvergingStatus) -> int:
    """The class of severity, 1 (ready) to 5 (failing)."""
    return _SEVERITY[status]
