"""NetworkPolicy: a static primitive without health."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind
from konverge._internal.mutation import EditCategory, EditFunction, Mutator, NetworkPolicySpecEditor
from konverge._internal.primitives.kind_categories import StaticKind

__all__ = ["NetworkPolicy", "NetworkPolicyMutator"]


class NetworkPolicy(StaticKind["NetworkPolicyMutator"]):
    """A ``networking.k8s.io/v1`` NetworkPolicy: ready once applied, left alone by suspension."""

    gvk: GroupVersionKind = GroupVersionKind("networking.k8s.io", "v1", "NetworkPolicy")

    def create_mutator(self) -> NetworkPolicyMutator:
        """Return a new mutator for the callback of one mutation."""
        return NetworkPolicyMutator()


class NetworkPolicyMutator(Mutator):
    """Records edits of a NetworkPolicy."""

    def edit_network_policy_spec(self, edit: EditFunction[NetworkPolicySpecEditor] | None) -> None:
        """Record an edit of the spec."""
        self._edit(EditCategory.CONTENT, NetworkPolicySpecEditor, ("spec",), edit)
