"""Pod: a workload of its own, which nothing replaces when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import GroupVersionKind, Object, find_condition
from konverge.mutation import PodSpecMutator
from konverge.primitives.categories import WorkloadKind
from konverge.primitives.lifecycle import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from konverge.primitives.reading import boolean_at, integer_at, items_at, text_at

__all__ = ["Pod", "PodMutator"]


class Pod(WorkloadKind["PodMutator"]):
    """A ``v1`` Pod. Suspension deletes it.

    Little of a live Pod can be changed: its metadata, its images, its active deadline, additional tolerations.
    """

    gvk = GroupVersionKind("", "v1", "Pod")
    deletes_on_suspend_by_default = True

    def new_mutator(self) -> PodMutator:
        """What the callbacks of this kind's mutations get."""
        return PodMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Healthy when it runs and all containers are ready; Failing when a container crashes or failed."""
        if failure := _failure(live):
            return Convergence(ConvergingStatus.FAILING, failure)
        if waiting := _waiting(live):
            status = ConvergingStatus.UPDATING if operation is Operation.UPDATED else ConvergingStatus.CREATING
            return Convergence(status, waiting)
        return Convergence(ConvergingStatus.HEALTHY, "Pod is ready")

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down when it does not run, Degraded when it runs and is not ready or has a container that fails."""
        late = _failure(live) or _waiting(live)
        if not late:
            return Grace(GraceStatus.HEALTHY, "Pod is ready")
        return Grace(GraceStatus.DEGRADED if _runs(live) else GraceStatus.DOWN, late)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended at once: there is nothing to wait for before the deletion."""
        return Suspension(SuspensionStatus.SUSPENDED, "Pod deleted on suspend")


def _runs(live: Object) -> bool:
    return text_at(live, "status", "phase") == "Running"


def _failure(live: Object) -> str:
    """What will not get better by itself; empty when there is no such thing.

    The message of a waiting container stays out: it tells how long the kubelet backs off, which changes with each try.
    """
    for container in _container_statuses(live):
        name = text_at(container, "name")
        if text_at(container, "state", "waiting", "reason") == "CrashLoopBackOff":
            return f"Container {name} is in CrashLoopBackOff"
        if code := integer_at(container, "state", "terminated", "exitCode"):
            return f"Container {name} terminated with exit code {code}"
    return ""


def _container_statuses(live: Object) -> Iterator[Mapping[str, Any]]:
    yield from items_at(live, "status", "initContainerStatuses")
    yield from items_at(live, "status", "containerStatuses")


def _waiting(live: Object) -> str:
    """What a pod that does not fail waits for; empty when it is ready."""
    if not _runs(live):
        phase = text_at(live, "status", "phase") or "Pending"
        return f"Waiting for pod to run: phase is {phase}{_obstacle(live)}"
    containers = items_at(live, "status", "containerStatuses")
    ready = sum(1 for each in containers if boolean_at(each, "ready"))
    if containers and ready == len(containers):
        return ""
    return f"Waiting for containers: {ready}/{len(containers)} ready{_obstacle(live)}"


def _obstacle(live: Object) -> str:
    """Why the pod is evicted, not scheduled, or a container not started, in parentheses."""
    if reason := text_at(live, "status", "reason"):
        return f" ({reason})"
    scheduled = find_condition(live, "PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return f" ({scheduled.reason}: {scheduled.message})"
    for container in _container_statuses(live):
        if reason := text_at(container, "state", "waiting", "reason"):
            return f" ({text_at(container, 'name')}: {reason})"
    return ""


class PodMutator(PodSpecMutator):
    """Records edits of a Pod."""
