"""Validation of Services and their status."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.metadata import validate_labels
from konverge_cluster._internal.embedded.validation.pods import PORT_RANGE, PROTOCOLS, validate_port

__all__ = ["validate_service", "validate_service_status", "validate_service_update"]

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def validate_service(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a Service."""
    spec = obj.get("spec") or {}
    kind, ports = spec.get("type", "ClusterIP"), spec.get("ports") or []
    address = spec.get("clusterIP", "")
    if not ports and address != "None" and kind != "ExternalName":
        yield field_required("spec.ports")
    yield from _validate_ports(ports, kind)
    yield from validate_labels(spec.get("selector"), "spec.selector")
    if kind not in _TYPES:
        yield field_not_supported("spec.type", kind, _TYPES)
    if kind == "ExternalName":
        name = spec.get("externalName", "")
        if not name:
            yield field_required("spec.externalName")
        for detail in validate_dns_subdomain(name.removesuffix(".")) if name else ():
            yield field_invalid("spec.externalName", name, detail)
    elif address == "None":
        if kind in ("NodePort", "LoadBalancer"):
            detail = f"may not be set to 'None' for {kind} services"
            yield field_invalid("spec.clusterIPs[0]", address, detail)
    elif address and not _is_address(address):
        yield field_invalid(
            "spec.clusterIPs[0]", address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        )
    affinities = ("ClientIP", "None")
    if spec.get("sessionAffinity", "None") not in affinities:
        yield field_not_supported("spec.sessionAffinity", spec["sessionAffinity"], affinities)


def _validate_ports(ports: Sequence[Mapping[str, Any]], kind: str) -> Iterator[FieldError]:
    names: set[str] = set()
    taken: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        at, name = f"spec.ports[{index}]", port.get("name")
        if name:
            for detail in validate_dns_label(name):
                yield field_invalid(f"{at}.name", name, detail)
            if name in names:
                yield field_duplicate(f"{at}.name", name)
            names.add(name)
        elif len(ports) > 1:
            yield field_required(f"{at}.name")
        number = port.get("port") or 0
        if not 1 <= number <= 65535:
            yield field_invalid(f"{at}.port", number, PORT_RANGE)
        protocol = port.get("protocol", "TCP")
        if protocol not in PROTOCOLS:
            yield field_not_supported(f"{at}.protocol", protocol, PROTOCOLS)
        if kind != "ExternalName":
            yield from validate_port(port.get("targetPort", number), f"{at}.targetPort")
        if port.get("nodePort") and kind in ("ClusterIP", "ExternalName"):
            yield field_forbidden(f"{at}.nodePort", f"may not be used when `type` is '{kind}'")
        if (number, protocol) in taken:
            yield field_duplicate(at, {"port": number, "protocol": protocol})
        taken.add((number, protocol))


def validate_service_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield errors for changes of an assigned address, if the type keeps addresses."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    was, now = before.get("clusterIP"), after.get("clusterIP")
    if was and now != was and "ExternalName" not in (before.get("type"), after.get("type")):
        yield field_invalid("spec.clusterIPs[0]", [now or ""], "may not change once set")


def validate_service_status(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of the status of a Service."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if (status.get("loadBalancer") or {}).get("ingress") and spec.get("type") != "LoadBalancer":
        yield field_forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
