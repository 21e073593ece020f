"""Validation of containers: ports, environment, mounts, probes and handlers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

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
from konverge_cluster._internal.embedded.validation.resources import validate_resources
from konverge_cluster._internal.embedded.validation.security_contexts import validate_container_security

__all__ = [
    "NOT_NEGATIVE",
    "PORT_RANGE",
    "PROTOCOLS",
    "find_path_errors",
    "validate_choice",
    "validate_config_key",
    "validate_container",
    "validate_field_reference",
    "validate_port",
]

PORT_RANGE = "must be between 1 and 65535, inclusive"
NOT_NEGATIVE = "must be greater than or equal to 0"
PROTOCOLS = ("SCTP", "TCP", "UDP")

_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_ENV_NAME = re.compile(r"[ -<>-~]+")
_PORT_NAME = re.compile(r"[a-z0-9-]+")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_VALUE_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_LIFECYCLE_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_SCHEMES = ("HTTP", "HTTPS")
_VARIABLE_FORM = "a valid environment variable name must consist only of printable ASCII characters other than '='"
# The fields of a pod that a variable can contain; the server converts some others first.
_VARIABLE_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_CONVERTED_FIELDS = frozenset(
    {
        *_VARIABLE_FIELDS,
        "metadata.annotations",
        "metadata.labels",
        "spec.hostNetwork",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.nominatedNodeName",
        "status.phase",
    }
)
_RESOURCE_FIELDS = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def validate_choice(spec: Mapping[str, Any], field: str, name: str, known: Sequence[str]) -> Iterator[FieldError]:
    value = spec.get(name)
    if value is not None and value not in known:
        yield field_not_supported(f"{field}.{name}", value, known)


def validate_container(
    container: Mapping[str, Any],
    field: str,
    volumes: Iterable[Any],
    taken: set[str],
    claims: tuple[str, ...] = (),
) -> Iterator[FieldError]:
    """Yield the validation errors of a container.

    Args:
        container: The container.
        field: The path of the container.
        volumes: The names of the pod's volumes.
        taken: The names of other containers; receives the name of this one.
        claims: The names of the pod's resource claims.
    """
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
    elif container["image"] != container["image"].strip():
        yield field_invalid(f"{field}.image", container["image"], "must not have leading or trailing whitespace")
    yield from _validate_container_ports(container.get("ports") or [], f"{field}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        yield from _validate_variable(variable, f"{field}.env[{index}]")
    for index, source in enumerate(container.get("envFrom") or ()):
        yield from _validate_environment_source(source, f"{field}.envFrom[{index}]")
    yield from _validate_mounts(container.get("volumeMounts") or [], f"{field}.volumeMounts", set(volumes))
    for probe in _PROBES:
        if probe in container:
            yield from _validate_probe(container[probe], f"{field}.{probe}", probe)
    for name, handler in (container.get("lifecycle") or {}).items():
        if name in ("postStart", "preStop"):
            yield from _validate_handler(handler, f"{field}.lifecycle.{name}", _LIFECYCLE_HANDLERS)
    for index, device in enumerate(container.get("volumeDevices") or ()):
        if device.get("name") not in volumes:
            name = device.get("name", "")
            yield FieldError(f"{field}.volumeDevices[{index}].name", "FieldValueNotFound", f"Not found: {quote(name)}")
    yield from validate_resources(container.get("resources") or {}, f"{field}.resources", claims)
    yield from validate_container_security(container.get("securityContext") or {}, f"{field}.securityContext")
    yield from validate_choice(container, field, "imagePullPolicy", _PULL_POLICIES)
    yield from validate_choice(container, field, "terminationMessagePolicy", _MESSAGE_POLICIES)
    for entry in container.get("resizePolicy") or ():
        if entry.get("restartPolicy") not in _RESIZE_POLICIES:
            yield field_not_supported(f"{field}.resizePolicy", entry.get("restartPolicy", ""), _RESIZE_POLICIES)


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
        yield from validate_choice(port, at, "protocol", PROTOCOLS)


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
        yield field_invalid(f"{field}.name", name, _VARIABLE_FORM)
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
    if source.get("fieldRef") is not None:
        yield from validate_field_reference(source["fieldRef"], f"{at}.fieldRef", _VARIABLE_FIELDS, subscripts=True)
    if source.get("resourceFieldRef") is not None:
        resource = source["resourceFieldRef"].get("resource", "")
        if not resource:
            yield field_required(f"{at}.resourceFieldRef.resource")
        elif resource not in _RESOURCE_FIELDS and not resource.startswith(("limits.hugepages-", "requests.hugepages-")):
            yield field_not_supported(f"{at}.resourceFieldRef.resource", resource, _RESOURCE_FIELDS)
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


def validate_field_reference(
    reference: Mapping[str, Any], field: str, supported: Sequence[str], *, subscripts: bool = False
) -> Iterator[FieldError]:
    """Yield the validation errors of a reference to a field of the pod.

    Args:
        reference: The ``fieldRef``.
        field: The path of the reference.
        supported: The fields that are possible here.
        subscripts: True if one label or annotation can only be referred to by its key.
    """
    path = reference.get("fieldPath", "")
    if not path:
        yield field_required(f"{field}.fieldPath")
        return
    name, bracket, _ = path.partition("['")
    if bracket and path.endswith("']"):
        if name not in ("metadata.annotations", "metadata.labels"):
            yield field_invalid(f"{field}.fieldPath", path, "does not support subscript")
        return
    if path not in _CONVERTED_FIELDS:
        detail = f"error converting fieldPath: field label not supported: {path}"
        yield field_invalid(f"{field}.fieldPath", path, detail)
    elif path not in supported:
        yield field_not_supported(f"{field}.fieldPath", path, supported)


def _validate_environment_source(source: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    prefix = source.get("prefix")
    if prefix and not _ENV_NAME.fullmatch(prefix):
        yield field_invalid(f"{field}.prefix", prefix, _VARIABLE_FORM)
    present = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
    for kind in present:
        if not source[kind].get("name"):
            yield field_required(f"{field}.{kind}.name")
    if not present:
        yield field_invalid(field.rpartition("[")[0], "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(present) > 1:
        detail = "may not have more than one field specified at a time"
        yield field_invalid(field.rpartition("[")[0], "", detail)


def find_path_errors(path: str) -> list[str]:
    """Return the reasons why a text is not a path below another directory."""
    errors = ["must be a relative path"] if path.startswith("/") else []
    return [*errors, "must not contain '..'"] if ".." in path.split("/") else errors


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
        for part in ("subPath", "subPathExpr"):
            # The server names no index here.
            for detail in find_path_errors(mount.get(part) or ""):
                yield field_invalid(f"{field}.{part}", mount[part], detail)


def _validate_probe(probe: Mapping[str, Any], field: str, kind: str) -> Iterator[FieldError]:
    yield from _validate_handler(probe, field, _HANDLERS)
    for name in _PROBE_NUMBERS:
        if (probe.get(name) or 0) < 0:
            yield field_invalid(f"{field}.{name}", probe[name], NOT_NEGATIVE)
    threshold, grace = probe.get("successThreshold") or 1, probe.get("terminationGracePeriodSeconds")
    if kind != "readinessProbe" and threshold != 1:
        yield field_invalid(f"{field}.successThreshold", threshold, "must be 1")
    if kind == "readinessProbe" and grace is not None:
        detail = "must not be set for readinessProbes"
        yield field_invalid(f"{field}.terminationGracePeriodSeconds", grace, detail)
    elif grace is not None and grace <= 0:
        yield field_invalid(f"{field}.terminationGracePeriodSeconds", grace, "must be greater than 0")


def _validate_handler(handler: Mapping[str, Any], field: str, kinds: Sequence[str]) -> Iterator[FieldError]:
    present = [kind for kind in kinds if kind in handler]
    if not present:
        yield field_required(field, "must specify a handler type")
        return
    for kind in present[1:]:
        yield field_forbidden(f"{field}.{kind}", "may not specify more than 1 handler type")
    kind, *_ = present
    action, at = handler[kind], f"{field}.{kind}"
    if kind == "exec" and not action.get("command"):
        yield field_required(f"{at}.command")
    if kind in ("httpGet", "tcpSocket", "grpc"):
        yield from validate_port(action.get("port"), f"{at}.port")
    if kind == "httpGet" and action.get("scheme", "HTTP") not in _SCHEMES:
        yield field_not_supported(f"{at}.scheme", action["scheme"], _SCHEMES)
