"""The objects of a new cluster: namespaces and the Service of the API server."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object

__all__ = ["UNDELETABLE_NAMESPACES", "build_bootstrap_objects"]

UNDELETABLE_NAMESPACES = frozenset({"default", "kube-public", "kube-system"})

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_SERVICE = GroupVersionKind("", "v1", "Service")


def build_bootstrap_objects() -> list[tuple[GroupVersionKind, Object]]:
    """Return the objects, each after the objects that it needs."""
    names = sorted(UNDELETABLE_NAMESPACES | {"kube-node-lease"})
    return [*((_NAMESPACE, {"metadata": {"name": name}}) for name in names), (_SERVICE, _build_api_service())]


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
