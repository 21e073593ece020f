"""Role: a static primitive without health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind
from konverge._internal.mutation import EditCategory, EditFunction, Mutator, PolicyRulesEditor
from konverge._internal.primitives.kind_categories import StaticKind

__all__ = ["Role", "RoleMutator"]


class Role(StaticKind["RoleMutator"]):
    """An ``rbac.authorization.k8s.io/v1`` Role: ready once applied, left alone by suspension.

    The client that writes a role must hold its permissions, or the verb ``escalate`` on roles.
    """

    gvk: GroupVersionKind = GroupVersionKind("rbac.authorization.k8s.io", "v1", "Role")

    def create_mutator(self) -> RoleMutator:
        """Return a new mutator for the callback of one mutation."""
        return RoleMutator()


class RoleMutator(Mutator):
    """Records edits of a Role; a mutation for this mutator also works with a ClusterRole."""

    def edit_rules(self, edit: EditFunction[PolicyRulesEditor] | None) -> None:
        """Record an edit of the rules."""
        self._edit(EditCategory.CONTENT, PolicyRulesEditor, (), edit)

    def add_rule(self, rule: Mapping[str, Any]) -> None:
        """Append a rule: ``{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}``."""
        self.edit_rules(lambda rules: rules.add_rule(rule))
