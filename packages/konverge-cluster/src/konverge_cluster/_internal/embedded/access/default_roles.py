"""The roles that users need for discovery and self reviews, as a real server creates them at its start."""

from __future__ import annotations

from typing import Any

from konverge._internal.kube import GroupVersionKind, Object

__all__ = ["build_default_roles"]

_GROUP = "rbac.authorization.k8s.io"
_ROLE = GroupVersionKind(_GROUP, "v1", "ClusterRole")
_BINDING = GroupVersionKind(_GROUP, "v1", "ClusterRoleBinding")
_METADATA = {
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    "annotations": {f"{_GROUP.replace('k8s', 'kubernetes')}/autoupdate": "true"},
}
_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DOCUMENTS = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz"]
_ROLES: dict[str, tuple[list[Object], tuple[str, ...]]] = {
    "cluster-admin": (
        [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}],
        ("system:masters",),
    ),
    "system:basic-user": (
        [
            {
                "verbs": ["create"],
                "apiGroups": ["authorization.k8s.io"],
                "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            },
            {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
        ],
        ("system:authenticated",),
    ),
    "system:discovery": (
        [{"verbs": ["get"], "nonResourceURLs": [*_DOCUMENTS, "/version", "/version/"]}],
        ("system:authenticated",),
    ),
    "system:public-info-viewer": (
        [{"verbs": ["get"], "nonResourceURLs": _HEALTH}],
        ("system:authenticated", "system:unauthenticated"),
    ),
}


def build_default_roles() -> list[tuple[GroupVersionKind, Object]]:
    """Return the default ClusterRoles and their bindings."""
    objects: list[tuple[GroupVersionKind, Object]] = []
    for name, (rules, groups) in _ROLES.items():
        metadata: dict[str, Any] = {"name": name, **_METADATA}
        subjects = [{"kind": "Group", "apiGroup": _GROUP, "name": group} for group in groups]
        reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name}
        objects.append((_ROLE, {"metadata": metadata, "rules": rules}))
        objects.append((_BINDING, {"metadata": metadata, "subjects": subjects, "roleRef": reference}))
    return objects
