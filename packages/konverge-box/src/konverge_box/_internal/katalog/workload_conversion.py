"""Conversion of the parts that all kinds with pods share: container, environment, probes, volumes, security."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_box._internal.expressions import is_expression
from konverge_box._internal.file.validation_errors import Path
from konverge_box._internal.katalog.expression_translator import TemplateUse
from konverge_box._internal.katalog.findings import PROFILE, FindingReason, KatalogFields
from konverge_box._internal.katalog.known_fields import KnownFields
from konverge_box._internal.katalog.value_conversion import (
    MISSING,
    convert_labels,
    convert_profiled_mapping,
    convert_text_field,
    convert_tree,
    set_if_present,
)

__all__ = ["OWNER_LABEL", "convert_access_modes", "convert_pods", "label_pods"]

OWNER_LABEL = "orkestra-owner"
"""The default selector of Services in a Katalog; pods in a box get it if a selector uses it."""

_AUTOSCALE = FindingReason(
    "scaling by conditions", "replicas of a box do not depend on conditions", "use horizontalPodAutoscalers"
)
_SAME: dict[str, tuple[str, TemplateUse]] = {
    "imagePullPolicy": ("imagePullPolicy", TemplateUse.VALUE),
    "command": ("command", TemplateUse.TEXT),
    "args": ("args", TemplateUse.TEXT),
    "workingDirectory": ("workingDir", TemplateUse.VALUE),
    "serviceAccountName": ("serviceAccountName", TemplateUse.VALUE),
    "nodeSelector": ("nodeSelector", TemplateUse.TEXT),
    "tolerations": ("tolerations", TemplateUse.VALUE),
    "affinity": ("affinity", TemplateUse.VALUE),
}
_NUMBERS: dict[str, tuple[str, ...]] = {
    "deployments": ("replicas",),
    "replicaSets": ("replicas",),
    "statefulSets": ("replicas",),
    "jobs": ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "completions", "parallelism"),
    "cronJobs": (
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
        "startingDeadlineSeconds",
    ),
    "pods": (),
}
_PROBE_NUMBERS = (
    "initialDelaySeconds",
    "periodSeconds",
    "timeoutSeconds",
    "failureThreshold",
    "successThreshold",
)


def convert_pods(fields: KatalogFields, kind: str, known: KnownFields) -> dict[str, Any]:
    """Convert a workload to its short forms."""
    found: dict[str, Any] = {}
    image, tag = (
        convert_text_field(fields, "image", TemplateUse.REQUIRED, known),
        convert_text_field(fields, "tag", TemplateUse.REQUIRED, known),
    )
    if image not in (None, MISSING):
        found["image"] = image if tag in (None, MISSING) else f"{image}:{tag}"
    for key in _NUMBERS[kind]:
        set_if_present(found, key, convert_text_field(fields, key, TemplateUse.NUMBER, known))
    if kind in ("jobs", "cronJobs"):
        set_if_present(found, "suspend", convert_text_field(fields, "suspend", TemplateUse.BOOLEAN, known))
    for key, (here, use) in _SAME.items():
        if key in fields:
            set_if_present(found, here, convert_tree(fields, fields.take(key), fields.build_path(key), use, known))
    if mounts := fields.take_typed("volumeMounts", list):
        found["volumeMounts"] = convert_tree(
            fields, mounts, fields.build_path("volumeMounts"), TemplateUse.VALUE, known
        )
    _convert_port(fields, found, known)
    env = _convert_environment(fields, known)
    more_env, sources = _convert_environment_sources(fields, known)
    if env or more_env:
        plain = not more_env and all(set(each) == {"name", "value"} for each in env)
        found["env"] = {each["name"]: each["value"] for each in env} if plain else [*env, *more_env]
    set_if_present(found, "envFrom", sources or None)
    set_if_present(found, "imagePullSecrets", _convert_pull_secrets(fields, known))
    for key, here in (("resources", "resources"), ("securityContext", "securityContext")):
        set_if_present(found, here, convert_profiled_mapping(fields, key, known))
    set_if_present(found, "podSecurityContext", convert_profiled_mapping(fields, "podSecurity", known))
    _convert_probes(fields, found, known)
    if "volumes" in fields:
        set_if_present(found, "volumes", _convert_volumes(fields, known))
    if kind in ("deployments", "statefulSets"):
        _convert_rolling_update(fields, kind, found, known)
    if kind == "statefulSets":
        set_if_present(found, "serviceName", convert_text_field(fields, "serviceName", TemplateUse.VALUE, known))
        _convert_claims(fields, found, known)
    if kind == "cronJobs":
        set_if_present(found, "schedule", convert_text_field(fields, "schedule", TemplateUse.TEXT, known))
        policy = convert_text_field(fields, "concurrencyPolicy", TemplateUse.VALUE, known)
        if isinstance(policy, str) and not is_expression(policy):
            policy = policy.capitalize()
        elif isinstance(policy, str):
            fields.add_note("concurrencyPolicy", "the value must be Allow, Forbid or Replace, with this case")
        set_if_present(found, "concurrencyPolicy", policy)
    if "autoscale" in fields:
        fields.take("autoscale")
        fields.notes.add_finding(fields.build_path("autoscale"), _AUTOSCALE)
    return found


def _convert_port(fields: KatalogFields, found: dict[str, Any], known: KnownFields) -> None:
    port, protocol = (
        convert_text_field(fields, "port", TemplateUse.NUMBER, known),
        convert_text_field(fields, "protocol", TemplateUse.VALUE, known),
    )
    if port in (None, MISSING, 0):
        if protocol is not None:
            fields.reject_field("protocol", "the protocol of a port", "it has no port", "add the port")
    elif protocol in (None, MISSING):
        found["port"] = port
    else:
        found["ports"] = [{"containerPort": port, "protocol": protocol}]


def _convert_environment(fields: KatalogFields, known: KnownFields) -> list[dict[str, Any]]:
    value, at = fields.take("env"), fields.build_path("env")
    if isinstance(value, Mapping):  # early generations: values, or mappings that contain them, by name
        value = [
            {"name": name, **(each if isinstance(each, Mapping) else {"value": each})} for name, each in value.items()
        ]
    elif value is not None and not isinstance(value, list):
        fields.reject_field("env", "a value of an unexpected type", "expected a list", "convert it by hand")
        value = []
    found: list[dict[str, Any]] = []
    for index, each in enumerate(value or []):
        variable = KatalogFields(fields.notes, each, (*at, index))
        name = convert_text_field(variable, "name", TemplateUse.REQUIRED, known)
        made: dict[str, Any] = {"name": name}
        if "valueFrom" in variable:
            source = variable.take("valueFrom")
            set_if_present(
                made,
                "valueFrom",
                convert_tree(variable, source, variable.build_path("valueFrom"), TemplateUse.VALUE, known),
            )
        else:
            content = convert_text_field(variable, "value", TemplateUse.TEXT, known)
            set_if_present(made, "value", "" if content is None else content)
        variable.report_remaining()
        if name not in (None, MISSING) and len(made) > 1:
            found.append(made)
        elif name is None:
            fields.notes.add_finding(variable.path, FindingReason("a variable", "it has no name", "remove it"))
    return found


def _convert_environment_sources(
    fields: KatalogFields, known: KnownFields
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Convert ``envFrom``; return single variables and whole sources."""
    block = fields.take_mapping("envFrom")
    variables: list[dict[str, Any]] = []
    sources: list[dict[str, Any]] = []
    for key, reference in (("secretRef", "secretKeyRef"), ("configMapRef", "configMapKeyRef")):
        value = block.take(key)
        for index, each in enumerate(value if isinstance(value, list) else [value] if value is not None else []):
            at: Path = (*block.path, key, index)
            source = KatalogFields(fields.notes, {"name": each} if isinstance(each, str) else each, at)
            name = convert_text_field(source, "name", TemplateUse.REQUIRED, known)
            prefix, suffix = (
                convert_text_field(source, word, TemplateUse.TEXT, known) or "" for word in ("prefix", "suffix")
            )
            keys = convert_tree(
                source, source.take_typed("keys", list), source.build_path("keys"), TemplateUse.REQUIRED, known
            )
            optional = source.take_typed("optional", bool)
            source.report_remaining()
            if MISSING in (name, prefix, suffix):
                continue
            if name is None:
                fields.notes.add_finding(at, FindingReason("a source of variables", "it has no name", "name it"))
                continue
            more = {} if optional is None else {"optional": optional}
            for word in keys or []:
                variables.append(
                    {"name": f"{prefix}{word}{suffix}", "valueFrom": {reference: {"name": name, "key": word, **more}}}
                )
            if suffix and not keys:
                source.reject_field(
                    "suffix", "a suffix for all keys", "Kubernetes supports only a prefix", "list the keys"
                )
            if keys is None:
                sources.append({**({"prefix": prefix} if prefix else {}), key: {"name": name, **more}})
    block.report_remaining()
    return variables, sources


