"""The status that a kubelet reports for a pod whose containers follow the image rules. Pure.

The form is that of a kubelet v1.36: the same conditions, reasons and container states, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from konverge._internal.kube import Object, format_time
from konverge_cluster._internal.embedded.controllers.image_rules import ContainerBehavior
from konverge_cluster._internal.embedded.qos_class import compute_qos_class

__all__ = ["PodPlacement", "build_completed_status", "build_pod_status", "compute_seconds_to_ready"]


class PodPlacement(NamedTuple):
    """The addresses of a pod.

    Attributes:
        host_ip: The address of the node.
        pod_ip: The address of the pod, or of the node if it uses the host network.
    """

    host_ip: str
    pod_ip: str


def build_pod_status(
    pod: Object,
    behavior_of: Callable[[str], ContainerBehavior],
    elapsed_seconds: float,
    now: datetime,
    place: PodPlacement,
) -> Object:
    """Return the status of a pod on its node.

    Args:
        pod: The stored pod; unchanged parts keep the times from its status.
        behavior_of: Returns the behavior of a container by its image.
        elapsed_seconds: The seconds since the pod's arrival on its node.
        now: The time of the reconcile.
        place: The addresses of the node and of the pod.
    """
    spec, before = pod["spec"], pod.get("status") or {}
    moment = format_time(now)
    initial = _build_container_statuses(
        spec.get("initContainers"), before.get("initContainerStatuses"), behavior_of, elapsed_seconds, moment
    )
    initialized = all(container_status["ready"] for container_status in initial)
    if initialized:
        initial = [
            _build_finished_status(container_status, moment) if not _is_sidecar(container) else container_status
            for container_status, container in zip(initial, spec.get("initContainers") or (), strict=True)
        ]
        containers = _build_container_statuses(
            spec["containers"], before.get("containerStatuses"), behavior_of, elapsed_seconds, moment
        )
    else:
        containers = [_build_waiting_status(container, "PodInitializing") for container in spec["containers"]]
    unready = [container_status["name"] for container_status in containers if not container_status["ready"]]
    incomplete = [container_status["name"] for container_status in initial if not container_status["ready"]]
    waiting = any(
        "waiting" in container_status["state"] and not container_status.get("lastState")
        for container_status in containers
    )
    conditions = _build_conditions(unready, incomplete)
    return _build_status(pod, "Pending" if waiting else "Running", conditions, initial, containers, now, place)


def build_completed_status(pod: Object, succeeded: bool, now: datetime, place: PodPlacement) -> Object:
    """Return the status of a pod whose containers have all ended."""
    before = pod.get("status") or {}
    moment = format_time(now)
    exit_code = 0 if succeeded else 1
    containers = [
        {**_build_finished_status(container_status, moment, exit_code=exit_code), "ready": False}
        for container_status in before.get("containerStatuses") or ()
    ]
    reason = "PodCompleted" if succeeded else "PodFailed"
    conditions = {
        "PodReadyToStartContainers": {"status": "False"},
        "Initialized": {"status": "True", **({"reason": reason} if succeeded else {})},
        "Ready": {"status": "False", "reason": reason},
        "ContainersReady": {"status": "False", "reason": reason},
    }
    initial = before.get("initContainerStatuses") or []
    return _build_status(pod, "Succeeded" if succeeded else "Failed", conditions, initial, containers, now, place)


def compute_seconds_to_ready(
    pod: Object, behavior_of: Callable[[str], ContainerBehavior], elapsed_seconds: float
) -> float | None:
    """Return the seconds until the next change without an event; None if there is none."""
    spec = pod["spec"]
    waits = [
        behavior.after_seconds - elapsed_seconds
        for container in [*(spec.get("initContainers") or ()), *spec["containers"]]
        if (behavior := behavior_of(container.get("image", ""))).name == "ready"
    ]
    return min((seconds for seconds in waits if seconds > 0), default=None)


def _build_container_statuses(
    containers: Sequence[Object] | None,
    before: Sequence[Object] | None,
    behavior_of: Callable[[str], ContainerBehavior],
    elapsed_seconds: float,
    moment: str,
) -> list[Object]:
    earlier = {container["name"]: container for container in before or ()}
    return [
        _build_container_status(
            container,
            earlier.get(container["name"]),
            behavior_of(container.get("image", "")),
            elapsed_seconds,
            moment,
        )
        for container in containers or ()
    ]


def _build_container_status(
    container: Object, before: Object | None, behavior_of: ContainerBehavior, elapsed_seconds: float, moment: str
) -> Object:
    if behavior_of.name == "failing":
        return _build_crashing_status(container, before, moment)
    if before is not None and "terminated" in before["state"]:
        return before
    runs = before is not None and "running" in before["state"]
    if behavior_of.name == "never-ready" and not runs:
        image = container.get("image", "")
        message = f'Back-off pulling image "{image}": ErrImagePull: pull access denied for {image}'
        return _build_waiting_status(container, "ImagePullBackOff", message)
    ready = behavior_of.name == "ready" and elapsed_seconds >= behavior_of.after_seconds
    if before is not None and runs:
        return before | {"ready": before["ready"] or ready}
    restarts = before["restartCount"] if before is not None else 0
    last = before.get("lastState") if before is not None else None
    state = {"running": {"startedAt": moment}}
    return _build_state(container, state, ready=ready, restarts=restarts, last=last) | {"started": True}


def _build_waiting_status(container: Object, reason: str, message: str = "") -> Object:
    waiting = {"reason": reason} | ({"message": message} if message else {})
    return _build_state(container, {"waiting": waiting}, ready=False)


def _build_crashing_status(container: Object, before: Object | None, moment: str) -> Object:
    if before is not None and (before["state"].get("waiting") or {}).get("reason") == "CrashLoopBackOff":
        return before
    running = before["state"].get("running") if before is not None else None
    ended = {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": running["startedAt"] if running else moment,
        "finishedAt": moment,
    }
    name = container["name"]
    waiting = {
        "reason": "CrashLoopBackOff",
        "message": f"back-off 10s restarting failed container={name}",
    }
    restarts = (before["restartCount"] if before is not None else 0) + 1
    return _build_state(container, {"waiting": waiting}, ready=False, restarts=restarts, last={"terminated": ended})


def _build_finished_status(before: Object, moment: str, *, exit_code: int = 0) -> Object:
    if "terminated" in before["state"]:
        return dict(before)
    started = (before["state"].get("running") or {}).get("startedAt", moment)
    reason = "Completed" if exit_code == 0 else "Error"
    ended = {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": moment}
    return {**before, "state": {"terminated": ended}, "ready": exit_code == 0, "started": False}


def _build_state(
    container: Object, state: Object, *, ready: bool, restarts: int = 0, last: Object | None = None
) -> Object:
    return {
        "name": container["name"],
        "state": state,
        "lastState": last or {},
        "ready": ready,
        "restartCount": restarts,
        "image": container.get("image", ""),
        "imageID": "",
        "started": ready,
    }


def _is_sidecar(container: Object) -> bool:
    return bool(container.get("restartPolicy") == "Always")


def _build_conditions(unready: Sequence[str], incomplete: Sequence[str]) -> dict[str, Object]:
    conditions: dict[str, Object] = {"PodReadyToStartContainers": {"status": "True"}}
    if incomplete:
        message = f"containers with incomplete status: [{' '.join(incomplete)}]"
        conditions["Initialized"] = {"status": "False", "reason": "ContainersNotInitialized", "message": message}
    else:
        conditions["Initialized"] = {"status": "True"}
    ready: Object = {"status": "True"}
    if unready:
        message = f"containers with unready status: [{' '.join(unready)}]"
        ready = {"status": "False", "reason": "ContainersNotReady", "message": message}
    return conditions | {"Ready": ready, "ContainersReady": ready}


def _build_status(
    pod: Object,
    phase: str,
    conditions: Mapping[str, Object],
    initial: Sequence[Object],
    containers: Sequence[Object],
    now: datetime,
    place: PodPlacement,
) -> Object:
    before = pod.get("status") or {}
    earlier = {condition["type"]: condition for condition in before.get("conditions") or ()}
    scheduled = earlier.pop("PodScheduled", None)
    kept = [condition for condition_type, condition in earlier.items() if condition_type not in conditions]
    listed = [_build_dated_condition(name, written, earlier.get(name), now) for name, written in conditions.items()]
    status: Object = {
        "phase": phase,
        "conditions": [*listed, *([scheduled] if scheduled is not None else []), *kept],
        "hostIP": place.host_ip,
        "hostIPs": [{"ip": place.host_ip}],
        "podIP": place.pod_ip,
        "podIPs": [{"ip": place.pod_ip}],
        "startTime": before.get("startTime") or format_time(now),
        "containerStatuses": list(containers),
        "qosClass": before.get("qosClass") or compute_qos_class(pod["spec"]),
    }
    if initial:
        status["initContainerStatuses"] = list(initial)
    return status


def _build_dated_condition(condition_type: str, written: Object, before: Object | None, now: datetime) -> Object:
    same = before is not None and before["status"] == written["status"]
    moment = before["lastTransitionTime"] if before is not None and same else format_time(now)
    status = {"type": condition_type, "status": written["status"], "lastProbeTime": None, "lastTransitionTime": moment}
    return status | {name: written[name] for name in ("reason", "message") if name in written}
