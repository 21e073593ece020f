"""The objects of a new cluster: namespaces, the Service of the API server, and priority classes of the system."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object
from konverge_cluster._internal.embedded.validation.scheduling_classes import SYSTEM_PRIORITIES

__all__ = ["UNDELETABLE_NAMESPACES", "build_bootstrap_objects"]

UNDELETABLE_NAMESPACES = frozenset({"default", "kube-public", "kube-system"})

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_SERVICE = GroupVersionKind("", "v1", "Service")
_PRIORITY_CLASS = GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass")
_PRIORITY_DESCRIPTIONS = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}


def build_bootstrap_objects() -> list[tuple[GroupVersionKind, Object]]:
    """Return the objects, each after the objects that it needs."""
    names = sorted(UNDELETABLE_NAMESPACES | {"kube-node-lease"})
    return [
        *((_NAMESPACE, {"metadata": {"name": name}}) for name in names),
        (_SERVICE, _build_api_service()),
        *((_PRIORITY_CLASS, _build_priority_class(name, value)) for name, value in SYSTEM_PRIORITIES.items()),
    ]


def _build_priority_class(name: str, value: int) -> Object:
    return {"metadata": {"name": name}, "value": value, "description": _PRIORITY_DESCRIPTIONS[name]}


def _build_api_service() -> Object:
    """Return the Service through which pods reach the API server."""
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": "10.96.0.1",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            "type": "ClusterIP",
        },
    }
