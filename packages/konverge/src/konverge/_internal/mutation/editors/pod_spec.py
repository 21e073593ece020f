"""Editor of the parts of a pod's spec that its containers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import (
    ensure_mapping,
    match_names,
    read_name,
    remove_items,
    remove_key,
    set_item,
)

if TYPE_CHECKING:
    from konverge.types import core_v1, meta_v1

__all__ = ["PodSpecEditor", "PodSpecFields"]


class PodSpecFields(TypedDict, total=False):
    """Fields of a ``v1`` PodSpec without containers and init containers."""

    activeDeadlineSeconds: int | None
    affinity: core_v1.Affinity | None
    automountServiceAccountToken: bool | None
    dnsConfig: core_v1.PodDNSConfig | None
    dnsPolicy: Literal["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"] | None
    enableServiceLinks: bool | None
    ephemeralContainers: list[core_v1.EphemeralContainer] | None
    hostAliases: list[core_v1.HostAlias] | None
    hostIPC: bool | None
    hostNetwork: bool | None
    hostPID: bool | None
    hostUsers: bool | None
    hostname: str | None
    hostnameOverride: str | None
    imagePullSecrets: list[core_v1.LocalObjectReference] | None
    nodeName: str | None
    nodeSelector: dict[str, str] | None
    os: core_v1.PodOS | None
    overhead: dict[str, meta_v1.Quantity] | None
    preemptionPolicy: Literal["Never", "PreemptLowerPriority"] | None
    priority: int | None
    priorityClassName: str | None
    readinessGates: list[core_v1.PodReadinessGate] | None
    resourceClaims: list[core_v1.PodResourceClaim] | None
    resources: core_v1.ResourceRequirements | None
    restartPolicy: Literal["Always", "Never", "OnFailure"] | None
    runtimeClassName: str | None
    schedulerName: str | None
    schedulingGates: list[core_v1.PodSchedulingGate] | None
    schedulingGroup: core_v1.PodSchedulingGroup | None
    securityContext: core_v1.PodSecurityContext | None
    serviceAccount: str | None
    serviceAccountName: str | None
    setHostnameAsFQDN: bool | None
    shareProcessNamespace: bool | None
    subdomain: str | None
    terminationGracePeriodSeconds: int | None
    tolerations: list[core_v1.Toleration] | None
    topologySpreadConstraints: list[core_v1.TopologySpreadConstraint] | None
    volumes: list[core_v1.Volume] | None


class PodSpecEditor(Editor):
    """Edits a pod's spec, or the spec in a pod template. The mutator has the edits of containers."""

    __slots__ = ()

    def set(self, **fields: Unpack[PodSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field."""
        self._set_fields(fields, PodSpecFields.__optional_keys__)

    def ensure_volume(self, volume: Mapping[str, Any]) -> None:
        """Replace the volume of the same name, else append it."""
        set_item(self._fields, "volumes", volume, match_names(read_name(volume)))

    def remove_volume(self, name: str) -> None:
        """Remove the volume of this name."""
        remove_items(self._fields, "volumes", match_names(name))

    def ensure_toleration(self, toleration: Mapping[str, Any]) -> None:
        """Append the toleration unless the list contains an equal one."""
        set_item(self._fields, "tolerations", toleration, lambda other: bool(other == toleration))

    def remove_tolerations(self, is_unwanted: Callable[[Mapping[str, Any]], bool]) -> None:
        """Remove every toleration for which the function returns True."""
        remove_items(self._fields, "tolerations", is_unwanted)

    def ensure_node_selector(self, key: str, value: str) -> None:
        """Require one more node label."""
        ensure_mapping(self._fields, "nodeSelector")[key] = value

    def remove_node_selector(self, key: str) -> None:
        """Remove a node label from the node selector."""
        remove_key(self._fields, "nodeSelector", key)

    def ensure_image_pull_secret(self, name: str) -> None:
        """Add this Secret to those for pulling images."""
        set_item(self._fields, "imagePullSecrets", {"name": name}, match_names(name))

    def remove_image_pull_secret(self, name: str) -> None:
        """Remove this Secret from those for pulling images."""
        remove_items(self._fields, "imagePullSecrets", match_names(name))
