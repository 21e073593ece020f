"""Editor of the spec of a StatefulSet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor

if TYPE_CHECKING:
    from konverge.types import apps_v1, meta_v1

__all__ = ["StatefulSetSpecEditor", "StatefulSetSpecFields"]


class StatefulSetSpecFields(TypedDict, total=False):
    """Fields of an ``apps/v1`` StatefulSetSpec outside the pod template and the volume claim templates."""

    minReadySeconds: int | None
    ordinals: apps_v1.StatefulSetOrdinals | None
    persistentVolumeClaimRetentionPolicy: apps_v1.StatefulSetPersistentVolumeClaimRetentionPolicy | None
    podManagementPolicy: Literal["OrderedReady", "Parallel"] | None
    replicas: int | None
    revisionHistoryLimit: int | None
    selector: meta_v1.LabelSelector
    serviceName: str | None
    updateStrategy: apps_v1.StatefulSetUpdateStrategy | None


class StatefulSetSpecEditor(Editor):
    """Edits a StatefulSet's ``spec`` outside the pod template and the volume claim templates."""

    __slots__ = ()

    def set(self, **fields: Unpack[StatefulSetSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field.

        ``serviceName`` and ``podManagementPolicy`` are immutable after creation.

        The server rejects a change of ``updateStrategy`` to ``OnDelete`` on a live object whose ``rollingUpdate`` it
        defaulted itself. No apply can remove a field that it does not own: apply an explicit ``rollingUpdate`` first.
        """
        self._set_fields(fields, StatefulSetSpecFields.__optional_keys__)
