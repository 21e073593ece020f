"""The simulated scheduler and kubelet: one node with capacity for all pods, which follow their image rules."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime

from konverge._internal.kube import Object, ObjectKey, format_time, is_deleting
from konverge.clock import Clock
from konverge_cluster._internal.embedded.controllers.builtin_kinds import (
    JOB,
    NODE,
    NODE_NAME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
)
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.controller_references import find_controller_key
from konverge_cluster._internal.embedded.controllers.image_rules import ImageRules
from konverge_cluster._internal.embedded.controllers.node_fit import (
    compute_requests,
    find_insufficient_resources,
    matches_node,
)
from konverge_cluster._internal.embedded.controllers.pod_state import (
    find_pod_condition,
    get_phase,
    is_finished,
    is_ready,
)
from konverge_cluster._internal.embedded.controllers.pod_status import (
    PodPlacement,
    build_completed_status,
    build_pod_status,
    compute_seconds_to_ready,
)

__all__ = ["Kubelet", "PodScheduler", "build_node"]

_NODE_IP = "10.0.0.1"
_NO_PREEMPTION = (
    "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


def build_node(now: datetime) -> Object:
    """Return the node as a kubelet registers it."""
    moment = format_time(now)
    healthy = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    )
    room = {"cpu": "1k", "memory": "1Ti", "pods": "1M"}
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.kind,
        "metadata": {
            "name": NODE_NAME,
            "labels": {
                "kubernetes.io/hostname": NODE_NAME,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {},
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [
                {"type": "InternalIP", "address": _NODE_IP},
                {"type": "Hostname", "address": NODE_NAME},
            ],
            "conditions": [
                {
                    "type": condition_type,
                    "status": status,
                    "lastHeartbeatTime": moment,
                    "lastTransitionTime": moment,
                    "reason": reason,
                    "message": message,
                }
                for condition_type, status, reason, message in healthy
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "konverge",
                "kernelVersion": "konverge",
                "kubeProxyVersion": "konverge",
                "kubeletVersion": "konverge",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "",
                "systemUUID": "",
            },
        },
    }


class PodScheduler:
    """The controller that assigns pods to the node. Its keys are those of pods."""

    name = "scheduler"
    watches = frozenset({POD.group_kind, PERSISTENT_VOLUME_CLAIM.group_kind, NODE.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient, clock: Clock) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock
        self._waiting: dict[ObjectKey, dict[ObjectKey, None]] = {}

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a pod without a node, of pods that waited for a claim, or of all if the node changes."""
        is_released = notice.kind == POD.group_kind and (notice.type == "DELETED" or is_finished(notice.new))
        if notice.kind == NODE.group_kind or (is_released and compute_requests(notice.new)):
            return [ObjectKey.of(pod) for pod in self._view.list_kind(POD) if not pod["spec"].get("nodeName")]
        if notice.kind == PERSISTENT_VOLUME_CLAIM.group_kind:
            return self._waiting.pop(notice.key, ())
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
        obstacle = self._find_obstacle(pod)
        condition: Object = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": moment,
        }
        if obstacle:
            found = find_pod_condition(pod, "PodScheduled")
            message = f"0/1 nodes are available: {obstacle}"
            if found is None or found.get("message") != message:
                condition |= {"status": "False", "reason": "Unschedulable", "message": message}
                self._writer.update_status(pod, {**(pod.get("status") or {}), "conditions": [condition]})
            return None
        self._writer.bind(pod, NODE_NAME, condition)
        return None

    def _find_obstacle(self, pod: Object) -> str:
        """Return the reason why the pod cannot be scheduled, with the text of the real scheduler; empty if it can."""
        node = self._view.get(NODE, ObjectKey("", NODE_NAME))
        if node is not None and not matches_node(pod, node):
            return f"1 node(s) didn't match Pod's node affinity/selector. {_NO_PREEMPTION}"
        if node is not None and (lacking := find_insufficient_resources(pod, node, self._view.list_kind(POD))):
            return f"{', '.join(f'1 Insufficient {name}' for name in lacking)}. {_NO_PREEMPTION}"
        for volume in pod["spec"].get("volumes") or ():
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if not name:
                continue
            key = ObjectKey(pod["metadata"]["namespace"], name)
            claim = self._view.get(PERSISTENT_VOLUME_CLAIM, key)
            if claim is not None and (claim.get("status") or {}).get("phase") == "Bound":
                continue
            self._waiting.setdefault(key, {})[ObjectKey.of(pod)] = None
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found. not found'
            return "pod has unbound immediate PersistentVolumeClaims. not found"
        return ""


class Kubelet:
    """The controller that runs pods. Its keys are those of pods."""

    name = "kubelet"
    watches = frozenset({POD.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient, clock: Clock, rules: ImageRules) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock
        self._rules = rules
        # The arrival of each pod by UID, since its own times are too coarse, and the addresses in use.
        self._arrivals: dict[str, float] = {}
        self._addresses: dict[str, str] = {}
        self._next_address = 1

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a pod on the node."""
        if notice.type == "DELETED":
            self._arrivals.pop(notice.new["metadata"]["uid"], None)
            self._addresses.pop((notice.new.get("status") or {}).get("podIP", ""), None)
            return ()
        return (notice.key,) if notice.new["spec"].get("nodeName") else ()

    def list_running(self) -> list[ObjectKey]:
        """Return the pods that a change of the image rules can affect."""
        return [ObjectKey.of(pod) for pod in self._view.list_kind(POD) if pod["spec"].get("nodeName")]

    def reconcile(self, key: Hashable) -> float | None:
        """Report the state of a pod; remove one that is being deleted."""
        assert isinstance(key, ObjectKey)
        pod = self._view.get(POD, key)
        if pod is None or not pod["spec"].get("nodeName"):
            return None
        if is_deleting(pod):
            if pod["metadata"].get("deletionGracePeriodSeconds", 0) > 0 or not pod["metadata"].get("finalizers"):
                self._writer.delete(pod, grace_seconds=0)
            return None
        if is_finished(pod):
            return None
        now = self._clock.now()
        elapsed = self._clock.monotonic() - self._arrivals.setdefault(pod["metadata"]["uid"], self._clock.monotonic())
        place = self._build_placement(pod)
        if get_phase(pod) == "Running" and find_controller_key(pod, JOB) is not None:
            fails = any(
                self._rules.behavior_for(entry["image"]).name == "failing" for entry in pod["spec"]["containers"]
            )
            if fails or is_ready(pod):
                self._writer.update_status(pod, build_completed_status(pod, not fails, now, place))
                return None
        status = build_pod_status(pod, self._rules.behavior_for, elapsed, now, place)
        if status != pod.get("status"):
            self._writer.update_status(pod, status)
        return compute_seconds_to_ready(pod, self._rules.behavior_for, elapsed)

    def _build_placement(self, pod: Object) -> PodPlacement:
        if pod["spec"].get("hostNetwork"):
            return PodPlacement(_NODE_IP, _NODE_IP)
        held = (pod.get("status") or {}).get("podIP")
        if held:
            self._addresses[held] = pod["metadata"]["uid"]
            return PodPlacement(_NODE_IP, held)
        while True:
            self._next_address = self._next_address % 0xFFFE + 1
            address = f"10.244.{self._next_address >> 8}.{self._next_address & 0xFF}"
            if address not in self._addresses:
                self._addresses[address] = pod["metadata"]["uid"]
                return PodPlacement(_NODE_IP, address)
