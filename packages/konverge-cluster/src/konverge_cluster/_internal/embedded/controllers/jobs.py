"""The simulated Job controller for simple Jobs: it runs pods until enough have succeeded or too many have failed.

It supports ``parallelism``, ``completions``, ``backoffLimit``, ``suspend`` and ``ttlSecondsAfterFinished``, but no
indexed Jobs, pod failure policies, success policies or deadlines.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime, timedelta

from konverge._internal.kube import Object, ObjectKey, format_time, is_deleting, parse_time
from konverge.clock import Clock
from konverge_cluster._internal.embedded.controllers.builtin_kinds import JOB, POD
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.controller_references import (
    claim_objects,
    list_affected_controllers,
)
from konverge_cluster._internal.embedded.controllers.pod_state import (
    build_pod_from_template,
    get_phase,
    is_active,
    is_ready,
)
from konverge_cluster._internal.embedded.controllers.workload_conditions import find_condition, with_condition

__all__ = ["JobController", "build_job_status"]


_OWN_NAME = "kubernetes.io/job-controller"


class JobController:
    """The controller. Its keys are those of Jobs."""

    name = "job-controller"
    watches = frozenset({JOB.group_kind, POD.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient, clock: Clock) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a Job, or of the controller of a pod."""
        if notice.kind == JOB.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        return list_affected_controllers(self._view, notice, JOB)

    def reconcile(self, key: Hashable) -> float | None:
        """Start or stop pods and write the status if it changed; delete a finished Job after its TTL."""
        assert isinstance(key, ObjectKey)
        job = self._view.get(JOB, key)
        if job is None or is_deleting(job) or job["spec"].get("managedBy", _OWN_NAME) != _OWN_NAME:
            return None
        now = self._clock.now()
        if finished_at := _get_finish_time(job):
            return self._expire(job, finished_at, now)
        pods = claim_objects(self._view, self._writer, job, POD, job["spec"]["selector"])
        status = build_job_status(job, pods, now)
        ended = any(entry["type"] in ("Complete", "Failed") for entry in status.get("conditions") or ())
        if ended or job["spec"].get("suspend"):
            for pod in pods:
                if is_active(pod):
                    self._writer.delete(pod)
        else:
            missing_pods = min(
                job["spec"].get("parallelism", 1), _get_required_completions(job) - status.get("succeeded", 0)
            )
            for _ in range(missing_pods - status.get("active", 0)):
                self._writer.create(build_pod_from_template(job["spec"]["template"], job))
        if status != (job.get("status") or {}):
            self._writer.update_status(job, status)
        return None

    def _expire(self, job: Object, finished_at: datetime, now: datetime) -> float | None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return None
        left = (finished_at + timedelta(seconds=seconds) - now).total_seconds()
        if left > 0:
            return left
        self._writer.delete(job, propagation="Foreground")
        return None


def build_job_status(job: Object, pods: Sequence[Object], now: datetime) -> Object:
    """Return the status of a Job with these pods."""
    before = job.get("status") or {}
    active = [pod for pod in pods if is_active(pod)]
    succeeded = sum(1 for pod in pods if get_phase(pod) == "Succeeded")
    failed = sum(1 for pod in pods if get_phase(pod) == "Failed")
    conditions: list[Object] = before.get("conditions") or []
    status: Object = {}
    suspended = bool(job["spec"].get("suspend"))
    if suspended or find_condition(conditions, "Suspended") is not None:
        suspension = ("True", "JobSuspended", "Job suspended") if suspended else ("False", "JobResumed", "Job resumed")
        conditions = with_condition(conditions, _build_condition("Suspended", *suspension, now))
    if not suspended:
        status["startTime"] = before.get("startTime") or format_time(now)
    counts = {"active": len(active), "succeeded": succeeded, "failed": failed}
    if succeeded >= _get_required_completions(job):
        verdict = ("CompletionsReached", "Reached expected number of succeeded pods")
        conditions = with_condition(conditions, _build_condition("SuccessCriteriaMet", "True", *verdict, now))
        conditions = with_condition(conditions, _build_condition("Complete", "True", *verdict, now))
        status["completionTime"] = format_time(now)
        counts["active"] = 0
    elif failed > job["spec"].get("backoffLimit", 6):
        verdict = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        conditions = with_condition(conditions, _build_condition("FailureTarget", "True", *verdict, now))
        conditions = with_condition(conditions, _build_condition("Failed", "True", *verdict, now))
        counts["active"] = 0
    status |= {name: count for name, count in counts.items() if count}
    status["terminating"] = sum(1 for pod in pods if is_deleting(pod))
    status["ready"] = sum(1 for pod in active if is_ready(pod))
    status["uncountedTerminatedPods"] = {}
    if conditions:
        status["conditions"] = conditions
    return status


def _build_condition(condition_type: str, status: str, reason: str, message: str, now: datetime) -> Object:
    moment = format_time(now)
    return {
        "type": condition_type,
        "status": status,
        "lastProbeTime": moment,
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }


def _get_required_completions(job: Object) -> int:
    """Return the required number of succeeded pods; without ``completions`` one is enough and the others go on."""
    return int(job["spec"].get("completions", 1))


def _get_finish_time(job: Object) -> datetime | None:
    for condition_type in ("Complete", "Failed"):
        condition = find_condition((job.get("status") or {}).get("conditions") or (), condition_type)
        if condition is not None and condition["status"] == "True":
            return parse_time(condition["lastTransitionTime"])
    return None
