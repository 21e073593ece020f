"""RoleBinding: static."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import GroupVersionKind
from konverge.mutation import BindingSubjectsEditor, Category, Edit, Mutator
from konverge.primitives.categories import StaticKind
from konverge.primitives.reading import text_at

__all__ = ["RoleBinding", "RoleBindingMutator", "role_ref_mistakes"]


class RoleBinding(StaticKind["RoleBindingMutator"]):
    """An ``rbac.authorization.k8s.io/v1`` RoleBinding: ready once applied, left alone by suspension.

    Its role cannot be changed, neither by a mutation nor on the server. Who writes a binding must hold the role's
    permissions, or the verb ``bind`` on the role.
    """

    gvk = GroupVersionKind("rbac.authorization.k8s.io", "v1", "RoleBinding")

    def new_mutator(self) -> RoleBindingMutator:
        """What the callbacks of this kind's mutations get."""
        return RoleBindingMutator()

    def kind_mistakes(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """A role that is not fully named."""
        return role_ref_mistakes(obj)


def role_ref_mistakes(obj: Mapping[str, Any]) -> Iterator[str]:
    """What of a binding's ``roleRef`` is missing. The server would fill in some of it; later, none can be changed."""
    for field, example in (
        ("apiGroup", RoleBinding.gvk.group),
        ("kind", "Role or ClusterRole"),
        ("name", "the role's"),
    ):
        if not text_at(obj, "roleRef", field):
            yield f"roleRef.{field} is empty: expected {example}"


class RoleBindingMutator(Mutator):
    """Records edits of a RoleBinding; a mutation that asks for no more than this fits a ClusterRoleBinding, too."""

    def edit_subjects(self, edit: Edit[BindingSubjectsEditor] | None) -> None:
        """Edit the subjects."""
        self._edit(Category.CONTENT, BindingSubjectsEditor, (), edit)
