"""The simulated kubelet: one node with capacity for all pods, which follow their image rules."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime

from konverge._internal.kube import Object, ObjectKey, format_time, is_deleting
from konverge.clock import Clock
from konverge_cluster._internal.embedded.controllers.builtin_kinds import JOB, NODE, NODE_NAME, POD
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.controller_references import find_controller_key
from konverge_cluster._internal.embedded.controllers.image_rules import ImageRules
from konverge_cluster._internal.embedded.controllers.pod_state import get_phase, is_finished, is_ready
from konverge_cluster._internal.embedded.controllers.pod_status import (
    PodPlacement,
    build_completed_status,
    build_pod_status,
    compute_seconds_to_ready,
)

__all__ = ["Kubelet", "build_node"]

_NODE_IP = "10.0.0.1"


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
