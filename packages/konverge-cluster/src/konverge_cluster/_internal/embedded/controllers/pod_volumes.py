"""The volumes of a pod that is not scheduled yet: what it waits for, and what the scheduler does about that. Pure.

A class with the binding mode ``WaitForFirstConsumer`` leaves the choice of a volume to the scheduler. The texts are
those of the scheduler's plug-in VolumeBinding (v1.36).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from konverge._internal.kube import Object, is_deleting
from konverge_cluster._internal.embedded.controllers.volume_binding import (
    SELECTED_NODE,
    bind_volume,
    find_volume_on_node,
    get_annotations,
    get_phase,
    is_bound_to,
    is_fully_bound,
    matches_volume_affinity,
)
from konverge_cluster._internal.embedded.storage_classes import get_class_name
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = ["PodVolumes", "find_claim_problem", "plan_volumes"]

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """The plan for the volumes of one pod on the node.

    Attributes:
        obstacle: Why the pod cannot run on the node; empty if it can.
        reserved: The volumes with their references to the claims that get them, to be written.
        provisioned: The claims that need the name of the node, so that volumes are made for them.
        is_waiting: True while a claim of the pod is not bound.
    """

    obstacle: str = ""
    reserved: tuple[Object, ...] = ()
    provisioned: tuple[Object, ...] = ()
    is_waiting: bool = False


def find_claim_problem(claims: Mapping[str, Object | None], classes: Mapping[str, Object]) -> str:
    """Return the reason why no node can run a pod with these claims; empty if there is none.

    Args:
        claims: The claims of the pod by name; None for one that does not exist.
        classes: The storage classes by name.
    """
    for name, claim in claims.items():
        if claim is None:
            return f"persistentvolumeclaim {quote(name)} not found"
        if get_phase(claim) == "Lost":
            volume = claim["spec"].get("volumeName", "")
            return f"persistentvolumeclaim {quote(name)} bound to non-existent persistentvolume {quote(volume)}"
        if is_deleting(claim):
            return f"persistentvolumeclaim {quote(name)} is being deleted"
    for claim in claims.values():
        if claim is not None and not is_fully_bound(claim) and not _is_delayed(claim, classes):
            return "pod has unbound immediate PersistentVolumeClaims"
    return ""


def plan_volumes(
    claims: Sequence[Object], classes: Mapping[str, Object], volumes: Sequence[Object], node: Object
) -> PodVolumes:
    """Return the plan for the claims of a pod, which are bound or wait for it.

    Args:
        claims: The claims of the pod.
        classes: The storage classes by name.
        volumes: The volumes of the cluster.
        node: The node.
    """
    by_name = {volume["metadata"]["name"]: volume for volume in volumes}
    reserved: list[Object] = []
    provisioned: list[Object] = []
    is_waiting = False
    for claim in claims:
        if is_fully_bound(claim):
            own = by_name.get(claim["spec"]["volumeName"])
            if own is None:
                return PodVolumes("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
            if not matches_volume_affinity(own, node):
                return PodVolumes("node(s) didn't match PersistentVolume's node affinity")
            continue
        is_waiting = True
        if SELECTED_NODE in get_annotations(claim) or any(is_bound_to(volume, claim) for volume in volumes):
            continue
        taken = {volume["metadata"]["name"] for volume in reserved}
        found = find_volume_on_node(claim, volumes, node, taken)
        if found is not None:
            reserved.append(bind_volume(found, claim))
        elif classes[get_class_name(claim)].get("provisioner") in (None, "", _NO_PROVISIONER):
            return PodVolumes("node(s) didn't find available persistent volumes to bind")
        else:
            provisioned.append(claim)
    return PodVolumes("", tuple(reserved), tuple(provisioned), is_waiting)


def _is_delayed(claim: Object, classes: Mapping[str, Object]) -> bool:
    storage_class = classes.get(get_class_name(claim)) or {}
    is_lazy = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    return is_lazy and not claim["spec"].get("volumeName")
