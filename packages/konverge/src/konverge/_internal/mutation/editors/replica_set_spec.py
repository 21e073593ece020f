"""Editor of the spec of a ReplicaSet."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor

if TYPE_CHECKING:
    from konverge.types import meta_v1

__all__ = ["ReplicaSetSpecEditor", "ReplicaSetSpecFields"]


class ReplicaSetSpecFields(TypedDict, total=False):
    """Fields of an ``apps/v1`` ReplicaSetSpec outside the pod template."""

    minReadySeconds: int | None
    replicas: int | None
    selector: meta_v1.LabelSelector


class ReplicaSetSpecEditor(Editor):
    """Edits a ReplicaSet's ``spec`` outside the pod template."""

    __slots__ = ()

    def set(self, **fields: Unpack[ReplicaSetSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field."""
        self._set_fields(fields, ReplicaSetSpecFields.__optional_keys__)
