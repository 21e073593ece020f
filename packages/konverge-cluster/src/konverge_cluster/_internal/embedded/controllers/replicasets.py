"""The simulated ReplicaSet controller: it maintains the number of pods and reports them in the status."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime

from konverge._internal.kube import Object, ObjectKey, format_time, is_deleting
from konverge._internal.kube.selectors import LabelSelector
from konverge.clock import Clock
from konverge.errors import ApiError, KonvergeError
from konverge_cluster._internal.embedded.controllers.builtin_kinds import POD, REPLICA_SET
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import (
    ControllerClient,
    is_namespace_terminating_error,
)
from konverge_cluster._internal.embedded.controllers.controller_references import (
    claim_objects,
    list_affected_controllers,
)
from konverge_cluster._internal.embedded.controllers.pod_state import (
    build_pod_from_template,
    compute_seconds_to_available,
    is_active,
    is_available,
    is_ready,
    sort_for_deletion,
)

__all__ = ["ReplicaSetController", "build_replica_set_status"]

# The maximum number of pods that one reconcile creates or deletes.
_BURST = 500


class ReplicaSetController:
    """The controller. Its keys are those of ReplicaSets."""

    name = "replicaset-controller"
    watches = frozenset({REPLICA_SET.group_kind, POD.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient, clock: Clock) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a ReplicaSet or of a pod's controller; for a pod without one, those that can adopt it."""
        if notice.kind == REPLICA_SET.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        return list_affected_controllers(self._view, notice, REPLICA_SET)

    def reconcile(self, key: Hashable) -> float | None:
        """Create or delete pods up to the desired number, and write the status if it changed."""
        assert isinstance(key, ObjectKey)
        replica_set = self._view.get(REPLICA_SET, key)
        if replica_set is None:
            return None
        now = self._clock.now()
        pods = claim_objects(self._view, self._writer, replica_set, POD, replica_set["spec"]["selector"])
        active = [pod for pod in pods if is_active(pod)]
        terminating = sum(1 for pod in pods if is_deleting(pod))
        failure: KonvergeError | None = None
        if not is_deleting(replica_set):
            try:
                self._resize(replica_set, active, now)
            except ApiError as error:
                failure = None if is_namespace_terminating_error(error) else error
        status = build_replica_set_status(replica_set, active, terminating, now, failure)
        if status != replica_set.get("status"):
            self._writer.update_status(replica_set, status)
        if failure is not None:
            raise failure
        waits = [
            compute_seconds_to_available(pod, replica_set["spec"].get("minReadySeconds", 0), now) for pod in active
        ]
        return min((seconds for seconds in waits if seconds), default=None)

    def _resize(self, replica_set: Object, active: Sequence[Object], now: datetime) -> None:
        missing = replica_set["spec"].get("replicas", 1) - len(active)
        for _ in range(min(missing, _BURST)):
            self._writer.create(build_pod_from_template(replica_set["spec"]["template"], replica_set))
        if missing < 0:
            for pod in sort_for_deletion(active, now)[: min(-missing, _BURST)]:
                self._writer.delete(pod)


def build_replica_set_status(
    replica_set: Object,
    active: Sequence[Object],
    terminating: int,
    now: datetime,
    failure: KonvergeError | None = None,
) -> Object:
    """Return the status of a ReplicaSet with these pods.

    Args:
        replica_set: The stored ReplicaSet.
        active: The pods that count as replicas.
        terminating: The number of pods under deletion.
        now: The time of the reconcile.
        failure: The error of a create or a delete of pods in this reconcile.
    """
    spec, before = replica_set["spec"], replica_set.get("status") or {}
    template_labels = LabelSelector.from_labels((spec["template"].get("metadata") or {}).get("labels") or {})
    labelled = sum(1 for pod in active if template_labels.matches(pod["metadata"].get("labels") or {}))
    ready = [pod for pod in active if is_ready(pod)]
    available = sum(1 for pod in ready if is_available(pod, spec.get("minReadySeconds", 0), now))
    counts = {"fullyLabeledReplicas": labelled, "readyReplicas": len(ready), "availableReplicas": available}
    status: Object = {"replicas": len(active)} | {name: count for name, count in counts.items() if count}
    status["terminatingReplicas"] = terminating
    status["observedGeneration"] = replica_set["metadata"]["generation"]
    conditions = [entry for entry in before.get("conditions") or () if entry["type"] != "ReplicaFailure"]
    if failure is not None:
        earlier = [entry for entry in before.get("conditions") or () if entry["type"] == "ReplicaFailure"]
        conditions += earlier or [
            {
                "type": "ReplicaFailure",
                "status": "True",
                "lastTransitionTime": format_time(now),
                "reason": "FailedCreate" if len(active) < spec.get("replicas", 1) else "FailedDelete",
                "message": str(failure),
            }
        ]
    if conditions:
        status["conditions"] = conditions
    return status
