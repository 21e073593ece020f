"""Validation of Services and their status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain, validate_label_key
from konverge_cluster._internal.embedded.validation.addresses import ADDRESS_FORM, is_address
from konverge_cluster._internal.embedded.validation.containers import PORT_RANGE, PROTOCOLS, validate_port
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.metadata import validate_labels

__all__ = ["validate_service", "validate_service_status", "validate_service_update"]

_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY = 86400
# Fields of load balancers, and their names in errors.
_BALANCER_FIELDS = (
    ("loadBalancerSourceRanges", "LoadBalancerSourceRanges"),
    ("loadBalancerClass", "loadBalancerClass"),
    ("allocateLoadBalancerNodePorts", "allocateLoadBalancerNodePorts"),
)
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
    elif address and not is_address(address):
        yield field_invalid("spec.clusterIPs[0]", address, ADDRESS_FORM)
    if kind == "ExternalName" and address:
        yield field_forbidden("spec.clusterIPs", "may not be set for ExternalName services")
    yield from _validate_families(spec)
    yield from _validate_traffic(spec, kind)
    for index, text in enumerate(spec.get("externalIPs") or ()):
        if not is_address(text):
            yield field_invalid(f"spec.externalIPs[{index}]", text, ADDRESS_FORM)
    affinities = ("ClientIP", "None")
    if spec.get("sessionAffinity", "None") not in affinities:
        yield field_not_supported("spec.sessionAffinity", spec["sessionAffinity"], affinities)


def _validate_families(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in _FAMILIES:
            yield field_not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        yield field_not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)
    elif policy == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        yield field_invalid("spec.ipFamilyPolicy", policy, detail)


def _validate_traffic(spec: Mapping[str, Any], kind: str) -> Iterator[FieldError]:
    external, policies = spec.get("externalTrafficPolicy"), ("Cluster", "Local")
    is_external = kind in ("NodePort", "LoadBalancer") or bool(spec.get("externalIPs"))
    if external is not None and not is_external:
        detail = "may only be set for externally-accessible services"
        yield field_invalid("spec.externalTrafficPolicy", external, detail)
    elif external is not None and external not in policies:
        yield field_not_supported("spec.externalTrafficPolicy", external, policies)
    internal = spec.get("internalTrafficPolicy")
    if internal is not None and internal not in policies:
        yield field_not_supported("spec.internalTrafficPolicy", internal, policies)
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        yield field_not_supported("spec.trafficDistribution", distribution, _DISTRIBUTIONS)
    if spec.get("healthCheckNodePort") and not (kind == "LoadBalancer" and external == "Local"):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield field_invalid("spec.healthCheckNodePort", spec["healthCheckNodePort"], detail)
    if kind != "LoadBalancer":
        for name, label in _BALANCER_FIELDS:
            if spec.get(name):
                yield field_forbidden(f"spec.{label}", "may only be used when `type` is 'LoadBalancer'")
    config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    seconds = config.get("timeoutSeconds")
    if spec.get("sessionAffinity") == "ClientIP" and seconds is not None and not 0 < seconds <= _LONGEST_AFFINITY:
        detail = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
        yield field_invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, detail)


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
        for detail in validate_label_key(port["appProtocol"]) if port.get("appProtocol") else ():
            yield field_invalid(f"{at}.appProtocol", port["appProtocol"], detail)
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
