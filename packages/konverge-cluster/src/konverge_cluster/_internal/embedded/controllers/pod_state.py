"""Predicates of pods for controllers: ready, available, terminating; and the order of deletion.

Pure. Times are arguments; the times of a pod have whole seconds, as in the API.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from konverge._internal.kube import Object, build_owner_reference, is_deleting, parse_time

__all__ = [
    "build_pod_from_template",
    "compute_seconds_to_available",
    "find_pod_condition",
    "is_active",
    "is_available",
    "is_finished",
    "is_ready",
    "sort_for_deletion",
]

_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


def get_phase(pod: Object) -> str:
    """Return the pod's phase; empty if it has none yet."""
    return str((pod.get("status") or {}).get("phase") or "")


def find_pod_condition(pod: Object, condition_type: str) -> dict[str, Any] | None:
    """Return the pod's condition of that type; None if absent."""
    conditions: list[dict[str, Any]] = (pod.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == condition_type), None)


def is_ready(pod: Object) -> bool:
    """Return True if the pod's ``Ready`` condition is True."""
    condition = find_pod_condition(pod, "Ready")
    return condition is not None and condition.get("status") == "True"


def is_finished(pod: Object) -> bool:
    """Return True if the pod has succeeded or failed."""
    return get_phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Return True if the pod counts as a replica: neither finished nor under deletion."""
    return not is_finished(pod) and not is_deleting(pod)


def is_available(pod: Object, min_ready_seconds: int, now: datetime) -> bool:
    """Return True if the pod has been ready for long enough."""
    return compute_seconds_to_available(pod, min_ready_seconds, now) == 0


def compute_seconds_to_available(pod: Object, min_ready_seconds: int, now: datetime) -> float | None:
    """Return the seconds until a ready pod counts as available: 0 if it does now, None if it is not ready."""
    condition = find_pod_condition(pod, "Ready")
    if condition is None or condition.get("status") != "True":
        return None
    if min_ready_seconds == 0:
        return 0
    since = parse_time(condition["lastTransitionTime"])
    return max(0.0, (since + timedelta(seconds=min_ready_seconds) - now).total_seconds())


def build_pod_from_template(template: Object, owner: Object) -> Object:
    """Return the pod that a controller creates from its template; its name comes from ``generateName``."""
    metadata: Object = {"generateName": f"{owner['metadata']['name']}-", "namespace": owner["metadata"]["namespace"]}
    written = template.get("metadata") or {}
    for field in ("labels", "annotations", "finalizers"):
        if written.get(field):
            metadata[field] = written[field].copy()
    metadata["ownerReferences"] = [build_owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def sort_for_deletion(pods: Iterable[Object], now: datetime) -> list[Object]:
    """Return the pods in the order in which a ReplicaSet deletes them.

    Pods without a node come first, then pending pods, then pods that are not ready, then a low deletion cost, then
    young pods. Ages within the same power of two are equal; then the UID decides, so that not always the youngest is
    deleted.
    """

    def rank(pod: Object) -> tuple[bool, int, bool, int, int, int, int, str]:
        ready = find_pod_condition(pod, "Ready")
        is_so = ready is not None and ready.get("status") == "True"
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        restarts = max((entry.get("restartCount", 0) for entry in statuses), default=0)
        return (
            bool((pod.get("spec") or {}).get("nodeName")),
            _PHASE_ORDER.get(get_phase(pod), 0),
            is_so,
            _read_deletion_cost(pod),
            _rank_age(ready["lastTransitionTime"], now) if is_so and ready is not None else 0,
            -restarts,
            _rank_age(pod["metadata"]["creationTimestamp"], now),
            pod["metadata"]["uid"],
        )

    return sorted(pods, key=rank)


def _read_deletion_cost(pod: Object) -> int:
    written = (pod["metadata"].get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost", "0")
    try:
        return int(written)
    except ValueError:
        return 0


def _rank_age(since: str, now: datetime) -> int:
    age = (now - parse_time(since)).total_seconds()
    return int(math.log2(age * 1e9)) if age * 1e9 >= 1 else -1
