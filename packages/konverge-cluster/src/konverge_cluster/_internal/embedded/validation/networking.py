"""Validation of Ingresses, NetworkPolicies and EndpointSlices."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge_cluster._internal.embedded.validation.addresses import ADDRESS_FORM, CIDR_FORM, is_address, is_cidr
from konverge_cluster._internal.embedded.validation.containers import PROTOCOLS, validate_port
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.selectors import validate_selector

__all__ = ["validate_endpoint_slice", "validate_ingress", "validate_ingress_class", "validate_network_policy"]

_CLASS = "kubernetes.io/ingress.class"
_WILDCARD_FORM = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDINGS = ("/..", "/.")
_POLICY_PROTOCOLS = ("TCP", "UDP", "SCTP")
_MAXIMUM_ADDRESSES = 100


def validate_ingress(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of an Ingress."""
    spec = obj.get("spec") or {}
    annotated, chosen = (obj["metadata"].get("annotations") or {}).get(_CLASS), spec.get("ingressClassName")
    if annotated and chosen is not None and annotated != chosen:
        detail = "must match `ingressClassName` when both are specified"
        yield field_invalid(f"annotations.{_CLASS}", annotated, detail)
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield field_invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _validate_backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _validate_rule(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        at = f"spec.tls[{index}]"
        for number, host in enumerate(tls.get("hosts") or ()):
            yield from _validate_host(host, f"{at}.hosts[{number}]")
        if tls.get("secretName"):
            for detail in validate_dns_subdomain(tls["secretName"]):
                yield field_invalid(f"{at}.secretName", tls["secretName"], detail)
    if chosen is not None:
        for detail in validate_dns_subdomain(chosen):
            yield field_invalid("spec.ingressClassName", chosen, detail)


def _validate_rule(rule: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    host = rule.get("host")
    if host:
        if is_address(host):
            yield field_invalid(f"{field}.host", host, "must be a DNS name, not an IP address")
        else:
            yield from _validate_host(host, f"{field}.host")
    http = rule.get("http")
    if http is None:
        return
    if not http.get("paths"):
        yield field_required(f"{field}.http.paths")
    for number, path in enumerate(http.get("paths") or ()):
        yield from _validate_path(path, f"{field}.http.paths[{number}]")


def _validate_host(host: str, field: str) -> Iterator[FieldError]:
    if "*" in host:
        if not host.startswith("*.") or validate_dns_subdomain(host.removeprefix("*.")):
            yield field_invalid(field, host, _WILDCARD_FORM)
        return
    for detail in validate_dns_subdomain(host):
        yield field_invalid(field, host, detail)


def _validate_path(entry: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    kind, path = entry.get("pathType"), entry.get("path") or ""
    if not kind:
        yield field_required(f"{field}.pathType", "pathType must be specified")
    elif kind not in _PATH_TYPES:
        yield field_not_supported(f"{field}.pathType", kind, _PATH_TYPES)
    elif not path.startswith("/") and (path or kind != "ImplementationSpecific"):
        yield field_invalid(f"{field}.path", path, "must be an absolute path")
    elif kind != "ImplementationSpecific":
        for text in _BAD_SEQUENCES:
            if text in path:
                yield field_invalid(f"{field}.path", path, f"must not contain '{text}'")
        for text in _BAD_ENDINGS:
            if path.endswith(text):
                yield field_invalid(f"{field}.path", path, f"cannot end with '{text}'")
    yield from _validate_backend(entry.get("backend") or {}, f"{field}.backend")


def _validate_backend(backend: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield field_invalid(field, "", "cannot set both resource and service backends")
    elif resource is not None:
        for name in ("kind", "name"):
            if not resource.get(name):
                yield field_required(f"{field}.resource.{name}")
    elif service is None:
        yield field_invalid(field, "", "resource or service backend is required")
    else:
        yield from _validate_service_backend(service, field)


def _validate_service_backend(service: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    name, port = service.get("name"), service.get("port") or {}
    if not name:
        yield field_required(f"{field}.service.name")
    else:
        for detail in validate_dns_label(name):
            yield field_invalid(f"{field}.service.name", name, detail)
    if port.get("name") and port.get("number"):
        yield field_invalid(field, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from validate_port(port["name"], f"{field}.service.port.name")
    elif port.get("number"):
        yield from validate_port(port["number"], f"{field}.service.port.number")
    else:
        yield field_required(field, "port name or number is required")


def validate_ingress_class(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of an IngressClass."""
    if not (obj.get("spec") or {}).get("controller"):
        yield field_required("spec.controller")


def validate_network_policy(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a NetworkPolicy."""
    spec = obj.get("spec") or {}
    yield from validate_selector(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            at = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _validate_policy_port(port, f"{at}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _validate_peer(peer, f"{at}.{peers}[{number}]")
    types = spec.get("policyTypes") or ()
    if len(types) > 2:
        yield field_invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, policy_type in enumerate(types):
        if policy_type not in ("Ingress", "Egress"):
            yield field_not_supported(f"spec.policyTypes[{index}]", policy_type, ("Ingress", "Egress"))


def _validate_policy_port(entry: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    protocol, port, end = entry.get("protocol"), entry.get("port"), entry.get("endPort")
    if protocol is not None and protocol not in _POLICY_PROTOCOLS:
        yield field_not_supported(f"{field}.protocol", protocol, _POLICY_PROTOCOLS)
    if port is None:
        if end is not None:
            yield field_invalid(f"{field}.endPort", end, "may not be specified when `port` is not specified")
        return
    yield from validate_port(port, f"{field}.port")
    if end is None:
        return
    if isinstance(port, str):
        yield field_invalid(f"{field}.endPort", end, "may not be specified when `port` is non-numeric")
    elif end < port:
        yield field_invalid(f"{field}.endPort", port, "must be greater than or equal to `port`")
    else:
        yield from validate_port(end, f"{field}.endPort")


def _validate_peer(peer: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    count = 0
    for name in ("podSelector", "namespaceSelector"):
        if peer.get(name) is not None:
            count += 1
            yield from validate_selector(peer[name], f"{field}.{name}")
    block = peer.get("ipBlock")
    if block is not None:
        yield from _validate_block(block, f"{field}.ipBlock")
        if count:
            yield field_forbidden(field, "may not specify both ipBlock and another peer")
    elif not count:
        yield field_required(field, "must specify a peer")


def _validate_block(block: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    cidr = block.get("cidr")
    if not cidr:
        yield field_required(f"{field}.cidr")
        return
    if not is_cidr(cidr):
        yield field_invalid(f"{field}.cidr", cidr, CIDR_FORM)
        return
    yield from _validate_host_bits(cidr, f"{field}.cidr")
    network = ipaddress.ip_network(cidr, strict=False)
    for index, text in enumerate(block.get("except") or ()):
        at = f"{field}.except[{index}]"
        if not is_cidr(text):
            yield field_invalid(at, text, CIDR_FORM)
            continue
        yield from _validate_host_bits(text, at)
        inner = ipaddress.ip_network(text, strict=False)
        is_inside = inner.version == network.version and network.supernet_of(inner)  # type: ignore[arg-type]  # equal versions
        if not is_inside or inner.prefixlen <= network.prefixlen:
            yield field_invalid(at, text, "must be a strict subset of `cidr`")


def _validate_host_bits(cidr: str, field: str) -> Iterator[FieldError]:
    try:
        ipaddress.ip_network(cidr)
    except ValueError:
        yield field_invalid(field, cidr, "must not have bits set beyond the prefix length")


def validate_endpoint_slice(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of an EndpointSlice."""
    kinds = ("FQDN", "IPv4", "IPv6")
    kind = obj.get("addressType")
    if not kind:
        yield field_required("addressType")
    elif kind not in kinds:
        yield field_not_supported("addressType", kind, kinds)
    for index, endpoint in enumerate(obj.get("endpoints") or ()):
        at, addresses = f"endpoints[{index}]", endpoint.get("addresses") or ()
        if not addresses:
            yield field_required(f"{at}.addresses", "must contain at least 1 address")
        for number, address in enumerate(addresses[:_MAXIMUM_ADDRESSES]):
            if kind == "FQDN":
                for detail in validate_dns_subdomain(address):
                    yield field_invalid(f"{at}.addresses[{number}]", address, detail)
            elif not is_address(address):
                yield field_invalid(f"{at}.addresses[{number}]", address, ADDRESS_FORM)
    names: set[str] = set()
    for index, port in enumerate(obj.get("ports") or ()):
        at, name = f"ports[{index}]", port.get("name") or ""
        if name in names:
            yield field_duplicate(f"{at}.name", name)
        names.add(name)
        protocol = port.get("protocol", "TCP")
        if protocol not in PROTOCOLS:
            yield field_not_supported(f"{at}.protocol", protocol, PROTOCOLS)
