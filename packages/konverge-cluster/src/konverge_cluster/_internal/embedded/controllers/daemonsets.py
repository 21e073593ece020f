"""The simulated DaemonSet controller: one pod of the current template on the node."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime

from konverge._internal.kube import Object, ObjectKey, is_deleting
from konverge.clock import Clock
from konverge_cluster._internal.embedded.controllers.builtin_kinds import DAEMON_SET, NODE, NODE_NAME, POD
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.controller_references import (
    claim_objects,
    list_affected_controllers,
)
from konverge_cluster._internal.embedded.controllers.controller_revisions import RevisionHistory
from konverge_cluster._internal.embedded.controllers.pod_state import (
    build_pod_from_template,
    compute_seconds_to_available,
    is_available,
    is_finished,
    is_ready,
)

__all__ = ["DaemonSetController", "build_daemon_set_status"]

_HASH_LABEL = "controller-revision-hash"
_GENERATION = "deprecated.daemonset.template.generation"
# Daemon pods tolerate the problems of a node.
_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": effect}
    for taint, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
]


class DaemonSetController:
    """The controller. Its keys are those of DaemonSets."""

    name = "daemon-set-controller"
    watches = frozenset({DAEMON_SET.group_kind, POD.group_kind, NODE.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient, clock: Clock) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock
        self._revisions = RevisionHistory(view, writer, _HASH_LABEL)

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the keys of a DaemonSet, of the controller of a pod, or of all if a node changes."""
        if notice.kind == DAEMON_SET.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        if notice.kind == NODE.group_kind:
            return [ObjectKey.of(daemon_set) for daemon_set in self._view.list_kind(DAEMON_SET)]
        return list_affected_controllers(self._view, notice, DAEMON_SET)

    def reconcile(self, key: Hashable) -> float | None:
        """Create, delete or replace the pod, and write the status if it changed."""
        assert isinstance(key, ObjectKey)
        daemon_set = self._view.get(DAEMON_SET, key)
        if daemon_set is None or is_deleting(daemon_set):
            return None
        now = self._clock.now()
        pods = claim_objects(self._view, self._writer, daemon_set, POD, daemon_set["spec"]["selector"])
        history = self._revisions.list_revisions(daemon_set)
        present = self._revisions.ensure_current(daemon_set, history)
        current_hash = present["metadata"]["labels"][_HASH_LABEL]
        runs_here = self._runs_here(daemon_set)
        self._sync_pods(daemon_set, pods, current_hash, now, runs_here=runs_here)
        status = build_daemon_set_status(daemon_set, pods, current_hash, now, runs_here=runs_here)
        if status != (daemon_set.get("status") or {}):
            self._writer.update_status(daemon_set, status)
        hashes = {current_hash, *(_get_template_hash(pod) for pod in pods)}
        used = {
            revision["metadata"]["name"]
            for revision in history
            if revision["metadata"]["labels"].get(_HASH_LABEL) in hashes
        }
        self._revisions.delete_unused(daemon_set, history, used)
        waits = [compute_seconds_to_available(pod, daemon_set["spec"].get("minReadySeconds", 0), now) for pod in pods]
        return min((seconds for seconds in waits if seconds), default=None)

    def _runs_here(self, daemon_set: Object) -> bool:
        node = self._view.get(NODE, ObjectKey("", NODE_NAME))
        if node is None:
            return False
        selector = daemon_set["spec"]["template"]["spec"].get("nodeSelector") or {}
        return bool(selector.items() <= (node["metadata"].get("labels") or {}).items())

    def _sync_pods(
        self, daemon_set: Object, pods: Sequence[Object], current_hash: str, now: datetime, *, runs_here: bool
    ) -> None:
        for pod in pods:
            if (is_finished(pod) or not runs_here) and not is_deleting(pod):
                self._writer.delete(pod)
        if not runs_here:
            return
        alive = [pod for pod in pods if not is_finished(pod)]
        if not alive:
            self._create(daemon_set, current_hash)
            return
        strategy = daemon_set["spec"].get("updateStrategy") or {}
        staying = [pod for pod in alive if not is_deleting(pod)]
        outdated = [pod for pod in staying if _get_template_hash(pod) != current_hash]
        if strategy.get("type") == "OnDelete" or not outdated:
            for surplus in staying[1:]:
                self._writer.delete(surplus)
            return
        surge = (strategy.get("rollingUpdate") or {}).get("maxSurge", 0)
        fresh = [pod for pod in staying if _get_template_hash(pod) == current_hash]
        min_ready = daemon_set["spec"].get("minReadySeconds", 0)
        if surge in (0, "0%"):
            # One pod can be unavailable, and an unavailable pod already counts.
            self._writer.delete(outdated[0])
        elif not fresh:
            self._create(daemon_set, current_hash)
        elif is_available(fresh[0], min_ready, now) or not is_available(outdated[0], min_ready, now):
            self._writer.delete(outdated[0])

    def _create(self, daemon_set: Object, current_hash: str) -> None:
        pod = build_pod_from_template(daemon_set["spec"]["template"], daemon_set)
        labels = {**(pod["metadata"].get("labels") or {}), _HASH_LABEL: current_hash}
        generation = (daemon_set["metadata"].get("annotations") or {}).get(_GENERATION)
        if generation is not None:
            labels["pod-template-generation"] = generation
        pod["metadata"]["labels"] = labels
        here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE_NAME]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
        tolerations = [*(pod["spec"].get("tolerations") or ()), *_TOLERATIONS]
        affinity = {**(pod["spec"].get("affinity") or {}), "nodeAffinity": required}
        self._writer.create({**pod, "spec": {**pod["spec"], "affinity": affinity, "tolerations": tolerations}})


def build_daemon_set_status(
    daemon_set: Object, pods: Sequence[Object], current_hash: str, now: datetime, *, runs_here: bool
) -> Object:
    """Return the status of a DaemonSet with these pods.

    Args:
        daemon_set: The stored DaemonSet.
        pods: Its pods.
        current_hash: The hash of its current template.
        now: The time of the reconcile.
        runs_here: True if the node must run a pod.
    """
    alive = [pod for pod in pods if not is_finished(pod)] if runs_here else []
    min_ready = daemon_set["spec"].get("minReadySeconds", 0)
    ready = any(is_ready(pod) for pod in alive)
    available = any(is_available(pod, min_ready, now) for pod in alive)
    updated = any(_get_template_hash(pod) == current_hash for pod in alive)
    status: Object = {
        "currentNumberScheduled": int(bool(alive)),
        "numberMisscheduled": int(bool(pods) and not runs_here),
        "desiredNumberScheduled": int(runs_here),
        "numberReady": int(ready),
        "observedGeneration": daemon_set["metadata"]["generation"],
    }
    counts = {
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": runs_here and not available,
    }
    return status | {name: 1 for name, is_one in counts.items() if is_one}


def _get_template_hash(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(_HASH_LABEL, ""))
