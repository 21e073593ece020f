"""PodDisruptionBudget: a static primitive without health."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind
from konverge._internal.mutation import EditCategory, EditFunction, Mutator, PodDisruptionBudgetSpecEditor
from konverge._internal.primitives.kind_categories import StaticKind

__all__ = ["PodDisruptionBudget", "PodDisruptionBudgetMutator"]


class PodDisruptionBudget(StaticKind["PodDisruptionBudgetMutator"]):
    """A ``policy/v1`` PodDisruptionBudget: ready once applied, left alone by suspension.

    It is not unhealthy if it allows no disruption: that is the state of its pods, which their own kind reports.
    """

    gvk: GroupVersionKind = GroupVersionKind("policy", "v1", "PodDisruptionBudget")

    def create_mutator(self) -> PodDisruptionBudgetMutator:
        """Return a new mutator for the callback of one mutation."""
        return PodDisruptionBudgetMutator()


class PodDisruptionBudgetMutator(Mutator):
    """Records edits of a PodDisruptionBudget."""

    def edit_spec(self, edit: EditFunction[PodDisruptionBudgetSpecEditor] | None) -> None:
        """Record an edit of the spec."""
        self._edit(EditCategory.CONTENT, PodDisruptionBudgetSpecEditor, ("spec",), edit)
