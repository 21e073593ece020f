"""The ``readyWhen`` of a resource as the lifecycle functions of its primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.primitives import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Primitive,
    TaskKind,
    WorkloadKind,
)

__all__ = ["build_readiness"]


def build_readiness(kind: type[Primitive[Any]], find_unready: Callable[[Object], str]) -> dict[str, Any]:
    """Return the keyword arguments that replace the kind's rule of readiness.

    After the grace period, an object that is not ready counts as degraded, or as down if the kind's own rule says so.

    Args:
        kind: The class of the primitive, which has a converging status.
        find_unready: Describes what the live object lacks; "" if it is ready.
    """
    ready, waiting = ConvergingStatus.OPERATIONAL, ConvergingStatus.OPERATION_PENDING
    if issubclass(kind, WorkloadKind):
        ready, waiting = ConvergingStatus.HEALTHY, ConvergingStatus.UPDATING
    elif issubclass(kind, TaskKind):
        ready, waiting = ConvergingStatus.COMPLETED, ConvergingStatus.TASK_RUNNING

    def judge(live: Object, operation: Operation) -> Convergence:
        unready = find_unready(live)
        if not unready:
            return Convergence(ready)
        is_new = operation is Operation.CREATED and waiting is ConvergingStatus.UPDATING
        return Convergence(ConvergingStatus.CREATING if is_new else waiting, unready)

    def grade(live: Object) -> Grace:
        unready = find_unready(live)
        if not unready:
            return Grace(GraceStatus.HEALTHY)
        usual: Grace = kind.default_grace_status(live)  # type: ignore[attr-defined]  # every graded kind has it
        return usual if usual.status is GraceStatus.DOWN else Grace(GraceStatus.DEGRADED, unready)

    return (
        {"converging_status": judge}
        if issubclass(kind, TaskKind)
        else {
            "converging_status": judge,
            "grace_status": grade,
        }
    )
