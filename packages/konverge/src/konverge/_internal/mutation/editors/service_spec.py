"""Editor of the spec of a Service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import ensure_mapping, match_names, remove_items, remove_key, set_item

if TYPE_CHECKING:
    from konverge.types import core_v1

__all__ = ["ServiceSpecEditor", "ServiceSpecFields"]


class ServiceSpecFields(TypedDict, total=False):
    """Fields of a ``v1`` ServiceSpec."""

    allocateLoadBalancerNodePorts: bool | None
    clusterIP: str | None
    clusterIPs: list[str] | None
    externalIPs: list[str] | None
    externalName: str | None
    externalTrafficPolicy: Literal["Cluster", "Local"] | None
    healthCheckNodePort: int | None
    internalTrafficPolicy: Literal["Cluster", "Local"] | None
    ipFamilies: list[Literal["", "IPv4", "IPv6"]] | None
    ipFamilyPolicy: Literal["PreferDualStack", "RequireDualStack", "SingleStack"] | None
    loadBalancerClass: str | None
    loadBalancerIP: str | None
    loadBalancerSourceRanges: list[str] | None
    ports: list[core_v1.ServicePort] | None
    publishNotReadyAddresses: bool | None
    selector: dict[str, str] | None
    sessionAffinity: Literal["ClientIP", "None"] | None
    sessionAffinityConfig: core_v1.SessionAffinityConfig | None
    trafficDistribution: str | None
    type: Literal["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"] | None


class ServiceSpecEditor(Editor):
    """Edits the ``spec`` of a Service."""

    __slots__ = ()

    def set(self, **fields: Unpack[ServiceSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field."""
        self._set_fields(fields, ServiceSpecFields.__optional_keys__)

    def ensure_port(self, port: Mapping[str, Any]) -> None:
        """Replace the port of the same name, else append it.

        The identity of a port without a name is its number and protocol; the default protocol is TCP.
        """
        name = port.get("name")
        identity = _port_identity(port)
        set_item(
            self._fields, "ports", port, match_names(name) if name else lambda other: _port_identity(other) == identity
        )

    def remove_port(self, name: str) -> None:
        """Remove the port of this name."""
        remove_items(self._fields, "ports", match_names(name))

    def ensure_selector(self, key: str, value: str) -> None:
        """Require one more pod label."""
        ensure_mapping(self._fields, "selector")[key] = value

    def remove_selector(self, key: str) -> None:
        """Remove a pod label from the selector."""
        remove_key(self._fields, "selector", key)


def _port_identity(port: Any) -> tuple[Any, str] | None:
    return (port.get("port"), port.get("protocol") or "TCP") if isinstance(port, Mapping) else None
