"""Validation of pods and of pod templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge_cluster._internal.embedded.validation.addresses import ADDRESS_FORM, is_address
from konverge_cluster._internal.embedded.validation.containers import validate_choice, validate_container
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.metadata import validate_annotations, validate_labels
from konverge_cluster._internal.embedded.validation.pod_placement import validate_placement
from konverge_cluster._internal.embedded.validation.security_contexts import validate_pod_security
from konverge_cluster._internal.embedded.validation.volumes import validate_volumes

__all__ = ["validate_pod", "validate_pod_template"]

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def validate_pod(pod: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a pod."""
    spec = pod.get("spec") or {}
    if spec.get("ephemeralContainers") and not pod["metadata"].get("resourceVersion"):
        yield field_forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield field_forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    yield from _validate_spec(spec, "spec")


def validate_pod_template(template: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Yield the validation errors of a pod template."""
    metadata = template.get("metadata") or {}
    yield from validate_labels(metadata.get("labels"), f"{field}.metadata.labels")
    yield from validate_annotations(metadata.get("annotations"), f"{field}.metadata.annotations")
    yield from _validate_spec(template.get("spec") or {}, f"{field}.spec")


def _validate_spec(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    volumes = spec.get("volumes") or []
    yield from validate_volumes(volumes, f"{field}.volumes")
    names = {volume.get("name") for volume in volumes}
    containers = spec.get("containers") or []
    claims = tuple(claim.get("name", "") for claim in spec.get("resourceClaims") or ())
    taken: set[str] = set()
    if not containers:
        yield field_required(f"{field}.containers")
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield from validate_container(container, f"{field}.{kind}[{index}]", names, taken, claims)
    yield from validate_choice(spec, field, "restartPolicy", _RESTART_POLICIES)
    yield from validate_choice(spec, field, "dnsPolicy", _DNS_POLICIES)
    yield from validate_labels(spec.get("nodeSelector"), f"{field}.nodeSelector")
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            for detail in validate_dns_subdomain(spec[name]):
                yield field_invalid(f"{field}.{name}", spec[name], detail)
    yield from _validate_host_ports(spec, field)
    yield from _validate_network_identity(spec, field)
    yield from validate_placement(spec, field)
    yield from validate_pod_security(spec, field)
    system = (spec.get("os") or {}).get("name")
    if system is not None and system not in ("linux", "windows"):
        yield field_not_supported(f"{field}.os", system, ("linux", "windows"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        yield field_invalid(f"{field}.activeDeadlineSeconds", deadline, f"must be between 1 and {2**31 - 1}, inclusive")


def _validate_host_ports(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            at, host_port = f"{field}.containers[{index}].ports[{number}].hostPort", port.get("hostPort")
            if not host_port:
                continue
            if spec.get("hostNetwork") and host_port != port.get("containerPort"):
                yield field_invalid(at, host_port, "must match `containerPort` when `hostNetwork` is true")
            taken = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{host_port}"
            if taken in seen:
                yield field_duplicate(at, taken)
            seen.add(taken)


def _validate_network_identity(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    for name in ("hostname", "subdomain"):
        for detail in validate_dns_label(spec[name]) if spec.get(name) else ():
            yield field_invalid(f"{field}.{name}", spec[name], detail)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        at = f"{field}.hostAliases[{index}]"
        if not is_address(alias.get("ip", "")):
            yield field_invalid(f"{at}.ip", alias.get("ip", ""), ADDRESS_FORM)
        for number, host in enumerate(alias.get("hostnames") or ()):
            for detail in validate_dns_subdomain(host):
                yield field_invalid(f"{at}.hostnames[{number}]", host, detail)
    if spec.get("dnsPolicy") == "None":
        config = spec.get("dnsConfig")
        if config is None:
            yield field_required(f"{field}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield field_required(f"{field}.dnsConfig.nameservers", detail)
