"""Editor of the spec of a PodDisruptionBudget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor

if TYPE_CHECKING:
    from konverge.types import meta_v1

__all__ = ["PodDisruptionBudgetSpecEditor", "PodDisruptionBudgetSpecFields"]


class PodDisruptionBudgetSpecFields(TypedDict, total=False):
    """Fields of a ``policy/v1`` PodDisruptionBudgetSpec."""

    maxUnavailable: int | str | None
    minAvailable: int | str | None
    selector: meta_v1.LabelSelector | None
    unhealthyPodEvictionPolicy: Literal["AlwaysAllow", "IfHealthyBudget"] | None


class PodDisruptionBudgetSpecEditor(Editor):
    """Edits the ``spec`` of a PodDisruptionBudget."""

    __slots__ = ()

    def set(self, **fields: Unpack[PodDisruptionBudgetSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field.

        The API accepts either ``minAvailable`` or ``maxUnavailable``, each a number or a percentage such as ``50%``. To
        change from one to the other, set the first to None: ``set(minAvailable=None, maxUnavailable=1)``.

        An empty ``selector`` matches all pods of the namespace.
        """
        self._set_fields(fields, PodDisruptionBudgetSpecFields.__optional_keys__)
