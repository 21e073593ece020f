"""Values of Kubernetes objects that no API server accepts, although their types are right: ports, names, labels, hosts.

Expressions are unknown until run time. In a name, each one stands for one valid letter: only the text around it is
checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import (
    validate_dns_label,
    validate_dns_subdomain,
    validate_label_key,
    validate_label_value,
)
from konverge._internal.message_text import quote
from konverge_box._internal.file.box_kinds import MAIN, BoxKind
from konverge_box._internal.file.struct_reader import has_expression
from konverge_box._internal.file.validation_errors import Path, format_hint

__all__ = ["find_server_errors", "list_file_paths"]

Errors = Iterator[tuple[Path, str]]

_MAX_PORT = 65_535
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_PORT_NAME = re.compile(r"(?=[a-z0-9-]{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_SCHEME = re.compile(r"^[a-z]+://")
_LABELS_OF_NAMES = ("namespaces", "services", "statefulSets")
_FREE_NAMES = ("roles", "roleBindings", "clusterRoles", "clusterRoleBindings", "custom")
_SCHEDULES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_NAME_FORM = "a name of lowercase letters, digits, dashes and dots"
_LABEL_FORM = "a name of lowercase letters, digits and dashes"


def find_server_errors(kind: BoxKind, obj: Object) -> Errors:
    """Yield the errors of a complete object, each with its path in the object and its message.

    Args:
        kind: The kind in the file.
        obj: The object; its strings may contain expressions.
    """
    metadata, spec = _as_mapping(obj.get("metadata")), _as_mapping(obj.get("spec"))
    if kind.key not in _FREE_NAMES:
        is_label = kind.key in _LABELS_OF_NAMES
        yield from _check_name(metadata.get("name"), ("metadata", "name"), is_label=is_label)
    yield from _check_name(metadata.get("namespace"), ("metadata", "namespace"), is_label=True)
    yield from _check_labels(metadata.get("labels"), ("metadata", "labels"))
    yield from _check_keys(metadata.get("annotations"), ("metadata", "annotations"), _is_label_key)
    if kind.pods is not None:
        yield from _check_pods(obj, kind.pods)
    match kind.key:
        case "configMaps" | "secrets":
            for field in ("data", "stringData", "binaryData"):
                yield from _check_keys(obj.get(field), (field,), _is_data_key)
        case "services":
            for at, port in _iter_items(spec.get("ports"), ("spec", "ports")):
                yield from _check_port(port, "port", at)
                yield from _check_port(port, "targetPort", at)
        case "ingresses":
            for at, rule in _iter_items(spec.get("rules"), ("spec", "rules")):
                yield from _check_ingress_rule(rule, at)
        case "cronJobs":
            yield from _check_schedule(spec.get("schedule"), ("spec", "schedule"))
    replicas = spec.get("replicas") if kind.gvk is not None else None
    if isinstance(replicas, int) and not isinstance(replicas, bool) and replicas < 0:
        yield ("spec", "replicas"), f"expected a number from 0, found {replicas}"


def list_file_paths(kind: BoxKind, at: Path) -> list[Path]:
    """Return the paths in an entry of the file that can set the field at a path of the object, most likely first."""
    paths: list[Path] = [("manifest", *at)]
    if at[0] == "metadata":
        paths.append(at[1:])
    for name, place in kind.short.items():
        target = tuple(0 if step == MAIN else step for step in place)
        if at[: len(target)] == target:
            paths.append((name, *at[len(target) :]))
    last = at[-1]
    short = {"containerPort": "port", "number": "servicePort"}.get(str(last), last)
    if isinstance(short, str) and short in ("port", "targetPort", "servicePort", "host", "path"):
        paths.append((short,))
        if short == "targetPort":
            paths.append(("port",))
    return paths


def _check_pods(obj: Object, template: tuple[str, ...]) -> Errors:
    pods: Any = obj
    for step in template:
        pods = _as_mapping(pods).get(step)
    labels = _as_mapping(_as_mapping(pods).get("metadata")).get("labels")
    yield from _check_labels(labels, (*template, "metadata", "labels"))
    spec = _as_mapping(_as_mapping(pods).get("spec"))
    volumes = _list_volumes(obj, spec)
    for field in ("initContainers", "containers"):
        for at, container in _iter_items(spec.get(field), (*template, "spec", field)):
            yield from _check_name(container.get("name"), (*at, "name"), is_label=True)
            for place, port in _iter_items(container.get("ports"), (*at, "ports")):
                yield from _check_port(port, "containerPort", place)
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                for action in ("httpGet", "tcpSocket", "grpc"):
                    declared = _as_mapping(_as_mapping(container.get(probe)).get(action))
                    yield from _check_port(declared, "port", (*at, probe, action))
            for place, mount in _iter_items(container.get("volumeMounts"), (*at, "volumeMounts")):
                name = mount.get("name")
                if volumes is not None and isinstance(name, str) and not has_expression(name) and name not in volumes:
                    hint = format_hint(name, volumes) or "; the Pod has no volumes"
                    yield (*place, "name"), f"expected a volume of this Pod, found {quote(name)}{hint}"


def _list_volumes(obj: Object, spec: Mapping[str, Any]) -> list[str] | None:
    """Return the names of the volumes that a Pod can mount; None if an expression sets one of them."""
    own = [volume.get("name") for _, volume in _iter_items(spec.get("volumes"), ())]
    claims = _as_mapping(obj.get("spec")).get("volumeClaimTemplates")
    own += [_as_mapping(claim.get("metadata")).get("name") for _, claim in _iter_items(claims, ())]
    if any(isinstance(each, str) and has_expression(each) for each in (spec.get("volumes"), claims, *own)):
        return None
    return [name for name in own if isinstance(name, str)]


def _check_ingress_rule(rule: Mapping[str, Any], at: Path) -> Errors:
    host = rule.get("host")
    if isinstance(host, str) and not _is_valid(host.removeprefix("*."), validate_dns_subdomain):
        bare = _SCHEME.sub("", host).split("/")[0].lower()
        hint = f"; did you mean {bare}?" if bare and _is_valid(bare, validate_dns_subdomain) else ""
        yield (*at, "host"), f"expected a host name without scheme and path, found {quote(host)}{hint}"
    for place, path in _iter_items(_as_mapping(rule.get("http")).get("paths"), (*at, "http", "paths")):
        text = path.get("path", "/")
        is_absolute = not isinstance(text, str) or text.startswith(("/", "{{", "{%"))
        if not is_absolute and path.get("pathType") != "ImplementationSpecific":
            yield (*place, "path"), f"expected a path that starts with /, found {quote(text)}; did you mean /{text}?"
        service = _as_mapping(_as_mapping(path.get("backend")).get("service"))
        yield from _check_port(_as_mapping(service.get("port")), "number", (*place, "backend", "service", "port"))


def _check_port(owner: Mapping[str, Any], field: str, at: Path) -> Errors:
    port = owner.get(field)
    if isinstance(port, int) and not isinstance(port, bool):
        if not 1 <= port <= _MAX_PORT:
            yield (*at, field), f"expected a port from 1 to {_MAX_PORT}, found {port}"
    elif isinstance(port, str) and not has_expression(port) and not _PORT_NAME.fullmatch(port):
        hint = f"; did you mean {port} without quotes?" if port.isdigit() else ""
        expected = "expected a port or its name of at most 15 letters, digits and dashes"
        yield (*at, field), f"{expected}, found {quote(port)}{hint}"


def _check_name(text: Any, at: Path, *, is_label: bool) -> Errors:
    if not isinstance(text, str) or not text:
        return
    validate = validate_dns_label if is_label else validate_dns_subdomain
    if not _is_valid(text, validate):
        hint = _format_correction(text, lambda part: re.sub(r"[^a-z0-9.{}-]", "-", part.lower()), validate)
        yield at, f"expected {_LABEL_FORM if is_label else _NAME_FORM}, found {quote(text)}{hint}"


def _check_labels(labels: Any, at: Path) -> Errors:
    yield from _check_keys(labels, at, _is_label_key)
    for key, value in _as_mapping(labels).items():
        if isinstance(value, str) and not _is_valid(value, validate_label_value):
            hint = _format_correction(value, _replace_letters, validate_label_value)
            yield (
                (*at, key),
                f"expected a label of at most 63 letters, digits, '-', '_' and '.', found {quote(value)}{hint}",
            )


def _check_keys(values: Any, at: Path, is_valid: Callable[[str], bool]) -> Errors:
    for key in _as_mapping(values):
        if not is_valid(key):
            changed = _replace_letters(key)
            hint = f"; did you mean {changed}?" if is_valid(changed) else ""
            yield (*at, key), f"expected a key of letters, digits, '-', '_' and '.', found {quote(key)}{hint}"


def _check_schedule(text: Any, at: Path) -> Errors:
    if not isinstance(text, str) or has_expression(text) or text.startswith("@every "):
        return
    from konverge_box._internal.expressions.schedules import parse_cron

    try:
        parse_cron(text)
    except ValueError as error:
        named = f"@{text.strip().lower()}"
        yield at, f"{error}{f'; did you mean {named}?' if named in _SCHEDULES else ''}"


def _is_valid(text: str, validate: Callable[[str], list[str]]) -> bool:
    if "{%" in text or "{#" in text:
        return True
    return not validate(_EXPRESSION.sub("x", text))


def _is_label_key(key: str) -> bool:
    return _is_valid(key, validate_label_key)


def _is_data_key(key: str) -> bool:
    return "{%" in key or (bool(_DATA_KEY.fullmatch(_EXPRESSION.sub("x", key))) and key not in (".", ".."))


def _replace_letters(text: str) -> str:
    return re.sub(r"[^-._/a-zA-Z0-9]+", "-", text).strip("-") if "{{" not in text else text


def _format_correction(text: str, change: Callable[[str], str], validate: Callable[[str], list[str]]) -> str:
    """Return a suggestion in which only the text outside of expressions changes; empty if that is not enough."""
    parts = _EXPRESSION.split(text)
    expressions = [*_EXPRESSION.findall(text), ""]
    changed = "".join(f"{change(part)}{each}" for part, each in zip(parts, expressions, strict=True))
    if "{{" not in text:
        changed = changed.strip("-.")
    return f"; did you mean {changed}?" if changed and changed != text and _is_valid(changed, validate) else ""


def _iter_items(value: Any, at: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield (*at, index), item


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
