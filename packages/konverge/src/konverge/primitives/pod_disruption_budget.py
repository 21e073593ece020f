"""PodDisruptionBudget: static."""

from __future__ import annotations

from konverge.kube import GroupVersionKind
from konverge.mutation import EditCategory, EditFunction, Mutator, PodDisruptionBudgetSpecEditor
from konverge.primitives.kind_categories import StaticKind

__all__ = ["PodDisruptionBudget", "PodDisruptionBudgetMutator"]


class PodDisruptionBudget(StaticKind["PodDisruptionBudgetMutator"]):
    """A ``policy/v1`` PodDisruptionBudget: ready once applied, left alone by suspension.

    It does not count as unhealthy when it allows no disruption: that is the state of its pods, which their own kind
    reports.
    """

    gvk = GroupVersionKind("policy", "v1", "PodDisruptionBudget")

    def create_mutator(self) -> PodDisruptionBudgetMutator:
        """What the callbacks of this kind's mutations get."""
        return PodDisruptionBudgetMutator()


class PodDisruptionBudgetMutator(Mutator):
    """Records edits of a PodDisruptionBudget."""

    def edit_spec(self, edit: EditFunction[PodDisruptionBudgetSpecEditor] | None) -> None:
        """Edit the spec."""
        self._edit(EditCategory.CONTENT, PodDisruptionBudgetSpecEditor, ("spec",), edit)
