"""The simulated controller of aggregated ClusterRoles: it fills their rules from the roles that they select."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.selectors import LabelSelector
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient

__all__ = ["AGGREGATION_MANAGER", "RoleAggregationController"]

AGGREGATION_MANAGER = "clusterrole-aggregation-controller"
"""The field manager that owns the rules of aggregated roles."""

_CLUSTER_ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")


class RoleAggregationController:
    """The controller. Its keys are those of ClusterRoles with an ``aggregationRule``."""

    name = AGGREGATION_MANAGER
    watches = frozenset({_CLUSTER_ROLE.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the keys of all aggregated roles: any role can enter or leave a selection."""
        roles = self._view.list_kind(_CLUSTER_ROLE)
        return [ObjectKey.of(role) for role in roles if role.get("aggregationRule") is not None]

    def reconcile(self, key: Hashable) -> float | None:
        """Write the rules of the selected roles, in the order of the selectors and of the names."""
        assert isinstance(key, ObjectKey)
        role = self._view.get(_CLUSTER_ROLE, key)
        if role is None or role.get("aggregationRule") is None:
            return None
        rules = self._collect_rules(role)
        if rules != (role.get("rules") or []):
            self._writer.apply(
                {
                    "apiVersion": _CLUSTER_ROLE.api_version,
                    "kind": _CLUSTER_ROLE.kind,
                    "metadata": {"name": key.name},
                    "rules": rules,
                }
            )
        return None

    def _collect_rules(self, role: Object) -> list[Object]:
        others = sorted(
            (other for other in self._view.list_kind(_CLUSTER_ROLE) if ObjectKey.of(other) != ObjectKey.of(role)),
            key=lambda other: str(other["metadata"]["name"]),
        )
        rules: list[Object] = []
        for entry in role["aggregationRule"].get("clusterRoleSelectors") or ():
            selector = LabelSelector.from_object(entry)
            for other in others:
                if selector is not None and selector.matches(other["metadata"].get("labels") or {}):
                    rules += [rule for rule in other.get("rules") or () if rule not in rules]
        return rules
