"""ClusterRole: static, cluster-scoped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import EditCategory, copy_json
from konverge.primitives.kind_categories import StaticKind
from konverge.primitives.role import RoleMutator

__all__ = ["ClusterRole", "ClusterRoleMutator"]


class ClusterRole(StaticKind["ClusterRoleMutator"]):
    """An ``rbac.authorization.k8s.io/v1`` ClusterRole: ready once applied, left alone by suspension.

    Who writes a role must hold its permissions, or the verb ``escalate`` on cluster roles.
    """

    gvk = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")
    is_cluster_scoped = True

    def create_mutator(self) -> ClusterRoleMutator:
        """What the callbacks of this kind's mutations get."""
        return ClusterRoleMutator()

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Rules beside an aggregation rule, even none: both sides would write them, turn by turn, for ever."""
        if obj.get("aggregationRule") is not None and obj.get("rules") is not None:
            yield "rules: leave them out beside aggregationRule, a controller of the cluster writes them"


class ClusterRoleMutator(RoleMutator):
    """Records edits of a ClusterRole."""

    def set_aggregation_rule(self, rule: Mapping[str, Any]) -> None:
        """Replace which cluster roles are gathered into this one: ``{"clusterRoleSelectors": [{"matchLabels": …}]}``.

        A controller of the cluster then writes ``rules``: leave them out.
        """

        def change(obj: Object) -> None:
            obj["aggregationRule"] = copy_json(rule)

        self._record(EditCategory.CONTENT, change)
