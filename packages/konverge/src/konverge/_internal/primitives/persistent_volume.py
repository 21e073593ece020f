"""PersistentVolume: an integration, because its storage is outside the cluster; cluster-scoped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import EditCategory, EditFunction, Mutator, PersistentVolumeSpecEditor
from konverge._internal.primitives.field_access import read_text
from konverge._internal.primitives.kind_categories import IntegrationKind
from konverge._internal.primitives.resource_protocol import Convergence, ConvergingStatus, Grace, GraceStatus, Operation

__all__ = ["PersistentVolume", "PersistentVolumeMutator"]


class PersistentVolume(IntegrationKind["PersistentVolumeMutator"]):
    """A core ``v1`` PersistentVolume. Suspension does not change it."""

    gvk: GroupVersionKind = GroupVersionKind("", "v1", "PersistentVolume")
    is_cluster_scoped = True

    def create_mutator(self) -> PersistentVolumeMutator:
        """Return a new mutator for the callback of one mutation."""
        return PersistentVolumeMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Operational when it is available or bound, and failing if its claim is gone or its reclaim failed."""
        match read_text(live, "status", "phase"):
            case "Available" | "Bound":
                return Convergence(ConvergingStatus.OPERATIONAL, _describe_phase(live))
            case "Released" | "Failed":
                return Convergence(ConvergingStatus.OPERATION_FAILING, _describe_phase(live))
            case _:
                return Convergence(ConvergingStatus.OPERATION_PENDING, _describe_phase(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down if no claim can use it any more, and Degraded while no claim can use it yet."""
        match read_text(live, "status", "phase"):
            case "Available" | "Bound":
                return Grace(GraceStatus.HEALTHY, _describe_phase(live))
            case "Released" | "Failed":
                return Grace(GraceStatus.DOWN, _describe_phase(live))
            case _:
                return Grace(GraceStatus.DEGRADED, _describe_phase(live))


def _describe_phase(live: Object) -> str:
    reason = f"PersistentVolume is {read_text(live, 'status', 'phase').lower() or 'in no phase yet'}"
    message = read_text(live, "status", "message")
    return f"{reason}: {message}" if message else reason


class PersistentVolumeMutator(Mutator):
    """Records edits of a PersistentVolume."""

    def edit_persistent_volume_spec(self, edit: EditFunction[PersistentVolumeSpecEditor] | None) -> None:
        """Record an edit of the spec."""
        self._edit(EditCategory.CONTENT, PersistentVolumeSpecEditor, ("spec",), edit)

    def set_storage_class_name(self, name: str) -> None:
        """Set the name of the storage class."""
        self.edit_persistent_volume_spec(lambda spec: spec.set(storageClassName=name))

    def set_reclaim_policy(self, policy: Literal["Delete", "Recycle", "Retain"]) -> None:
        """Set what happens to the volume after its claim is deleted."""
        self.edit_persistent_volume_spec(lambda spec: spec.set(persistentVolumeReclaimPolicy=policy))

    def set_mount_options(self, options: Iterable[str]) -> None:
        """Replace the mount options of the volume."""
        self.edit_persistent_volume_spec(lambda spec: spec.set(mountOptions=list(options)))
