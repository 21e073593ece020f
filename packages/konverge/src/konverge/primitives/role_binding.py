"""RoleBinding: static."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import GroupVersionKind
from konverge.mutation import BindingSubjectsEditor, EditCategory, EditFunction, Mutator
from konverge.primitives.field_access import read_text
from konverge.primitives.kind_categories import StaticKind

__all__ = ["RoleBinding", "RoleBindingMutator", "validate_role_ref"]


class RoleBinding(StaticKind["RoleBindingMutator"]):
    """An ``rbac.authorization.k8s.io/v1`` RoleBinding: ready once applied, left alone by suspension.

    Its role cannot be changed, neither by a mutation nor on the server. Who writes a binding must hold the role's
    permissions, or the verb ``bind`` on the role.
    """

    gvk = GroupVersionKind("rbac.authorization.k8s.io", "v1", "RoleBinding")

    def create_mutator(self) -> RoleBindingMutator:
        """What the callbacks of this kind's mutations get."""
        return RoleBindingMutator()

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """A role that is not fully named."""
        return validate_role_ref(obj)


def validate_role_ref(obj: Mapping[str, Any]) -> Iterator[str]:
    """What of a binding's ``roleRef`` is missing. The server would fill in some of it; later, none can be changed."""
    for field, example in (
        ("apiGroup", RoleBinding.gvk.group),
        ("kind", "Role or ClusterRole"),
        ("name", "the role's"),
    ):
        if not read_text(obj, "roleRef", field):
            yield f"roleRef.{field} is empty: expected {example}"


class RoleBindingMutator(Mutator):
    """Records edits of a RoleBinding; a mutation that asks for no more than this fits a ClusterRoleBinding, too."""

    def edit_subjects(self, edit: EditFunction[BindingSubjectsEditor] | None) -> None:
        """Edit the subjects."""
        self._edit(EditCategory.CONTENT, BindingSubjectsEditor, (), edit)
