"""What a write may not change: the fields that the server keeps to itself, kind by kind.

A create drops what a client says of the status; an update of the main resource keeps the stored status; an update of a
subresource keeps everything else. ``metadata.generation`` counts the changes of what was asked for. The rules are those
of the registry strategies of kube-apiserver v1.36.
"""

from __future__ import annotations

from typing import Any

from konverge.kube import Object
from konverge.localcluster.resources import Resource

__all__ = ["prepare_create", "prepare_update"]

# What an update never changes, because the server alone writes it.
_SERVER_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)

_INITIAL_STATUS: dict[str, Object] = {
    "namespaces": {"phase": "Active"},
    "persistentvolumeclaims": {},
    "persistentvolumes": {"phase": "Pending"},
    "pods": {"phase": "Pending"},
    "services": {"loadBalancer": {}},
    "deployments.apps": {},
    "daemonsets.apps": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "replicasets.apps": {"replicas": 0},
    "statefulsets.apps": {"replicas": 0, "availableReplicas": 0},
    "horizontalpodautoscalers.autoscaling": {"desiredReplicas": 0, "currentMetrics": None},
    "cronjobs.batch": {},
    "jobs.batch": {},
    "ingresses.networking.k8s.io": {"loadBalancer": {}},
    "poddisruptionbudgets.policy": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
}
# Metadata that a write of the status subresource does not change either.
_KEPT_BY_STATUS: dict[str, tuple[str, ...]] = {
    "deployments.apps": ("labels",),
    "pods": ("ownerReferences",),
}


def prepare_create(resource: Resource, obj: Object) -> None:
    """Put the server's own fields of a new object into their first state, in place."""
    metadata = obj["metadata"]
    for name in (*_SERVER_METADATA, "resourceVersion"):
        metadata.pop(name, None)
    if resource.has_generation:
        metadata["generation"] = 1
    initial = _INITIAL_STATUS.get(resource.storage)
    if initial is not None:
        obj["status"] = dict(initial)
    if resource.storage == "namespaces":
        finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata.get("name", "")


def prepare_update(resource: Resource, old: Object, new: Object, *, subresource: str = "") -> None:
    """Carry over from the stored object what this write may not change, and count the generation, in place.

    Args:
        resource: What is written.
        old: The object as stored; shared, not changed.
        new: The object as it is to be.
        subresource: ``status``, or empty for the object itself.
    """
    metadata, before = new["metadata"], old["metadata"]
    for name in _SERVER_METADATA:
        _keep(name, before, metadata)
    if subresource == "status":
        for name in [field for field in old if field not in _IDENTITY and field != "status"]:
            new[name] = old[name]
        for name in [field for field in new if field not in old and field not in _IDENTITY and field != "status"]:
            del new[name]
        for name in _KEPT_BY_STATUS.get(resource.storage, ()):
            _keep(name, before, metadata)
        return
    if "status" in resource.mapping.subresources:
        _keep("status", old, new)
    if resource.storage == "namespaces" and subresource != "finalize":
        new["spec"] = old["spec"]
    if resource.has_generation and _asks_for_more(resource, old, new):
        metadata["generation"] = before.get("generation", 0) + 1


_IDENTITY = frozenset({"apiVersion", "kind", "metadata"})


def _keep(name: str, before: Object, after: Object) -> None:
    if name in before:
        after[name] = before[name]
    else:
        after.pop(name, None)


def _asks_for_more(resource: Resource, old: Object, new: Object) -> bool:
    if resource.storage == "deployments.apps" and _annotations(old) != _annotations(new):
        return True
    return _wanted(old) != _wanted(new)


def _annotations(obj: Object) -> Any:
    return obj["metadata"].get("annotations") or {}


def _wanted(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}