def _convert_pull_secrets(fields: KatalogFields, known: KnownFields) -> list[dict[str, Any]] | None:
    value = fields.take_typed("imagePullSecrets", list)
    if value is None:
        return None
    names = convert_tree(fields, value, fields.build_path("imagePullSecrets"), TemplateUse.VALUE, known)
    return [each if isinstance(each, dict) else {"name": each} for each in names]


def _convert_probes(fields: KatalogFields, found: dict[str, Any], known: KnownFields) -> None:
    block = fields.take_mapping("probes")
    for word in ("startup", "liveness", "readiness"):
        if word in block:
            made = _convert_probe(block.take_mapping(word), found, known)
            if made:
                found[f"{word}Probe"] = made
    block.report_remaining()


def _convert_probe(probe: KatalogFields, workload: dict[str, Any], known: KnownFields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if probe.take("profile") is not None:
        probe.notes.add_finding(probe.build_path("profile"), PROFILE)
    for key in _PROBE_NUMBERS:
        set_if_present(found, key, convert_text_field(probe, key, TemplateUse.NUMBER, known))
    for key in ("httpGet", "tcpSocket", "exec", "grpc"):
        if key in probe:
            set_if_present(
                found, key, convert_tree(probe, probe.take(key), probe.build_path(key), TemplateUse.VALUE, known)
            )
    kind, path = probe.take_text("type"), convert_text_field(probe, "path", TemplateUse.VALUE, known)
    port, command = convert_text_field(probe, "port", TemplateUse.NUMBER, known), probe.take("command")
    if port in (None, MISSING):
        ports = workload.get("ports")
        port = workload.get("port") or (ports[0]["containerPort"] if ports else None)
    match kind:
        case "http" | "tcp" | "grpc" if port is None:
            probe.reject_field("type", "a probe", "neither it nor the container has a port", "add a port")
            return {}
        case "http":
            found["httpGet"] = {"path": path if path not in (None, MISSING) else "/", "port": port}
        case "tcp":
            found["tcpSocket"] = {"port": port}
        case "grpc":
            found["grpc"] = {"port": port}
        case "exec":
            found["exec"] = {
                "command": convert_tree(probe, command, probe.build_path("command"), TemplateUse.TEXT, known)
            }
        case None if path is not None or command is not None:
            probe.notes.add_finding(
                probe.path, FindingReason("a probe", "its type is missing", "add type: http, tcp, exec or grpc")
            )
        case str():
            probe.reject_field("type", "a probe", f"unknown type {kind[:40]!r}", "use http, tcp, exec or grpc")
    if kind in ("tcp", "grpc", "exec") and path is not None:
        probe.reject_field("path", "a path", f"a probe of type {kind} has none", "remove it")
    if kind in ("http", "tcp", "grpc") and command is not None:
        probe.reject_field("command", "a command", f"a probe of type {kind} has none", "remove it")
    probe.report_remaining()
    return found if {"httpGet", "tcpSocket", "exec", "grpc"} & found.keys() else {}


def _convert_volumes(fields: KatalogFields, known: KnownFields) -> list[Any] | None:
    made = convert_tree(
        fields, fields.take_typed("volumes", list), fields.build_path("volumes"), TemplateUse.VALUE, known
    )
    for volume in made or []:
        if not isinstance(volume, dict):
            continue
        for kind, name in (("secret", "secretName"), ("persistentVolumeClaim", "claimName")):
            source = volume.get(kind)
            if isinstance(source, dict) and "name" in source and name not in source:
                volume[kind] = {name: source.pop("name"), **source}
        if isinstance(volume.get("hostPath"), str):
            volume["hostPath"] = {"path": volume["hostPath"]}
    return made if isinstance(made, list) else None


def _convert_rolling_update(fields: KatalogFields, kind: str, found: dict[str, Any], known: KnownFields) -> None:
    if "rollingUpdate" not in fields:
        return
    block = fields.take_mapping("rollingUpdate")
    if block.take("profile") is not None:
        fields.notes.add_finding(block.build_path("profile"), PROFILE)
    bounds: dict[str, Any] = {}
    for key in ("maxSurge", "maxUnavailable"):
        value = convert_text_field(block, key, TemplateUse.NUMBER, known)
        if key == "maxSurge" and kind == "statefulSets" and value is not None:
            block.reject_field(key, "a surge", "a StatefulSet has none", "remove it")
        else:
            set_if_present(bounds, key, value)
    block.report_remaining()
    if bounds:
        found["strategy" if kind == "deployments" else "updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": bounds,
        }


def _convert_claims(fields: KatalogFields, found: dict[str, Any], known: KnownFields) -> None:
    claims: list[dict[str, Any]] = []
    for each in fields.take_items("volumeClaimTemplates"):
        name = convert_text_field(each, "name", TemplateUse.REQUIRED, known)
        name = "data" if name in (None, MISSING) else name
        mount = convert_text_field(each, "mountPath", TemplateUse.REQUIRED, known)
        spec: dict[str, Any] = {"accessModes": convert_access_modes(each, known)}
        _, storage_class = each.take_first("storageClass", "storageClassName")
        set_if_present(
            spec,
            "storageClassName",
            convert_tree(each, storage_class, each.build_path("storageClass"), TemplateUse.VALUE, known),
        )
        size = convert_text_field(
            each, "storageSize" if "storageSize" in each else "storage", TemplateUse.REQUIRED, known
        )
        if size in (None, MISSING):
            fields.notes.add_finding(
                each.path, FindingReason("a claim", "it has no convertible size", "write it by hand")
            )
            continue
        spec["resources"] = {"requests": {"storage": size}}
        each.report_remaining()
        claims.append({"metadata": {"name": name}, "spec": spec})
        found.setdefault("volumeMounts", []).append(
            {"name": name, "mountPath": "/data" if mount in (None, MISSING) else mount}
        )
    if claims:
        found["volumeClaimTemplates"] = claims


def convert_access_modes(fields: KatalogFields, known: KnownFields) -> Any:
    """Convert the access modes of a claim or a volume; a Katalog has a default."""
    modes = fields.take_typed("accessModes", list)
    return convert_tree(fields, modes, fields.build_path("accessModes"), TemplateUse.VALUE, known) or ["ReadWriteOnce"]


def label_pods(fields: KatalogFields, found: dict[str, Any], known: KnownFields) -> None:
    """Convert labels, which a Katalog sets on the object and on its pods."""
    made = convert_labels(fields, "labels", known)
    if made:
        found["labels"] = made
        found["podLabels"] = dict(made)
