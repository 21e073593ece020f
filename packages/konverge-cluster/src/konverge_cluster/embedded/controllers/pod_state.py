"""What controllers ask of pods: are they ready, available, on their way out; and which of them go first.

Pure. Times come in as arguments; a pod's own times have whole seconds, as the API keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from konverge.kube import Object, build_owner_reference, is_deleting, parse_time

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
    """The pod's phase, empty when it has none yet."""
    return str((pod.get("status") or {}).get("phase") or "")


def find_pod_condition(pod: Object, condition_type: str) -> dict[str, Any] | None:
    """The pod's condition of that type, None without."""
    conditions: list[dict[str, Any]] = (pod.get("status") or {}).get("conditions") or []
    return next((found for found in conditions if found.get("type") == condition_type), None)


def is_ready(pod: Object) -> bool:
    """Tell whether the pod's ``Ready`` condition is True."""
    found = find_pod_condition(pod, "Ready")
    return found is not None and found.get("status") == "True"


def is_finished(pod: Object) -> bool:
    """Tell whether the pod has run to its end, well or not."""
    return get_phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Tell whether the pod counts as a replica: neither finished nor being deleted."""
    return not is_finished(pod) and not is_deleting(pod)


def is_available(pod: Object, min_ready_seconds: int, now: datetime) -> bool:
    """Tell whether the pod has been ready for long enough."""
    return compute_seconds_to_available(pod, min_ready_seconds, now) == 0


def compute_seconds_to_available(pod: Object, min_ready_seconds: int, now: datetime) -> float | None:
    """How long until the pod counts as available if it stays ready; 0 when it does, None when it is not ready."""
    found = find_pod_condition(pod, "Ready")
    if found is None or found.get("status") != "True":
        return None
    if min_ready_seconds == 0:
        return 0
    since = parse_time(found["lastTransitionTime"])
    return max(0.0, (since + timedelta(seconds=min_ready_seconds) - now).total_seconds())


def build_pod_from_template(template: Object, owner: Object) -> Object:
    """The pod that a controller creates from its template; its name is left to ``generateName``."""
    metadata: Object = {"generateName": f"{owner['metadata']['name']}-", "namespace": owner["metadata"]["namespace"]}
    written = template.get("metadata") or {}
    for field in ("labels", "annotations", "finalizers"):
        if written.get(field):
            metadata[field] = written[field].copy()
    metadata["ownerReferences"] = [build_owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def sort_for_deletion(pods: Iterable[Object], now: datetime) -> list[Object]:
    """The pods in the order in which a ReplicaSet gives them up.

    First what has no node, then what is pending, then what is not ready, then the cheap by their deletion cost, then
    the young. Ages within the same power of two count as equal, and the UID decides, so that not only the youngest pay.
    """

    def rank(pod: Object) -> tuple[bool, int, bool, int, int, int, int, str]:
        ready = find_pod_condition(pod, "Ready")
        is_so = ready is not None and ready.get("status") == "True"
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        restarts = max((found.get("restartCount", 0) for found in statuses), default=0)
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
