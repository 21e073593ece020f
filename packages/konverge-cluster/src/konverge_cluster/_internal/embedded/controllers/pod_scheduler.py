"""The simulated scheduler: it gives each pod the node once the pod fits and its volumes are bound."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from konverge._internal.kube import Object, ObjectKey, format_time, is_deleting
from konverge.clock import Clock
from konverge_cluster._internal.embedded.controllers.builtin_kinds import (
    NODE,
    NODE_NAME,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
)
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.node_fit import (
    compute_requests,
    find_insufficient_resources,
    matches_node,
)
from konverge_cluster._internal.embedded.controllers.pod_state import find_pod_condition, is_finished
from konverge_cluster._internal.embedded.controllers.pod_volumes import PodVolumes, find_claim_problem, plan_volumes
from konverge_cluster._internal.embedded.controllers.volume_binding import SELECTED_NODE, with_annotations
from konverge_cluster._internal.embedded.controllers.volume_protection import list_claim_names

__all__ = ["PodScheduler"]

_NO_PREEMPTION = (
    "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


class PodScheduler:
    """The controller that assigns pods to the node. Its keys are those of pods."""

    name = "scheduler"
    watches = frozenset(
        kind.group_kind for kind in (POD, PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, STORAGE_CLASS, NODE)
    )

    def __init__(self, view: ClusterView, writer: ControllerClient, clock: Clock) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock
        # The pods that wait for a claim; a pod leaves with the claim's next change.
        self._waiting: dict[ObjectKey, dict[ObjectKey, None]] = {}

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a pod without a node, of pods that waited for a claim, or of all if the node changes."""
        is_released = notice.kind == POD.group_kind and (notice.type == "DELETED" or is_finished(notice.new))
        if notice.kind == NODE.group_kind or (is_released and compute_requests(notice.new)):
            return [ObjectKey.of(pod) for pod in self._view.list_kind(POD) if not pod["spec"].get("nodeName")]
        if notice.kind == PERSISTENT_VOLUME_CLAIM.group_kind:
            return self._waiting.pop(notice.key, ())
        if notice.kind != POD.group_kind:
            waiting = [pod for pods in self._waiting.values() for pod in pods]
            self._waiting.clear()
            return waiting
        return () if notice.type == "DELETED" or notice.new["spec"].get("nodeName") else (notice.key,)

    def reconcile(self, key: Hashable) -> float | None:
        """Bind the pod to the node after its claims are bound."""
        assert isinstance(key, ObjectKey)
        pod = self._view.get(POD, key)
        if pod is None or is_deleting(pod) or pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates"):
            return None
        if pod["spec"].get("schedulerName", "default-scheduler") != "default-scheduler":
            return None
        moment = format_time(self._clock.now())
        obstacle, volumes = self._plan(pod)
        condition: Object = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": moment,
        }
        if obstacle or volumes.is_waiting:
            for name in list_claim_names(pod):
                self._waiting.setdefault(ObjectKey(key.namespace, name), {})[key] = None
        if obstacle:
            found = find_pod_condition(pod, "PodScheduled")
            message = f"0/1 nodes are available: {obstacle}"
            if found is None or found.get("message") != message:
                condition |= {"status": "False", "reason": "Unschedulable", "message": message}
                self._writer.update_status(pod, {**(pod.get("status") or {}), "conditions": [condition]})
            return None
        if volumes.is_waiting:
            self._prepare_volumes(volumes)
            return None
        self._writer.bind(pod, NODE_NAME, condition)
        return None

    def _plan(self, pod: Object) -> tuple[str, PodVolumes]:
        """Return the reason why the pod cannot be scheduled, with the text of the real scheduler, and its volumes.

        The reason is empty if the pod fits.
        """
        node = self._view.get(NODE, ObjectKey("", NODE_NAME))
        names, namespace = list_claim_names(pod), pod["metadata"]["namespace"]
        claims = {name: self._view.get(PERSISTENT_VOLUME_CLAIM, ObjectKey(namespace, name)) for name in names}
        classes = {entry["metadata"]["name"]: entry for entry in self._view.list_kind(STORAGE_CLASS)} if names else {}
        nothing = PodVolumes()
        problem = find_claim_problem(claims, classes)
        if problem:
            return f"{problem}. not found", nothing
        if node is None:
            return "", nothing
        if not matches_node(pod, node):
            return f"1 node(s) didn't match Pod's node affinity/selector. {_NO_PREEMPTION}", nothing
        if lacking := find_insufficient_resources(pod, node, self._view.list_kind(POD)):
            return f"{', '.join(f'1 Insufficient {name}' for name in lacking)}. {_NO_PREEMPTION}", nothing
        if not names:
            return "", nothing
        found = [claim for claim in claims.values() if claim is not None]
        volumes = plan_volumes(found, classes, self._view.list_kind(PERSISTENT_VOLUME), node)
        return (f"1 {volumes.obstacle}. {_NO_PREEMPTION}" if volumes.obstacle else ""), volumes

    def _prepare_volumes(self, volumes: PodVolumes) -> None:
        """Reserve the volumes that the pod gets, and name the node in claims for which new ones are made."""
        for volume in volumes.reserved:
            self._writer.update(volume)
        for claim in volumes.provisioned:
            self._writer.update(with_annotations(claim, {SELECTED_NODE: NODE_NAME}))
