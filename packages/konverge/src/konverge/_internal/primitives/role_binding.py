"""RoleBinding: a static primitive without health."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind
from konverge._internal.mutation import BindingSubjectsEditor, EditCategory, EditFunction, Mutator
from konverge._internal.primitives.field_access import read_text
from konverge._internal.primitives.kind_categories import StaticKind

__all__ = ["RoleBinding", "RoleBindingMutator", "validate_role_ref"]


class RoleBinding(StaticKind["RoleBindingMutator"]):
    """An ``rbac.authorization.k8s.io/v1`` RoleBinding: ready once applied, left alone by suspension.

    Its role is immutable: mutations cannot change it, and the server rejects a change. The client that writes a binding
    must hold the role's permissions, or the verb ``bind`` on the role.
    """

    gvk: GroupVersionKind = GroupVersionKind("rbac.authorization.k8s.io", "v1", "RoleBinding")

    def create_mutator(self) -> RoleBindingMutator:
        """Return a new mutator for the callback of one mutation."""
        return RoleBindingMutator()

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Report the missing fields of the role reference."""
        return validate_role_ref(obj)


def validate_role_ref(obj: Mapping[str, Any]) -> Iterator[str]:
    """Yield an error for each missing field of ``roleRef``.

    The server would default some of them, and all are immutable.
    """
    for field, example in (
        ("apiGroup", RoleBinding.gvk.group),
        ("kind", "Role or ClusterRole"),
        ("name", "the name of the role"),
    ):
        if not read_text(obj, "roleRef", field):
            yield f"roleRef.{field}: expected {example}, found none"


class RoleBindingMutator(Mutator):
    """Records edits of a RoleBinding; a mutation for this mutator also works with a ClusterRoleBinding."""

    def edit_subjects(self, edit: EditFunction[BindingSubjectsEditor] | None) -> None:
        """Record an edit of the subjects."""
        self._edit(EditCategory.CONTENT, BindingSubjectsEditor, (), edit)
