"""The choice of a volume for a claim, and the written form of a binding. Pure.

A volume fits a claim by its class, size, access modes, volume mode and labels. A volume whose ``claimRef`` names the
claim comes first; then the one with the fewest access modes, and of those the smallest. The rules follow the volume
controller of kube-controller-manager v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby

from konverge._internal.kube import Object, is_deleting
from konverge._internal.kube.quantities import quantity_to_fraction
from konverge._internal.kube.selectors import LabelSelector
from konverge_cluster._internal.embedded.controllers.node_fit import matches_terms
from konverge_cluster._internal.embedded.storage_classes import get_class_name

__all__ = [
    "BIND_COMPLETED",
    "BOUND_BY_CONTROLLER",
    "SELECTED_NODE",
    "bind_volume",
    "find_mismatch",
    "find_volume",
    "find_volume_on_node",
    "get_annotations",
    "get_claim_reference",
    "get_phase",
    "is_bound_to",
    "is_fully_bound",
    "matches_volume_affinity",
    "with_annotations",
]

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def get_annotations(obj: Object) -> Mapping[str, str]:
    """Return the annotations of an object."""
    annotations: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return annotations


def with_annotations(obj: Object, annotations: Mapping[str, str]) -> Object:
    """Return the object with these annotations added."""
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**get_annotations(obj), **annotations}}}


def get_phase(obj: Object) -> str:
    """Return the phase of a claim or of a volume; empty if it has none yet."""
    return str((obj.get("status") or {}).get("phase") or "")


def get_claim_reference(volume: Object) -> Object | None:
    """Return the reference of a volume to its claim; None if there is none."""
    reference: Object | None = volume["spec"].get("claimRef")
    return reference


def is_bound_to(volume: Object, claim: Object) -> bool:
    """Return True if the volume names the claim; a reference without a UID is one that a user wrote."""
    reference, metadata = get_claim_reference(volume), claim["metadata"]
    if reference is None or reference.get("uid", metadata["uid"]) not in ("", metadata["uid"]):
        return False
    return (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])


def is_fully_bound(claim: Object) -> bool:
    """Return True if the volume controller has bound the claim."""
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in get_annotations(claim)


def bind_volume(volume: Object, claim: Object) -> Object:
    """Return the volume with its reference to the claim; the same object if it has that already."""
    reference, metadata = get_claim_reference(volume) or {}, claim["metadata"]
    was_bound = is_bound_to(volume, claim)
    bound = volume
    if not was_bound or reference.get("uid") != metadata["uid"]:
        written = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            **{name: metadata[name] for name in ("namespace", "name", "uid", "resourceVersion")},
        }
        bound = {**volume, "spec": {**volume["spec"], "claimRef": written}}
    if not was_bound and BOUND_BY_CONTROLLER not in get_annotations(volume):
        bound = with_annotations(bound, {BOUND_BY_CONTROLLER: "yes"})
    return bound


def find_mismatch(volume: Object, claim: Object) -> str:
    """Return why a claim cannot have the volume that it names; empty if it can."""
    if is_deleting(volume):
        return "the volume is marked for deletion"
    if quantity_to_fraction(_get_capacity(volume)) < quantity_to_fraction(_get_size(claim)):
        return "requested PV is too small"
    if get_class_name(volume) != get_class_name(claim):
        return "storageClassName does not match"
    if _get_attributes_class(volume) != _get_attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if _get_mode(volume) != _get_mode(claim):
        return "incompatible volumeMode"
    return "" if _has_access_modes(volume, claim) else "incompatible accessMode"


def find_volume(claim: Object, volumes: Iterable[Object], *, is_delayed: bool = False) -> Object | None:
    """Return the best volume for a claim; None if none fits.

    Args:
        claim: The claim, not yet bound.
        volumes: The volumes of the cluster.
        is_delayed: True if the class waits for a pod: only a volume that names the claim counts.
    """
    fitting = sorted((volume for volume in volumes if _has_access_modes(volume, claim)), key=_rank_modes)
    for _, group in groupby(fitting, key=_rank_modes):
        found = _find_smallest(claim, group, None, (), is_delayed=is_delayed)
        if found is not None:
            return found
    return None


def find_volume_on_node(
    claim: Object, volumes: Iterable[Object], node: Object, excluded: Collection[str]
) -> Object | None:
    """Return the best volume for a claim of a pod on a node, as the scheduler chooses it; None if none fits.

    Args:
        claim: The claim, not yet bound.
        volumes: The volumes of the cluster.
        node: The node.
        excluded: The names of the volumes for other claims of the pod.
    """
    return _find_smallest(claim, volumes, node, excluded, is_delayed=False)


def matches_volume_affinity(volume: Object, node: Object) -> bool:
    """Return True if a pod with the volume can run on the node."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or matches_terms(required.get("nodeSelectorTerms") or (), node)


def _find_smallest(
    claim: Object, volumes: Iterable[Object], node: Object | None, excluded: Collection[str], *, is_delayed: bool
) -> Object | None:
    size = quantity_to_fraction(_get_size(claim))
    selector = LabelSelector.from_object(claim["spec"].get("selector"))
    candidates = []
    for volume in volumes:
        capacity = quantity_to_fraction(_get_capacity(volume))
        is_prebound = is_bound_to(volume, claim)
        if volume["metadata"]["name"] in excluded or (get_claim_reference(volume) is not None and not is_prebound):
            continue
        if capacity < size or _get_mode(volume) != _get_mode(claim) or is_deleting(volume):
            continue
        if _get_attributes_class(volume) != _get_attributes_class(claim):
            continue
        fits_node = node is None or matches_volume_affinity(volume, node)
        if is_prebound:
            return volume if fits_node else None
        if is_delayed or get_phase(volume) != "Available" or not fits_node:
            continue
        if selector is not None and not selector.matches(volume["metadata"].get("labels") or {}):
            continue
        if get_class_name(volume) == get_class_name(claim) and _has_access_modes(volume, claim):
            candidates.append((capacity, volume))
    return min(candidates, key=lambda candidate: candidate[0], default=(0, None))[1]


def _get_capacity(volume: Object) -> str:
    return str((volume["spec"].get("capacity") or {}).get("storage", "0"))


def _get_size(claim: Object) -> str:
    return str(claim["spec"]["resources"]["requests"]["storage"])


def _get_mode(obj: Object) -> str:
    return str(obj["spec"].get("volumeMode") or "Filesystem")


def _get_attributes_class(obj: Object) -> str:
    return str(obj["spec"].get("volumeAttributesClassName") or "")


def _has_access_modes(volume: Object, claim: Object) -> bool:
    return set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())


def _rank_modes(volume: Object) -> tuple[int, list[str]]:
    modes = sorted(set(volume["spec"].get("accessModes") or ()))
    return len(modes), modes
