"""The simulated volume controllers: each claim is bound at once, and a claim in use is not deleted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from konverge._internal.kube import Object, ObjectKey, is_deleting
from konverge_cluster._internal.embedded.controllers.builtin_kinds import PERSISTENT_VOLUME_CLAIM, POD
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.pod_state import is_finished

__all__ = ["VolumeClaimController"]

_PROTECTION = "kubernetes.io/pvc-protection"
_BOUND_ANNOTATIONS = {
    "pv.kubernetes.io/bind-completed": "yes",
    "pv.kubernetes.io/bound-by-controller": "yes",
}


class VolumeClaimController:
    """The controller. Its keys are those of PersistentVolumeClaims. The volumes have names but are never created."""

    name = "persistentvolume-controller"
    watches = frozenset({PERSISTENT_VOLUME_CLAIM.group_kind, POD.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a claim, or the claims of a pod that is deleted or finished."""
        if notice.kind == PERSISTENT_VOLUME_CLAIM.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        if notice.type != "DELETED" and not is_finished(notice.new):
            return ()
        return [ObjectKey(notice.key.namespace, name) for name in _list_claim_names(notice.new)]

    def reconcile(self, key: Hashable) -> float | None:
        """Bind a new claim; remove the finalizer of a deleted claim when no pod uses it."""
        assert isinstance(key, ObjectKey)
        claim = self._view.get(PERSISTENT_VOLUME_CLAIM, key)
        if claim is None:
            return None
        metadata = claim["metadata"]
        if is_deleting(claim):
            finalizers = metadata.get("finalizers") or []
            if _PROTECTION in finalizers and not self._is_used(key):
                other_finalizers = [entry for entry in finalizers if entry != _PROTECTION]
                self._writer.update({**claim, "metadata": {**metadata, "finalizers": other_finalizers}})
            return None
        if (claim.get("status") or {}).get("phase") == "Bound":
            return None
        if not claim["spec"].get("volumeName"):
            annotations = {**(metadata.get("annotations") or {}), **_BOUND_ANNOTATIONS}
            spec = {**claim["spec"], "volumeName": f"pvc-{metadata['uid']}"}
            claim = self._writer.update({**claim, "metadata": {**metadata, "annotations": annotations}, "spec": spec})
        capacity = {"storage": claim["spec"]["resources"]["requests"]["storage"]}
        status = {"phase": "Bound", "accessModes": claim["spec"]["accessModes"], "capacity": capacity}
        self._writer.update_status(claim, status)
        return None

    def _is_used(self, key: ObjectKey) -> bool:
        pods = self._view.list_kind(POD, key.namespace)
        return any(key.name in _list_claim_names(pod) and not is_finished(pod) for pod in pods)


def _list_claim_names(pod: Object) -> list[str]:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return [name for volume in volumes if (name := (volume.get("persistentVolumeClaim") or {}).get("claimName"))]
