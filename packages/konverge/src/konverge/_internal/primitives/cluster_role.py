"""ClusterRole: a static primitive, cluster-scoped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import EditCategory, copy_json
from konverge._internal.primitives.kind_categories import StaticKind
from konverge._internal.primitives.role import RoleMutator

__all__ = ["ClusterRole", "ClusterRoleMutator"]


class ClusterRole(StaticKind["ClusterRoleMutator"]):
    """An ``rbac.authorization.k8s.io/v1`` ClusterRole: ready once applied, left alone by suspension.

    The client that writes a role must hold its permissions, or the verb ``escalate`` on cluster roles.
    """

    gvk: GroupVersionKind = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")
    is_cluster_scoped = True

    def create_mutator(self) -> ClusterRoleMutator:
        """Return a new mutator for the callback of one mutation."""
        return ClusterRoleMutator()

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Report rules, even an empty list, next to an aggregation rule.

        The operator and the cluster's controller would overwrite each other's rules forever.
        """
        if obj.get("aggregationRule") is not None and obj.get("rules") is not None:
            yield "rules: expected none with an aggregationRule, because a controller of the cluster writes them"


class ClusterRoleMutator(RoleMutator):
    """Records edits of a ClusterRole."""

    def set_aggregation_rule(self, rule: Mapping[str, Any]) -> None:
        """Replace the selectors of the aggregated cluster roles: ``{"clusterRoleSelectors": [{"matchLabels": …}]}``.

        A controller of the cluster then writes ``rules``: omit them.
        """

        def change(obj: Object) -> None:
            obj["aggregationRule"] = copy_json(rule)

        self._record(EditCategory.CONTENT, change)
