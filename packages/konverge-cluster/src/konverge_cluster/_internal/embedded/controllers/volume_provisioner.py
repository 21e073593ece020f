"""The simulated storage behind the default class: it makes, expands and deletes volumes.

A real cluster gets it from outside, as a driver. A class of any name can use it by its provisioner.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from konverge._internal.kube import Object, ObjectKey, is_deleting
from konverge._internal.kube.quantities import quantity_to_fraction
from konverge_cluster._internal.embedded.controllers.builtin_kinds import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
)
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.persistent_volumes import PROVISIONED_BY
from konverge_cluster._internal.embedded.controllers.volume_binding import (
    bind_volume,
    get_annotations,
    get_claim_reference,
    get_phase,
    is_fully_bound,
)
from konverge_cluster._internal.embedded.controllers.volume_claims import PROVISIONER_ANNOTATION
from konverge_cluster._internal.embedded.storage_classes import (
    DEFAULT_CLASS_ANNOTATIONS,
    PROVISIONER,
    get_class_name,
)

__all__ = ["VolumeProvisioner", "build_default_class"]


def build_default_class() -> Object:
    """Return the class of claims that name none."""
    return {
        "apiVersion": STORAGE_CLASS.api_version,
        "kind": STORAGE_CLASS.kind,
        "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS_ANNOTATIONS[0]: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": True,
    }


class VolumeProvisioner:
    """The controller. Its keys are those of claims, and those of volumes, which have no namespace."""

    name = "volume-provisioner"
    watches = frozenset({PERSISTENT_VOLUME_CLAIM.group_kind, PERSISTENT_VOLUME.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a claim of this provisioner, or of a released volume that it made."""
        if notice.type == "DELETED":
            return ()
        if notice.kind == PERSISTENT_VOLUME_CLAIM.group_kind:
            return (notice.key,) if get_annotations(notice.new).get(PROVISIONER_ANNOTATION) == PROVISIONER else ()
        return (notice.key,) if _is_own(notice.new) and get_phase(notice.new) == "Released" else ()

    def reconcile(self, key: Hashable) -> float | None:
        """Make or expand the volume of a claim; delete a volume whose claim is gone."""
        assert isinstance(key, ObjectKey)
        if not key.namespace:
            volume = self._view.get(PERSISTENT_VOLUME, key)
            if volume is not None and get_phase(volume) == "Released" and not is_deleting(volume):
                self._reclaim(volume)
            return None
        claim = self._view.get(PERSISTENT_VOLUME_CLAIM, key)
        if claim is None:
            return None
        if is_fully_bound(claim):
            self._expand(claim)
        elif not claim["spec"].get("volumeName") and claim["spec"].get("selector") is None:
            self._provision(claim)
        return None

    def _reclaim(self, volume: Object) -> None:
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._writer.delete(volume)

    def _provision(self, claim: Object) -> None:
        storage_class = self._view.get(STORAGE_CLASS, ObjectKey("", get_class_name(claim)))
        name = f"pvc-{claim['metadata']['uid']}"
        if storage_class is None or self._view.get(PERSISTENT_VOLUME, ObjectKey("", name)) is not None:
            return
        spec = {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "csi": {"driver": PROVISIONER, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
        }
        if storage_class.get("mountOptions"):
            spec["mountOptions"] = storage_class["mountOptions"]
        volume = {
            "apiVersion": PERSISTENT_VOLUME.api_version,
            "kind": PERSISTENT_VOLUME.kind,
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
            "spec": spec,
        }
        reference = bind_volume(volume, claim)["spec"]["claimRef"]
        self._writer.create({**volume, "spec": {**spec, "claimRef": reference}})

    def _expand(self, claim: Object) -> None:
        volume = self._view.get(PERSISTENT_VOLUME, ObjectKey("", claim["spec"]["volumeName"]))
        status = claim.get("status") or {}
        size = claim["spec"]["resources"]["requests"]["storage"]
        if volume is None or not _is_own(volume) or status.get("phase") != "Bound":
            return
        if _is_larger(size, volume["spec"]["capacity"]["storage"]):
            self._writer.update({**volume, "spec": {**volume["spec"], "capacity": {"storage": size}}})
        if _is_larger(size, (status.get("capacity") or {}).get("storage", "0")):
            self._writer.update_status(claim, {**status, "capacity": {"storage": size}})


def _is_own(volume: Object) -> bool:
    is_reserved = get_claim_reference(volume) is not None
    return is_reserved and get_annotations(volume).get(PROVISIONED_BY) == PROVISIONER


def _is_larger(one: str, other: str) -> bool:
    return quantity_to_fraction(one) > quantity_to_fraction(other)
