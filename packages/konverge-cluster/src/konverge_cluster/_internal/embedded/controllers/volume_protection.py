"""The simulated protection controllers: a claim stays while a pod uses it, a volume while it is bound."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, is_deleting
from konverge_cluster._internal.embedded.controllers.builtin_kinds import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
)
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.volume_binding import get_phase

__all__ = ["ClaimProtectionController", "VolumeProtectionController", "list_claim_names"]


def list_claim_names(pod: Object) -> list[str]:
    """Return the names of the claims that a pod names as its volumes."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return [name for volume in volumes if (name := (volume.get("persistentVolumeClaim") or {}).get("claimName"))]


class ClaimProtectionController:
    """The controller of claims, which are in use while a pod on a node names them. Its keys are those of claims."""

    name = "pvc-protection-controller"
    watches = frozenset({PERSISTENT_VOLUME_CLAIM.group_kind, POD.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a claim under deletion, or the claims of a deleted pod."""
        if notice.kind == PERSISTENT_VOLUME_CLAIM.group_kind:
            return (notice.key,) if notice.type != "DELETED" and is_deleting(notice.new) else ()
        if notice.type != "DELETED":
            return ()
        return [ObjectKey(notice.key.namespace, name) for name in list_claim_names(notice.new)]

    def reconcile(self, key: Hashable) -> float | None:
        """Release a deleted claim when no pod uses it."""
        assert isinstance(key, ObjectKey)
        pods = self._view.list_kind(POD, key.namespace)
        if not any(key.name in list_claim_names(pod) and pod["spec"].get("nodeName") for pod in pods):
            _release(self._view, self._writer, PERSISTENT_VOLUME_CLAIM, key, "kubernetes.io/pvc-protection")
        return None


class VolumeProtectionController:
    """The controller of volumes, which are in use while they are bound. Its keys are those of volumes."""

    name = "pv-protection-controller"
    watches = frozenset({PERSISTENT_VOLUME.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a volume under deletion."""
        return (notice.key,) if notice.type != "DELETED" and is_deleting(notice.new) else ()

    def reconcile(self, key: Hashable) -> float | None:
        """Release a deleted volume unless it is bound."""
        assert isinstance(key, ObjectKey)
        volume = self._view.get(PERSISTENT_VOLUME, key)
        if volume is not None and get_phase(volume) != "Bound":
            _release(self._view, self._writer, PERSISTENT_VOLUME, key, "kubernetes.io/pv-protection")
        return None


def _release(
    view: ClusterView, writer: ControllerClient, gvk: GroupVersionKind, key: ObjectKey, finalizer: str
) -> None:
    """Remove the finalizer from an object under deletion."""
    obj = view.get(gvk, key)
    if obj is None or not is_deleting(obj):
        return
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer in finalizers:
        others = [entry for entry in finalizers if entry != finalizer]
        writer.update({**obj, "metadata": {**obj["metadata"], "finalizers": others}})
