"""The spec of a PersistentVolumeClaim."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import ensure_mapping

__all__ = ["PersistentVolumeClaimSpecEditor"]


class PersistentVolumeClaimSpecEditor(Editor):
    """Edits a PersistentVolumeClaim's ``spec``: once created immutable, but for the request of a bound claim."""

    __slots__ = ()

    def set_storage_request(self, storage: str) -> None:
        """Set how much is asked for, for example ``10Gi``; the API lets a claim grow, never shrink."""
        ensure_mapping(self._fields, "resources", "requests")["storage"] = storage

    def set_access_modes(self, modes: Iterable[str]) -> None:
        """Replace how the volume is mounted: ``ReadWriteOnce``, ``ReadOnlyMany``, ``ReadWriteMany`` and so on."""
        self._fields["accessModes"] = list(modes)

    def set_storage_class_name(self, name: str) -> None:
        """Set the storage class; an empty one asks for a volume that has none, an absent one for the default class."""
        self._fields["storageClassName"] = name

    def set_volume_mode(self, mode: str) -> None:
        """``Filesystem`` or ``Block``."""
        self._fields["volumeMode"] = mode

    def set_volume_name(self, name: str) -> None:
        """Ask for this very PersistentVolume."""
        self._fields["volumeName"] = name
