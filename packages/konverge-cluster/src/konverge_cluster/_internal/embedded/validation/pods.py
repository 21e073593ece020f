"""Validation of pods and of pod templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    quote,
)
from konverge_cluster._internal.embedded.validation.metadata import validate_annotations, validate_labels

__all__ = [
    "NOT_NEGATIVE",
    "PORT_RANGE",
    "PROTOCOLS",
    "validate_config_key",
    "validate_pod",
    "validate_pod_template",
    "validate_pod_update",
    "validate_port",
]

PORT_RANGE = "must be between 1 and 65535, inclusive"
NOT_NEGATIVE = "must be greater than or equal to 0"
PROTOCOLS = ("SCTP", "TCP", "UDP")

_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_ENV_NAME = re.compile(r"[ -<>-~]+")
_PORT_NAME = re.compile(r"[a-z0-9-]+")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_VALUE_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
# The fields that an update of a pod can change.
_MUTABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def validate_pod(pod: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a pod."""
    yield from _validate_spec(pod.get("spec") or {}, "spec")


def validate_pod_template(template: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Yield the validation errors of a pod template."""
    metadata = template.get("metadata") or {}
    yield from validate_labels(metadata.get("labels"), f"{field}.metadata.labels")
    yield from validate_annotations(metadata.get("annotations"), f"{field}.metadata.annotations")
    yield from _validate_spec(template.get("spec") or {}, f"{field}.spec")


def validate_pod_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield an error for changes of immutable fields of a pod."""
    if _without_mutable(old.get("spec") or {}) != _without_mutable(new.get("spec") or {}):
        yield field_forbidden("spec", f"pod updates may not change fields other than {_MUTABLE}")


def _without_mutable(spec: Mapping[str, Any]) -> Object:
    immutable = {name: value for name, value in spec.items() if name not in ("activeDeadlineSeconds", "tolerations")}
    for name in ("containers", "initContainers"):
        immutable[name] = [
            {key: value for key, value in container.items() if key != "image"} for container in spec.get(name) or ()
        ]
    return immutable


def _validate_spec(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    volumes = spec.get("volumes") or []
    yield from _validate_volumes(volumes, f"{field}.volumes")
    names = {volume.get("name") for volume in volumes}
    containers = spec.get("containers") or []
    taken: set[str] = set()
    if not containers:
        yield field_required(f"{field}.containers")
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield from _validate_container(container, f"{field}.{kind}[{index}]", names, taken)
    yield from _validate_choice(spec, field, "restartPolicy", _RESTART_POLICIES)
    yield from _validate_choice(spec, field, "dnsPolicy", _DNS_POLICIES)
    yield from validate_labels(spec.get("nodeSelector"), f"{field}.nodeSelector")
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            for detail in validate_dns_subdomain(spec[name]):
                yield field_invalid(f"{field}.{name}", spec[name], detail)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        yield field_invalid(f"{field}.activeDeadlineSeconds", deadline, f"must be between 1 and {2**31 - 1}, inclusive")


def _validate_choice(spec: Mapping[str, Any], field: str, name: str, known: Sequence[str]) -> Iterator[FieldError]:
    value = spec.get(name)
    if value is not None and value not in known:
        yield field_not_supported(f"{field}.{name}", value, known)


def _validate_container(
    container: Mapping[str, Any], field: str, volumes: Iterable[Any], taken: set[str]
) -> Iterator[FieldError]:
    name = container.get("name")
    if not name:
        yield field_required(f"{field}.name")
    else:
        for detail in validate_dns_label(name):
            yield field_invalid(f"{field}.name", name, detail)
        if name in taken:
            yield field_duplicate(f"{field}.name", name)
        taken.add(name)
    if not container.get("image"):
        yield field_required(f"{field}.image")
    yield from _validate_container_ports(container.get("ports") or [], f"{field}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        yield from _validate_variable(variable, f"{field}.env[{index}]")
    for source in container.get("envFrom") or ():
        if not (source.get("configMapRef") or source.get("secretRef")):
            yield field_invalid(f"{field}.envFrom", "", "must specify one of: `configMapRef` or `secretRef`")
    yield from _validate_mounts(container.get("volumeMounts") or [], f"{field}.volumeMounts", set(volumes))
    for probe in _PROBES:
        if probe in container:
            yield from _validate_probe(container[probe], f"{field}.{probe}")
    yield from _validate_choice(container, field, "imagePullPolicy", _PULL_POLICIES)


def _validate_container_ports(ports: Sequence[Mapping[str, Any]], field: str) -> Iterator[FieldError]:
    taken: set[str] = set()
    for index, port in enumerate(ports):
        at, name = f"{field}[{index}]", port.get("name")
        if name:
            for detail in _validate_port_name(name):
                yield field_invalid(f"{at}.name", name, detail)
            if name in taken:
                yield field_duplicate(f"{at}.name", name)
            taken.add(name)
        if not port.get("containerPort"):
            yield field_required(f"{at}.containerPort")
        elif not 1 <= port["containerPort"] <= 65535:
            yield field_invalid(f"{at}.containerPort", port["containerPort"], PORT_RANGE)
        if port.get("hostPort") and not 1 <= port["hostPort"] <= 65535:
            yield field_invalid(f"{at}.hostPort", port["hostPort"], PORT_RANGE)
        yield from _validate_choice(port, at, "protocol", PROTOCOLS)


def _validate_port_name(name: str) -> list[str]:
    errors = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not _PORT_NAME.fullmatch(name):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        errors.append("must contain at least one letter (a-z)")
    if "--" in name:
        errors.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def validate_port(port: Any, field: str) -> Iterator[FieldError]:
    """Yield the validation errors of a reference to a port, by number or by name."""
    if isinstance(port, str):
        for detail in _validate_port_name(port):
            yield field_invalid(field, port, detail)
    elif not 1 <= (port or 0) <= 65535:
        yield field_invalid(field, port or 0, PORT_RANGE)


def _validate_variable(variable: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    name = variable.get("name")
    if not name:
        yield field_required(f"{field}.name")
    elif not _ENV_NAME.fullmatch(name):
        detail = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield field_invalid(f"{field}.name", name, detail)
    source = variable.get("valueFrom")
    if source is None:
        return
    at = f"{field}.valueFrom"
    present = [kind for kind in _VALUE_SOURCES if kind in source]
    if not present:
        *most, last = (f"`{kind}`" for kind in _VALUE_SOURCES)
        yield field_invalid(at, "", f"must specify one of: {', '.join(most)} or {last}")
    elif variable.get("value"):
        yield field_invalid(at, "", "may not be specified when `value` is not empty")
    elif len(present) > 1:
        yield field_invalid(at, "", "may not have more than one field specified at a time")
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if kind in source:
            name = source[kind].get("name", "")
            for detail in validate_dns_subdomain(name):
                yield field_invalid(f"{at}.{kind}.name", name, detail)
            if not source[kind].get("key"):
                yield field_required(f"{at}.{kind}.key")
            else:
                for detail in validate_config_key(source[kind]["key"]):
                    yield field_invalid(f"{at}.{kind}.key", source[kind]["key"], detail)


def validate_config_key(key: str) -> list[str]:
    """Return the reasons why a text cannot be a key of a ConfigMap or a Secret."""
    errors = ["must be no more than 253 characters"] if len(key) > 253 else []
    if not _CONFIG_KEY.fullmatch(key):
        errors.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    elif key in (".", ".."):
        errors.append(f"must not be '{key}'")
    elif key.startswith(".."):
        errors.append("must not start with '..'")
    return errors


def _validate_mounts(mounts: Sequence[Mapping[str, Any]], field: str, volumes: set[Any]) -> Iterator[FieldError]:
    taken: set[str] = set()
    for index, mount in enumerate(mounts):
        at, name, path = f"{field}[{index}]", mount.get("name"), mount.get("mountPath")
        if not name:
            yield field_required(f"{at}.name")
        elif name not in volumes:
            yield FieldError(f"{at}.name", "FieldValueNotFound", f"Not found: {quote(name)}")
        if not path:
            yield field_required(f"{at}.mountPath")
        elif path in taken:
            yield field_invalid(f"{at}.mountPath", path, "must be unique")
        taken.add(path or "")


def _validate_volumes(volumes: Sequence[Mapping[str, Any]], field: str) -> Iterator[FieldError]:
    taken: set[str] = set()
    for index, volume in enumerate(volumes):
        at, name = f"{field}[{index}]", volume.get("name")
        for kind in [kind for kind in volume if kind != "name"][1:]:
            yield field_forbidden(f"{at}.{kind}", "may not specify more than 1 volume type")
        if "configMap" in volume and not volume["configMap"].get("name"):
            yield field_required(f"{at}.configMap.name")
        if "secret" in volume and not volume["secret"].get("secretName"):
            yield field_required(f"{at}.secret.secretName")
        if "persistentVolumeClaim" in volume and not volume["persistentVolumeClaim"].get("claimName"):
            yield field_required(f"{at}.persistentVolumeClaim.claimName")
        if not name:
            yield field_required(f"{at}.name")
            continue
        for detail in validate_dns_label(name):
            yield field_invalid(f"{at}.name", name, detail)
        if name in taken:
            yield field_duplicate(f"{at}.name", name)
        taken.add(name)


def _validate_probe(probe: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    present = [kind for kind in _HANDLERS if kind in probe]
    if not present:
        yield field_required(field, "must specify a handler type")
    for kind in present[1:]:
        yield field_forbidden(f"{field}.{kind}", "may not specify more than 1 handler type")
    for kind in present[:1]:
        if kind == "exec" and not probe["exec"].get("command"):
            yield field_required(f"{field}.exec.command")
        if kind in ("httpGet", "tcpSocket"):
            yield from validate_port(probe[kind].get("port"), f"{field}.{kind}.port")
    for name in _PROBE_NUMBERS:
        if (probe.get(name) or 0) < 0:
            yield field_invalid(f"{field}.{name}", probe[name], NOT_NEGATIVE)
