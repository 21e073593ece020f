"""The roles and bindings that a real server creates at its start, recorded from one (v1.36).

Users bind ``admin``, ``edit`` and ``view``, whose rules come from other roles by their labels; discovery and self
reviews need the roles of all authenticated users.
"""

from __future__ import annotations

from importlib import resources

import msgspec

from konverge._internal.kube import GroupVersionKind, Object

__all__ = ["build_default_roles"]

_GROUP = "rbac.authorization.k8s.io"


def build_default_roles() -> list[tuple[GroupVersionKind, Object]]:
    """Return the default roles and their bindings, each with its kind; they are the caller's own."""
    data = resources.files("konverge_cluster._internal.embedded.access").joinpath("default_roles.json")
    recorded = msgspec.json.decode(data.read_bytes(), type=dict[str, list[Object]])
    return [(GroupVersionKind(_GROUP, "v1", kind), obj) for kind, objects in recorded.items() for obj in objects]
