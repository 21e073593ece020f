"""Conversion of a CustomResourceDefinition to served resources, and the update of its status."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from konverge._internal.apply import Schema, build_custom_resource_schema
from konverge._internal.kube import Condition, GroupVersionKind, Object, RestMapping, find_condition, set_condition
from konverge_cluster._internal.embedded.resource_registry import Column, ScalePaths, ServedResource
from konverge_cluster._internal.embedded.storage_conversion import (
    StorageConversion,
    VersionConversion,
    WebhookConversion,
)

__all__ = ["CLEANUP_FINALIZER", "DEFINITIONS", "accept_names", "build_resources", "get_storage_name"]

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"

_VERBS = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
_AGE = Column(
    name="Age",
    type="date",
    path=".metadata.creationTimestamp",
    description="CreationTimestamp is a timestamp representing the server time when this object was created.",
)
_PLAIN_PATH = re.compile(r"(\.[A-Za-z0-9_-]+)+")


def get_storage_name(definition: Object) -> str:
    """Return the storage name of the definition's objects, which is the definition's own name."""
    spec = definition["spec"]
    return f"{spec['names']['plural']}.{spec['group']}"


def build_resources(definition: Object) -> list[ServedResource]:
    """Return the resources of the served versions; none until the names are accepted."""
    established = find_condition(definition, "Established")
    if established is None or established.status != "True":
        return []
    versions = definition["spec"].get("versions") or []
    return [_build_resource(definition, version) for version in versions if version.get("served")]


def _build_resource(definition: Object, version: Mapping[str, Any]) -> ServedResource:
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    group = spec["group"]
    gvk = GroupVersionKind(group, version["name"], names["kind"])
    subresources = version.get("subresources") or {}
    stored = next(entry["name"] for entry in spec["versions"] if entry.get("storage"))
    # Objects that were stored before a change of the definition have the defaults and fields of another schema.
    is_changed = definition["metadata"].get("generation", 1) > 1
    converts = len(spec["versions"]) > 1 or stored != version["name"] or is_changed
    return ServedResource(
        mapping=RestMapping(
            gvk=gvk,
            plural=names["plural"],
            namespaced=spec["scope"] == "Namespaced",
            singular=names["singular"],
            short_names=tuple(names.get("shortNames") or ()),
            verbs=_VERBS,
            subresources=frozenset(name for name in ("status", "scale") if subresources.get(name) is not None),
            categories=tuple(names.get("categories") or ()),
        ),
        storage=get_storage_name(definition),
        has_generation=True,
        unconditional_update=False,
        selectable_fields=tuple(field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ()),
        schema=_build_schema(version),
        is_custom=True,
        scale=_parse_scale_paths(subresources.get("scale")),
        columns=_build_columns(version),
        list_kind_override=names["listKind"],
        conversion=_build_conversion(spec, gvk.api_version, f"{group}/{stored}") if converts else None,
    )


def _build_conversion(spec: Mapping[str, Any], served: str, stored: str) -> StorageConversion:
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy") == "Webhook":
        return WebhookConversion(served, stored, (conversion.get("webhook") or {}).get("clientConfig") or {})
    group = spec["group"]
    schemas = {f"{group}/{version['name']}": _build_schema(version) for version in spec["versions"]}
    return VersionConversion(served, stored, schemas)


def _build_schema(version: Mapping[str, Any]) -> Schema:
    return build_custom_resource_schema((version.get("schema") or {}).get("openAPIV3Schema"))


def _parse_scale_paths(scale: Mapping[str, Any] | None) -> ScalePaths | None:
    if scale is None:
        return None
    return ScalePaths(
        spec=_split_path(scale.get("specReplicasPath")),
        status=_split_path(scale.get("statusReplicasPath")),
        selector=_split_path(scale.get("labelSelectorPath")),
    )


def _split_path(path: Any) -> tuple[str, ...]:
    return tuple(path[1:].split(".")) if isinstance(path, str) and _PLAIN_PATH.fullmatch(path) else ()


def _build_columns(version: Mapping[str, Any]) -> tuple[Column, ...]:
    added = version.get("additionalPrinterColumns")
    if not added:
        return (_AGE,)
    return tuple(
        Column(
            name=column.get("name", ""),
            type=column.get("type", "string"),
            path=column.get("jsonPath", ""),
            format=column.get("format", ""),
            description=column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column.get('jsonPath', '')}",
            priority=column.get("priority", 0),
        )
        for column in added
    )


def accept_names(definition: Object, others: Iterable[ServedResource], now: datetime) -> None:
    """Compare the names of a definition with the names in use, and update its status, in place.

    Args:
        definition: The definition; valid.
        others: The served resources of the same group.
        now: The time for the conditions.
    """
    spec = definition["spec"]
    names = spec["names"]
    status = definition.setdefault("status", {})
    versions = spec.get("versions") or []
    stored = [entry["name"] for entry in versions if entry.get("storage")]
    status["storedVersions"] = list(dict.fromkeys([*status.get("storedVersions", ()), *stored]))
    requested_names = {
        **names,
        "singular": names.get("singular") or names["kind"].lower(),
        "listKind": names.get("listKind") or f"{names['kind']}List",
    }
    conflicts = _find_name_conflicts(requested_names, list(others))
    if conflicts:
        # The condition reports the last of several conflicts; names without a conflict are accepted already.
        taken, reason = list(conflicts.items())[-1]
        status["acceptedNames"] = {"plural": "", "kind": ""} | {
            name: value for name, value in requested_names.items() if name not in conflicts
        }
        name = ",".join(requested_names[taken]) if isinstance(requested_names[taken], list) else requested_names[taken]
        message = f'"{name}" is already in use'
        set_condition(definition, Condition("NamesAccepted", "False", reason, message), now)
        if find_condition(definition, "Established") is None:
            refused = Condition("Established", "False", "NotAccepted", "not all names are accepted")
            set_condition(definition, refused, now)
        return
    status["acceptedNames"] = requested_names
    set_condition(definition, Condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"), now)
    message = "the initial names have been accepted"
    set_condition(definition, Condition("Established", "True", "InitialNamesAccepted", message), now)


def _find_name_conflicts(requested_names: Mapping[str, Any], others: list[ServedResource]) -> dict[str, str]:
    """Return the names that other resources of the API group use, each with the reason of its conflict.

    The order is that in which the API server checks them.
    """
    words = {
        word for other in others for word in (other.mapping.plural, other.mapping.singular, *other.mapping.short_names)
    }
    kinds = {kind for other in others for kind in (other.gvk.kind, other.list_kind)}
    judged = (
        ("plural", "PluralConflict", requested_names["plural"] in words),
        ("singular", "SingularConflict", requested_names["singular"] in words),
        ("shortNames", "ShortNamesConflict", bool(words & set(requested_names.get("shortNames") or ()))),
        ("kind", "KindConflict", requested_names["kind"] in kinds),
        ("listKind", "ListKindConflict", requested_names["listKind"] in kinds),
    )
    return {name: reason for name, reason, is_taken in judged if is_taken}
