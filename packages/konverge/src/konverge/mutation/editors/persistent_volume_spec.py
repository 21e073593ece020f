"""The spec of a PersistentVolume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import copy_json, ensure_mapping

__all__ = ["PersistentVolumeSpecEditor"]


class PersistentVolumeSpecEditor(Editor):
    """Edits a PersistentVolume's ``spec``. Its source (``csi``, ``nfs``, …) is immutable once created."""

    __slots__ = ()

    def set_capacity(self, storage: str) -> None:
        """Set how much it holds, for example ``10Gi``."""
        ensure_mapping(self._fields, "capacity")["storage"] = storage

    def set_access_modes(self, modes: Iterable[str]) -> None:
        """Replace how it can be mounted: ``ReadWriteOnce``, ``ReadOnlyMany``, ``ReadWriteMany`` and so on."""
        self._fields["accessModes"] = list(modes)

    def set_persistent_volume_reclaim_policy(self, policy: str) -> None:
        """Set what becomes of it when its claim is gone: ``Retain`` or ``Delete``."""
        self._fields["persistentVolumeReclaimPolicy"] = policy

    def set_storage_class_name(self, name: str) -> None:
        """Set the storage class; claims of another do not get it."""
        self._fields["storageClassName"] = name

    def set_mount_options(self, options: Iterable[str]) -> None:
        """Replace the options that it is mounted with."""
        self._fields["mountOptions"] = list(options)

    def set_volume_mode(self, mode: str) -> None:
        """``Filesystem`` or ``Block``; immutable once created."""
        self._fields["volumeMode"] = mode

    def set_node_affinity(self, affinity: Mapping[str, Any]) -> None:
        """Replace from which nodes it can be reached."""
        self._fields["nodeAffinity"] = copy_json(affinity)
