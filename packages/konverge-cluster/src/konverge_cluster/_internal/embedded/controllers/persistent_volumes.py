"""The simulated volume controller for volumes: their phases, and what happens when a claim is gone."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

from konverge._internal.kube import Object, ObjectKey
from konverge_cluster._internal.embedded.controllers.builtin_kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.volume_binding import (
    BOUND_BY_CONTROLLER,
    get_annotations,
    get_claim_reference,
    get_phase,
)
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = ["PROVISIONED_BY", "PersistentVolumeController"]

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_RECYCLED_SOURCES = frozenset({"hostPath", "nfs"})
# The sources that kube-controller-manager knows but cannot delete.
_KEPT_SOURCES = frozenset({"fc", "iscsi", "local", "nfs"})


class PersistentVolumeController:
    """The controller. Its keys are those of PersistentVolumes."""

    name = "persistentvolume-phase-controller"
    watches = frozenset({PERSISTENT_VOLUME.group_kind, PERSISTENT_VOLUME_CLAIM.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a volume, or those that name a claim which is deleted or has another volume now."""
        if notice.kind == PERSISTENT_VOLUME.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        before = None if notice.old is None else notice.old["spec"].get("volumeName")
        if notice.type == "MODIFIED" and before == notice.new["spec"].get("volumeName"):
            return ()
        return [
            ObjectKey.of(volume)
            for volume in self._view.list_kind(PERSISTENT_VOLUME)
            if _get_claim_key(volume) == notice.key
        ]

    def reconcile(self, key: Hashable) -> float | None:
        """Set the phase of the volume; reclaim it when its claim is gone."""
        assert isinstance(key, ObjectKey)
        volume = self._view.get(PERSISTENT_VOLUME, key)
        if volume is None:
            return None
        reference = get_claim_reference(volume)
        if reference is None or not reference.get("uid"):
            self._set_phase(volume, "Available")
            return None
        claim_key = _get_claim_key(volume)
        claim = None if claim_key is None else self._view.get(PERSISTENT_VOLUME_CLAIM, claim_key)
        if claim is None or claim["metadata"]["uid"] != reference["uid"]:
            self._release(volume)
            return None
        bound_name = claim["spec"].get("volumeName")
        if bound_name == key.name:
            self._set_phase(volume, "Bound")
        elif bound_name and PROVISIONED_BY in get_annotations(volume) and _get_policy(volume) == "Delete":
            self._release(volume)
        elif bound_name:
            self._unbind(volume)
        return None  # without a name in the claim, the controller of claims goes on

    def _release(self, volume: Object) -> None:
        if get_phase(volume) not in ("Released", "Failed"):
            volume = self._set_phase(volume, "Released")
        source = next(iter(_RECYCLED_SOURCES & volume["spec"].keys()), "")
        match _get_policy(volume):
            case "Recycle" if source:
                self._unbind(volume)
            case "Recycle":
                self._set_phase(volume, "Failed", "No recycler plugin found for the volume!")
            case "Delete" if not _is_external(volume):
                problem = _find_deletion_problem(volume)
                if problem:
                    self._set_phase(volume, "Failed", problem)
                elif "deletionTimestamp" not in volume["metadata"]:
                    self._writer.delete(volume)
            case _:
                return

    def _unbind(self, volume: Object) -> None:
        """Free the volume; one that a user has reserved stays reserved."""
        spec, metadata = dict(volume["spec"]), dict(volume["metadata"])
        if BOUND_BY_CONTROLLER in get_annotations(volume):
            del spec["claimRef"]
            metadata["annotations"] = {
                name: value for name, value in get_annotations(volume).items() if name != BOUND_BY_CONTROLLER
            }
        else:
            spec["claimRef"] = {name: value for name, value in spec["claimRef"].items() if name != "uid"}
        self._set_phase(self._writer.update({**volume, "metadata": metadata, "spec": spec}), "Available")

    def _set_phase(self, volume: Object, phase: str, message: str = "") -> Object:
        live = volume.get("status") or {}
        if live.get("phase") == phase:
            return volume
        status = {**{name: value for name, value in live.items() if name != "message"}, "phase": phase}
        if message:
            status["message"] = message
        return self._writer.update_status(volume, status)


def _get_claim_key(volume: Object) -> ObjectKey | None:
    reference = get_claim_reference(volume)
    if reference is None:
        return None
    return ObjectKey(str(reference.get("namespace", "")), str(reference.get("name", "")))


def _get_policy(volume: Object) -> str:
    return str(volume["spec"].get("persistentVolumeReclaimPolicy") or "Retain")


def _is_external(volume: Object) -> bool:
    """Return True if a program outside of Kubernetes deletes the volume."""
    provisioner = get_annotations(volume).get(PROVISIONED_BY, "")
    return "csi" in volume["spec"] or bool(provisioner and not provisioner.startswith("kubernetes.io/"))


def _find_deletion_problem(volume: Object) -> str:
    """Return the reason why kube-controller-manager does not delete the volume; empty if it does."""
    path = (volume["spec"].get("hostPath") or {}).get("path")
    if path is not None:
        is_temporary = re.fullmatch("/tmp/.+", path) is not None
        return "" if is_temporary else f"host_path deleter only supports /tmp/.+ but received provided {path}"
    why = "no deletable volume plugin matched" if _KEPT_SOURCES & volume["spec"].keys() else "no volume plugin matched"
    return f"error getting deleter volume plugin for volume {quote(volume['metadata']['name'])}: {why}"
