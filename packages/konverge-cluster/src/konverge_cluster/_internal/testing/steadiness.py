"""Checks that a cluster's controllers have finished with an object. Pure.

A controller can observe a new object after one second or, on a busy machine, after fifteen. A test that counts an
operator's writes must wait for all controllers, since each of their changes can cause one more reconcile and one more
status write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge._internal.kube import Object, is_deleting

__all__ = ["has_been_observed"]


def has_been_observed(resource: str, obj: Object, *, is_real: bool) -> bool:
    """Return True if the object contains what its controller writes after observing the current version.

    Args:
        resource: The plural of the kind, as in paths.
        obj: The object.
        is_real: True for the real cluster; the embedded cluster does not simulate all controllers.
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
