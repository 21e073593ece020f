"""Whether the controllers of a cluster have done with an object what they do with each new one. Pure.

A controller comes to an object in its own time: on a busy machine a second after the object was made, or fifteen. Who
counts what an operator writes waits until all of them have been there, since each change of theirs may be one more
pass, and one more status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge.kube import Object, is_deleting

__all__ = ["has_been_observed"]


def has_been_observed(resource: str, obj: Object, *, is_real: bool) -> bool:
    """Tell whether an object has what its controller writes once it has seen it as it is now.

    Args:
        resource: The kind's plural, as in paths.
        obj: The object.
        is_real: On the real cluster; the embedded one does not play all controllers.
    """
    check = _CHECKS.get(resource) or (_CHECKS_OF_REAL.get(resource) if is_real else None)
    status = obj.get("status")
    return check is None or is_deleting(obj) or check(obj, status if isinstance(status, Mapping) else {})


def _has_seen_generation(obj: Object, status: Mapping[str, Any]) -> bool:
    return bool(status.get("observedGeneration", 0) >= obj["metadata"].get("generation", 1))


def _has_phase(obj: Object, status: Mapping[str, Any]) -> bool:
    return status.get("phase") not in (None, "Pending")


def _has_conditions(obj: Object, status: Mapping[str, Any]) -> bool:
    return bool(status.get("conditions"))


_Check = Callable[[Object, Mapping[str, Any]], bool]
_CHECKS: Mapping[str, _Check] = {
    "customresourcedefinitions": _has_conditions,
    "daemonsets": _has_seen_generation,
    "deployments": _has_seen_generation,
    "jobs": lambda obj, status: bool(status),
    "poddisruptionbudgets": _has_seen_generation,
    "replicasets": _has_seen_generation,
    "statefulsets": _has_seen_generation,
}
_CHECKS_OF_REAL: Mapping[str, _Check] = {
    "horizontalpodautoscalers": _has_conditions,
    "persistentvolumes": _has_phase,
}
