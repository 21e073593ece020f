"""Editor of the spec of a DaemonSet."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor

if TYPE_CHECKING:
    from konverge.types import apps_v1, meta_v1

__all__ = ["DaemonSetSpecEditor", "DaemonSetSpecFields"]


class DaemonSetSpecFields(TypedDict, total=False):
    """Fields of an ``apps/v1`` DaemonSetSpec outside the pod template."""

    minReadySeconds: int | None
    revisionHistoryLimit: int | None
    selector: meta_v1.LabelSelector
    updateStrategy: apps_v1.DaemonSetUpdateStrategy | None


class DaemonSetSpecEditor(Editor):
    """Edits a DaemonSet's ``spec`` outside the pod template."""

    __slots__ = ()

    def set(self, **fields: Unpack[DaemonSetSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field."""
        self._set_fields(fields, DaemonSetSpecFields.__optional_keys__)
