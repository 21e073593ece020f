"""Editor of the spec of a PersistentVolume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import ensure_mapping

if TYPE_CHECKING:
    from konverge.types import core_v1, meta_v1

__all__ = ["PersistentVolumeSpecEditor", "PersistentVolumeSpecFields"]


class PersistentVolumeSpecFields(TypedDict, total=False):
    """Fields of a ``v1`` PersistentVolumeSpec."""

    accessModes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]] | None
    awsElasticBlockStore: core_v1.AWSElasticBlockStoreVolumeSource | None
    azureDisk: core_v1.AzureDiskVolumeSource | None
    azureFile: core_v1.AzureFilePersistentVolumeSource | None
    capacity: dict[str, meta_v1.Quantity] | None
    cephfs: core_v1.CephFSPersistentVolumeSource | None
    cinder: core_v1.CinderPersistentVolumeSource | None
    claimRef: core_v1.ObjectReference | None
    csi: core_v1.CSIPersistentVolumeSource | None
    fc: core_v1.FCVolumeSource | None
    flexVolume: core_v1.FlexPersistentVolumeSource | None
    flocker: core_v1.FlockerVolumeSource | None
    gcePersistentDisk: core_v1.GCEPersistentDiskVolumeSource | None
    glusterfs: core_v1.GlusterfsPersistentVolumeSource | None
    hostPath: core_v1.HostPathVolumeSource | None
    iscsi: core_v1.ISCSIPersistentVolumeSource | None
    local: core_v1.LocalVolumeSource | None
    mountOptions: list[str] | None
    nfs: core_v1.NFSVolumeSource | None
    nodeAffinity: core_v1.VolumeNodeAffinity | None
    persistentVolumeReclaimPolicy: Literal["Delete", "Recycle", "Retain"] | None
    photonPersistentDisk: core_v1.PhotonPersistentDiskVolumeSource | None
    portworxVolume: core_v1.PortworxVolumeSource | None
    quobyte: core_v1.QuobyteVolumeSource | None
    rbd: core_v1.RBDPersistentVolumeSource | None
    scaleIO: core_v1.ScaleIOPersistentVolumeSource | None
    storageClassName: str | None
    storageos: core_v1.StorageOSPersistentVolumeSource | None
    volumeAttributesClassName: str | None
    volumeMode: Literal["Block", "Filesystem"] | None
    vsphereVolume: core_v1.VsphereVirtualDiskVolumeSource | None


class PersistentVolumeSpecEditor(Editor):
    """Edits the ``spec`` of a PersistentVolume."""

    __slots__ = ()

    def set(self, **fields: Unpack[PersistentVolumeSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field.

        The volume source (``csi``, ``nfs``, …) and ``volumeMode`` are immutable after creation.
        """
        self._set_fields(fields, PersistentVolumeSpecFields.__optional_keys__)

    def set_capacity(self, storage: str) -> None:
        """Set the volume's storage capacity, for example ``10Gi``."""
        ensure_mapping(self._fields, "capacity")["storage"] = storage
