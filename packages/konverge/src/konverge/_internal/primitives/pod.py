"""Pod: a workload without a controller, which is not replaced when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, find_condition
from konverge._internal.mutation import PodSpecMutator
from konverge._internal.primitives.field_access import read_boolean, read_integer, read_items, read_text
from konverge._internal.primitives.kind_categories import WorkloadKind
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)

__all__ = ["Pod", "PodMutator"]


class Pod(WorkloadKind["PodMutator"]):
    """A ``v1`` Pod. Suspension deletes it.

    Few fields of a live Pod are mutable: its metadata, its images, its active deadline and additional tolerations.
    """

    gvk: GroupVersionKind = GroupVersionKind("", "v1", "Pod")
    deletes_on_suspend_by_default = True

    def create_mutator(self) -> PodMutator:
        """Return a new mutator for the callback of one mutation."""
        return PodMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Healthy when it runs and all containers are ready, and Failing if a container crashes or failed."""
        if failure := _describe_failure(live):
            return Convergence(ConvergingStatus.FAILING, failure)
        if waiting := _describe_waiting(live):
            status = ConvergingStatus.UPDATING if operation is Operation.UPDATED else ConvergingStatus.CREATING
            return Convergence(status, waiting)
        return Convergence(ConvergingStatus.HEALTHY, "Pod is ready")

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down if it does not run, and Degraded if it runs but is not ready or has a failing container."""
        cause = _describe_failure(live) or _describe_waiting(live)
        if not cause:
            return Grace(GraceStatus.HEALTHY, "Pod is ready")
        return Grace(GraceStatus.DEGRADED if _is_running(live) else GraceStatus.DOWN, cause)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended at once: there is nothing to wait for before the deletion."""
        return Suspension(SuspensionStatus.SUSPENDED, "Pod deleted on suspend")


def _is_running(live: Object) -> bool:
    return read_text(live, "status", "phase") == "Running"


def _describe_failure(live: Object) -> str:
    """Return a container failure that does not recover without intervention, else an empty string.

    The message of a waiting container is omitted: it contains the kubelet's backoff, which changes with each attempt.
    """
    for container in _iter_container_statuses(live):
        name = read_text(container, "name")
        if read_text(container, "state", "waiting", "reason") == "CrashLoopBackOff":
            return f"Container {name} is in CrashLoopBackOff"
        if code := read_integer(container, "state", "terminated", "exitCode"):
            return f"Container {name} terminated with exit code {code}"
    return ""


def _iter_container_statuses(live: Object) -> Iterator[Mapping[str, Any]]:
    yield from read_items(live, "status", "initContainerStatuses")
    yield from read_items(live, "status", "containerStatuses")


def _describe_waiting(live: Object) -> str:
    """Return the pending step of a pod without failures; empty when it is ready."""
    if not _is_running(live):
        phase = read_text(live, "status", "phase") or "Pending"
        return f"Waiting for pod to run: phase is {phase}{_describe_obstacle(live)}"
    containers = read_items(live, "status", "containerStatuses")
    ready = sum(1 for container in containers if read_boolean(container, "ready"))
    if containers and ready == len(containers):
        return ""
    return f"Waiting for containers: {ready}/{len(containers)} ready{_describe_obstacle(live)}"


def _describe_obstacle(live: Object) -> str:
    """Return, in parentheses, the reason of an eviction, a failed scheduling or a container that did not start."""
    if reason := read_text(live, "status", "reason"):
        return f" ({reason})"
    scheduled = find_condition(live, "PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return f" ({scheduled.reason}: {scheduled.message})"
    for container in _iter_container_statuses(live):
        if reason := read_text(container, "state", "waiting", "reason"):
            return f" ({read_text(container, 'name')}: {reason})"
    return ""


class PodMutator(PodSpecMutator):
    """Records edits of a Pod."""
