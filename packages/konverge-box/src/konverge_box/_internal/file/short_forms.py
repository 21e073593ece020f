"""Expansion of a resource's short forms to the object of the Kubernetes API; its strings may contain expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge._internal.apply.schema import Schema
from konverge._internal.kube import Object
from konverge_box._internal.file.box_kinds import MAIN, BoxKind, ObjectPath
from konverge_box._internal.file.resource_entries import (
    CustomEntry,
    IngressEntry,
    PodsEntry,
    ResourceEntry,
    ScalingEntry,
    ServiceEntry,
)

__all__ = ["ITEM_NAME", "OWN_NAME", "expand_short_form", "merge_values"]

OWN_NAME = "{{ metadata.name }}"
"""The default name of a resource: the custom resource's name."""

ITEM_NAME = "{{ metadata.name }}-{{ key }}"
"""The default name of a resource with ``forEach``."""

_NAME_LABEL = "app.kubernetes.io/name"


def expand_short_form(kind: BoxKind, entry: ResourceEntry, short: Mapping[str, Any], schema: Schema | None) -> Object:
    """Return the object of an entry.

    Args:
        kind: The kind of the entry.
        entry: The fields that all kinds share, or that set more than one field of the object.
        short: The short forms and their values.
        schema: The schema of the kind, by which lists are merged; None if unknown.
    """
    expanded: Object = {"apiVersion": "", "kind": "", "metadata": _build_metadata(entry)}
    if kind.gvk is not None:
        expanded |= {"apiVersion": kind.gvk.api_version, "kind": kind.gvk.kind}
    elif isinstance(entry, CustomEntry):
        expanded |= {"apiVersion": entry.api_version or "", "kind": entry.kind or ""}
    for name, value in short.items():
        if name == "env" and isinstance(value, dict):
            value = [{"name": variable, "value": text} for variable, text in value.items()]
        _set_value(expanded, kind.short[name], value)
    match entry:
        case PodsEntry():
            _expand_pods(expanded, kind, entry, short)
        case ServiceEntry() if entry.port is not None:
            target = entry.port if entry.target_port is None else entry.target_port
            _set_value(expanded, ("spec", "ports"), [{"port": entry.port, "targetPort": target}])
        case IngressEntry() if entry.host is not None:
            backend = {
                "service": {"name": entry.service_name or _get_name(entry), "port": {"number": entry.service_port}}
            }
            rule = {"path": entry.path, "pathType": "Prefix", "backend": backend}
            _set_value(expanded, ("spec", "rules"), [{"host": entry.host, "http": {"paths": [rule]}}])
        case ScalingEntry():
            _expand_scaling(expanded, entry, short)
    expanded = merge_values(expanded, entry.manifest, schema)
    _add_selector(expanded, kind)
    return expanded


def _build_metadata(entry: ResourceEntry) -> dict[str, Any]:
    parts = {"namespace": entry.namespace, "labels": entry.labels, "annotations": entry.annotations}
    return {"name": _get_name(entry), **{name: value for name, value in parts.items() if value}}


def _get_name(entry: ResourceEntry) -> str:
    manifest = entry.manifest.get("metadata")
    inner = manifest.get("name") if isinstance(manifest, dict) else None
    return entry.name or (inner if isinstance(inner, str) else "") or (ITEM_NAME if entry.for_each else OWN_NAME)


def _expand_pods(found: Object, kind: BoxKind, entry: PodsEntry, short: Mapping[str, Any]) -> None:
    at = kind.pods or ()
    main = (*at, "spec", "containers", MAIN)
    if entry.port is not None:
        _set_value(found, (*main, "ports"), [{"containerPort": entry.port}])
    describes_one = entry.port is not None or any(MAIN in kind.short[name] for name in short)
    if describes_one or not _get_value(entry.manifest, (*at, "spec", "containers")):
        _set_value(found, (*main, "name"), entry.container_name)
    if kind.key in ("jobs", "cronJobs") and "restartPolicy" not in short:
        _set_value(found, (*at, "spec", "restartPolicy"), "Never")


def _expand_scaling(found: Object, entry: ScalingEntry, short: Mapping[str, Any]) -> None:
    if "scaleTargetRef" not in short:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": _get_name(entry)}
        _set_value(found, ("spec", "scaleTargetRef"), target)
    if entry.targetCPUUtilizationPercentage is not None:
        usage = {"type": "Utilization", "averageUtilization": entry.targetCPUUtilizationPercentage}
        _set_value(found, ("spec", "metrics"), [{"type": "Resource", "resource": {"name": "cpu", "target": usage}}])


def _add_selector(found: Object, kind: BoxKind) -> None:
    """Label the pods with the resource's name, and select them by it in the workload and in its Service."""
    labels = {_NAME_LABEL: found["metadata"]["name"]}
    if kind.selects is not None:
        spec = found.setdefault("spec", {})
        if isinstance(spec, dict) and "selector" not in spec and spec.get("type") != "ExternalName":
            _set_value(found, kind.selects, labels)
    if kind.pods is not None:
        chosen = _get_value(found, kind.selects) if kind.selects is not None else labels
        at = (*kind.pods, "metadata", "labels")
        own = _get_value(found, at)
        _set_value(
            found, at, {**(chosen if isinstance(chosen, dict) else {}), **(own if isinstance(own, dict) else {})}
        )


def _get_value(found: Any, path: ObjectPath) -> Any:
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _set_value(found: Object, path: ObjectPath, value: Any) -> None:
    """Set a value at a path; a step that is not a mapping stays unchanged because the schema reports it."""
    step, *rest = path
    if not rest:
        found[step] = value
        return
    below = found.setdefault(step, [{}] if rest[0] == MAIN else {})
    if rest[0] == MAIN:
        below, rest = below[0], rest[1:]
    if isinstance(below, dict):
        _set_value(below, tuple(rest), value)


def merge_values(below: Any, above: Any, schema: Schema | None) -> Any:
    """Merge one value over another: mappings by field, lists with keys by item; anything else is replaced."""
    if isinstance(below, dict) and isinstance(above, dict):
        both = dict(below)
        for name, value in above.items():
            child = schema.find_child(name) if schema is not None else None
            both[name] = merge_values(below[name], value, child) if name in below else value
        return both
    keys = schema.list_map_keys if schema is not None and schema.list_type == "map" else ()
    if keys and isinstance(below, list) and isinstance(above, list):
        items = schema.items if schema is not None else None
        merged = list(below)
        for each in above:
            index = next((place for place, item in enumerate(merged) if _is_same_item(item, each, keys)), None)
            if index is None:
                merged.append(each)
            else:
                merged[index] = merge_values(merged[index], each, items)
        return merged
    return above


def _is_same_item(one: Any, other: Any, keys: tuple[str, ...]) -> bool:
    return isinstance(one, dict) and isinstance(other, dict) and all(one.get(key) == other.get(key) for key in keys)
