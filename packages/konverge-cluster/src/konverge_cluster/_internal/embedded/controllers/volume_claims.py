"""The simulated volume controller for claims: it binds each claim to a volume that fits, or asks for a new one.

The steps and their order are those of kube-controller-manager v1.36: reserve the volume, report it as bound, name it in
the claim, report the claim as bound. After a failure in between, the next reconcile continues from what is stored.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from konverge._internal.kube import Object, ObjectKey
from konverge_cluster._internal.embedded.controllers.builtin_kinds import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
)
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.volume_binding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    bind_volume,
    find_mismatch,
    find_volume,
    get_annotations,
    get_claim_reference,
    get_phase,
    is_bound_to,
    with_annotations,
)
from konverge_cluster._internal.embedded.storage_classes import find_default_class, get_class_name, has_class

__all__ = ["PROVISIONER_ANNOTATION", "VolumeClaimController"]

PROVISIONER_ANNOTATION = "volume.kubernetes.io/storage-provisioner"
_PROVISIONER_ANNOTATIONS = (PROVISIONER_ANNOTATION, "volume.beta.kubernetes.io/storage-provisioner")
# Provisioners with this prefix were parts of Kubernetes: a class that names one gets no volumes from others.
_BUILTIN_PREFIX = "kubernetes.io/"


class VolumeClaimController:
    """The controller. Its keys are those of PersistentVolumeClaims."""

    name = "persistentvolume-controller"
    watches = frozenset({PERSISTENT_VOLUME_CLAIM.group_kind, PERSISTENT_VOLUME.group_kind, STORAGE_CLASS.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a claim, the claim of a volume, or all waiting claims for a free volume or a class."""
        if notice.kind == PERSISTENT_VOLUME_CLAIM.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        if notice.kind == PERSISTENT_VOLUME.group_kind:
            reference = get_claim_reference(notice.new)
            if reference is not None:
                return (ObjectKey(str(reference.get("namespace", "")), str(reference.get("name", ""))),)
            if notice.type == "DELETED":
                return ()
        claims = self._view.list_kind(PERSISTENT_VOLUME_CLAIM)
        return [ObjectKey.of(claim) for claim in claims if BIND_COMPLETED not in get_annotations(claim)]

    def reconcile(self, key: Hashable) -> float | None:
        """Bind the claim, report that it has lost its volume, or ask for a new volume."""
        assert isinstance(key, ObjectKey)
        claim = self._view.get(PERSISTENT_VOLUME_CLAIM, key)
        if claim is None:
            return None
        if BIND_COMPLETED in get_annotations(claim):
            self._check_bound(claim)
        elif claim["spec"].get("volumeName"):
            self._bind_named(claim)
        else:
            self._bind_unnamed(claim)
        return None

    def _check_bound(self, claim: Object) -> None:
        volume = self._find_named(claim)
        reference = None if volume is None else get_claim_reference(volume)
        if volume is None or (reference is not None and reference.get("uid") != claim["metadata"]["uid"]):
            self._report(claim, "Lost", None)
        else:
            self._bind(volume, claim)

    def _bind_named(self, claim: Object) -> None:
        volume = self._find_named(claim)
        if volume is not None and (
            is_bound_to(volume, claim) or (get_claim_reference(volume) is None and not find_mismatch(volume, claim))
        ):
            self._bind(volume, claim)
        else:
            self._report(claim, "Pending", None)

    def _bind_unnamed(self, claim: Object) -> None:
        storage_class = self._view.get(STORAGE_CLASS, ObjectKey("", get_class_name(claim)))
        is_delayed = storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        volume = find_volume(claim, self._view.list_kind(PERSISTENT_VOLUME), is_delayed=is_delayed)
        if volume is not None:
            self._bind(volume, claim)
        elif not has_class(claim) and self._assign_default_class(claim):
            return
        elif get_class_name(claim) and not (is_delayed and SELECTED_NODE not in get_annotations(claim)):
            self._request_volume(claim, storage_class)
        else:
            self._report(claim, "Pending", None)

    def _assign_default_class(self, claim: Object) -> bool:
        storage_class = find_default_class(self._view.list_kind(STORAGE_CLASS))
        if storage_class is None:
            return False
        name = storage_class["metadata"]["name"]
        self._writer.update({**claim, "spec": {**claim["spec"], "storageClassName": name}})
        return True

    def _request_volume(self, claim: Object, storage_class: Object | None) -> None:
        """Name the provisioner in the claim, which tells it to make a volume."""
        provisioner = "" if storage_class is None else str(storage_class.get("provisioner", ""))
        if not provisioner or provisioner.startswith(_BUILTIN_PREFIX):
            return
        wanted: dict[str, str] = dict.fromkeys(_PROVISIONER_ANNOTATIONS, provisioner)
        if not wanted.items() <= get_annotations(claim).items():
            self._writer.update(with_annotations(claim, wanted))

    def _find_named(self, claim: Object) -> Object | None:
        name = claim["spec"].get("volumeName")
        return self._view.get(PERSISTENT_VOLUME, ObjectKey("", name)) if name else None

    def _bind(self, volume: Object, claim: Object) -> None:
        bound = bind_volume(volume, claim)
        if bound is not volume:
            volume = self._writer.update(bound)
        if get_phase(volume) != "Bound":
            volume = self._writer.update_status(volume, {**(volume.get("status") or {}), "phase": "Bound"})
        annotations = {BIND_COMPLETED: "yes"}
        name = volume["metadata"]["name"]
        if claim["spec"].get("volumeName") != name:
            annotations[BOUND_BY_CONTROLLER] = "yes"
        if claim["spec"].get("volumeName") != name or BIND_COMPLETED not in get_annotations(claim):
            named = {**claim, "spec": {**claim["spec"], "volumeName": name}}
            claim = self._writer.update(with_annotations(named, annotations))
        self._report(claim, "Bound", volume)

    def _report(self, claim: Object, phase: str, volume: Object | None) -> None:
        """Write the phase of the claim, and the modes and size of its volume; the size only when it becomes bound."""
        live = claim.get("status") or {}
        status = {name: value for name, value in live.items() if name not in ("phase", "accessModes", "capacity")}
        status["phase"] = phase
        if volume is not None:
            status["accessModes"] = volume["spec"]["accessModes"]
            was_bound = live.get("phase") == phase
            status["capacity"] = live.get("capacity") if was_bound else volume["spec"].get("capacity")
        status = {name: value for name, value in status.items() if value is not None}
        if status != live:
            self._writer.update_status(claim, status)
