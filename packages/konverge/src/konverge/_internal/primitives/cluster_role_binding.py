"""ClusterRoleBinding: a static primitive, cluster-scoped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind
from konverge._internal.primitives.kind_categories import StaticKind
from konverge._internal.primitives.role_binding import RoleBindingMutator, validate_role_ref

__all__ = ["ClusterRoleBinding", "ClusterRoleBindingMutator"]


class ClusterRoleBinding(StaticKind["ClusterRoleBindingMutator"]):
    """An ``rbac.authorization.k8s.io/v1`` ClusterRoleBinding: ready once applied, left alone by suspension.

    Its role is immutable: mutations cannot change it, and the server rejects a change. The client that writes a binding
    must hold the role's permissions, or the verb ``bind`` on the role.
    """

    gvk: GroupVersionKind = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")
    is_cluster_scoped = True

    def create_mutator(self) -> ClusterRoleBindingMutator:
        """Return a new mutator for the callback of one mutation."""
        return ClusterRoleBindingMutator()

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Report the missing fields of the role reference."""
        return validate_role_ref(obj)


class ClusterRoleBindingMutator(RoleBindingMutator):
    """Records edits of a ClusterRoleBinding."""
