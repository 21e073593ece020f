"""PersistentVolumeClaim: an integration, because a provisioner outside the component creates its volume."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import EditCategory, EditFunction, Mutator, PersistentVolumeClaimSpecEditor
from konverge._internal.primitives.field_access import read_text
from konverge._internal.primitives.kind_categories import IntegrationKind
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)

__all__ = ["PersistentVolumeClaim", "PersistentVolumeClaimMutator"]

_BOUND = "PersistentVolumeClaim is bound"
_LOST = "PersistentVolumeClaim has lost its volume"


class PersistentVolumeClaim(IntegrationKind["PersistentVolumeClaimMutator"]):
    """A core ``v1`` PersistentVolumeClaim. Suspension keeps it and its data.

    A storage class may wait for the first pod before it binds a claim. The claim is pending until then, which does not
    block later resources. A guard that waits for ``Bound`` would wait forever.
    """

    gvk: GroupVersionKind = GroupVersionKind("", "v1", "PersistentVolumeClaim")

    def create_mutator(self) -> PersistentVolumeClaimMutator:
        """Return a new mutator for the callback of one mutation."""
        return PersistentVolumeClaimMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Operational when it is bound; it is failing if its volume is lost."""
        match read_text(live, "status", "phase"):
            case "Bound":
                return Convergence(ConvergingStatus.OPERATIONAL, _BOUND)
            case "Lost":
                return Convergence(ConvergingStatus.OPERATION_FAILING, _LOST)
            case phase:
                return Convergence(ConvergingStatus.OPERATION_PENDING, _describe_pending(phase))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down if its volume is lost, and Degraded while it has none yet."""
        match read_text(live, "status", "phase"):
            case "Bound":
                return Grace(GraceStatus.HEALTHY, _BOUND)
            case "Lost":
                return Grace(GraceStatus.DOWN, _LOST)
            case phase:
                return Grace(GraceStatus.DEGRADED, _describe_pending(phase))

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "PersistentVolumeClaim stays in place while suspended")


def _describe_pending(phase: str) -> str:
    return f"Waiting for PersistentVolumeClaim to be bound (phase {phase or 'unknown'})"


class PersistentVolumeClaimMutator(Mutator):
    """Records edits of a PersistentVolumeClaim."""

    def edit_persistent_volume_claim_spec(self, edit: EditFunction[PersistentVolumeClaimSpecEditor] | None) -> None:
        """Record an edit of the spec."""
        self._edit(EditCategory.CONTENT, PersistentVolumeClaimSpecEditor, ("spec",), edit)

    def set_storage_request(self, storage: str) -> None:
        """Set the requested storage, for example ``10Gi``."""
        self.edit_persistent_volume_claim_spec(lambda spec: spec.set_storage_request(storage))
