"""Editor of the spec of a PersistentVolumeClaim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import ensure_mapping

if TYPE_CHECKING:
    from konverge.types import core_v1, meta_v1

__all__ = ["PersistentVolumeClaimSpecEditor", "PersistentVolumeClaimSpecFields"]


class PersistentVolumeClaimSpecFields(TypedDict, total=False):
    """Fields of a ``v1`` PersistentVolumeClaimSpec."""

    accessModes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]] | None
    dataSource: core_v1.TypedLocalObjectReference | None
    dataSourceRef: core_v1.TypedObjectReference | None
    resources: core_v1.VolumeResourceRequirements | None
    selector: meta_v1.LabelSelector | None
    storageClassName: str | None
    volumeAttributesClassName: str | None
    volumeMode: Literal["Block", "Filesystem"] | None
    volumeName: str | None


class PersistentVolumeClaimSpecEditor(Editor):
    """Edits a PersistentVolumeClaim's ``spec``.

    After creation the spec is immutable, except the storage request of a bound claim.
    """

    __slots__ = ()

    def set(self, **fields: Unpack[PersistentVolumeClaimSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field.

        An empty ``storageClassName`` requests a volume without a class; an absent one requests the default class.

        ``volumeName`` requests one specific PersistentVolume.
        """
        self._set_fields(fields, PersistentVolumeClaimSpecFields.__optional_keys__)

    def set_storage_request(self, storage: str) -> None:
        """Set the requested storage, for example ``10Gi``; the API permits a claim to grow, never to shrink."""
        ensure_mapping(self._fields, "resources", "requests")["storage"] = storage
