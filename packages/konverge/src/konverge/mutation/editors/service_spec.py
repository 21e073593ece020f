"""The spec of a Service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import copy_json, ensure_mapping, match_names, remove_items, remove_key, set_item

__all__ = ["ServiceSpecEditor"]


class ServiceSpecEditor(Editor):
    """Edits a Service's ``spec``."""

    __slots__ = ()

    def set_type(self, service_type: str) -> None:
        """``ClusterIP``, ``NodePort``, ``LoadBalancer`` or ``ExternalName``."""
        self._fields["type"] = service_type

    def ensure_port(self, port: Mapping[str, Any]) -> None:
        """Replace the port of that name, else append it.

        A port without a name is known by its number and protocol; no protocol is TCP.
        """
        name = port.get("name")
        place = _port_identity(port)
        set_item(
            self._fields, "ports", port, match_names(name) if name else lambda found: _port_identity(found) == place
        )

    def remove_port(self, name: str) -> None:
        """Remove the port of that name."""
        remove_items(self._fields, "ports", match_names(name))

    def set_selector(self, selector: Mapping[str, str]) -> None:
        """Replace the whole pod selector."""
        self._fields["selector"] = dict(selector)

    def ensure_selector(self, key: str, value: str) -> None:
        """Select by this pod label, too."""
        ensure_mapping(self._fields, "selector")[key] = value

    def remove_selector(self, key: str) -> None:
        """No longer select by this pod label."""
        remove_key(self._fields, "selector", key)

    def set_session_affinity(self, affinity: str) -> None:
        """``None`` or ``ClientIP``, as text."""
        self._fields["sessionAffinity"] = affinity

    def set_session_affinity_config(self, config: Mapping[str, Any]) -> None:
        """Replace the affinity's settings: ``{"clientIP": {"timeoutSeconds": 60}}``."""
        self._fields["sessionAffinityConfig"] = copy_json(config)

    def set_publish_not_ready_addresses(self, published: bool) -> None:
        """Publish the addresses of pods that are not ready."""
        self._fields["publishNotReadyAddresses"] = published

    def set_external_traffic_policy(self, policy: str) -> None:
        """``Cluster`` or ``Local``."""
        self._fields["externalTrafficPolicy"] = policy

    def set_internal_traffic_policy(self, policy: str) -> None:
        """``Cluster`` or ``Local``."""
        self._fields["internalTrafficPolicy"] = policy

    def set_load_balancer_source_ranges(self, ranges: Iterable[str]) -> None:
        """Replace the networks that the load balancer admits, in CIDR form."""
        self._fields["loadBalancerSourceRanges"] = list(ranges)

    def set_external_name(self, name: str) -> None:
        """Set the DNS name that an ``ExternalName`` Service stands for."""
        self._fields["externalName"] = name


def _port_identity(port: Any) -> tuple[Any, str] | None:
    return (port.get("port"), port.get("protocol") or "TCP") if isinstance(port, Mapping) else None
