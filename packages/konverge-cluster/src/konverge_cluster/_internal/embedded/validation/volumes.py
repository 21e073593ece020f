"""Validation of the volumes of a pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from konverge._internal.kube.name_validation import validate_dns_label
from konverge._internal.kube.quantities import quantity_to_fraction
from konverge_cluster._internal.embedded.validation.containers import find_path_errors, validate_field_reference
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)

__all__ = ["validate_volumes"]

_MODE_RANGE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_DOWNWARD_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)


def validate_volumes(volumes: Sequence[Mapping[str, Any]], field: str) -> Iterator[FieldError]:
    """Yield the validation errors of the volumes of a pod spec."""
    taken: set[str] = set()
    for index, volume in enumerate(volumes):
        at, name = f"{field}[{index}]", volume.get("name")
        for kind in [kind for kind in volume if kind != "name"][1:]:
            yield field_forbidden(f"{at}.{kind}", "may not specify more than 1 volume type")
        yield from _validate_source(volume, at)
        if not name:
            yield field_required(f"{at}.name")
            continue
        for detail in validate_dns_label(name):
            yield field_invalid(f"{at}.name", name, detail)
        if name in taken:
            yield field_duplicate(f"{at}.name", name)
        taken.add(name)


def _validate_source(volume: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    for kind, name in (("configMap", "name"), ("secret", "secretName"), ("persistentVolumeClaim", "claimName")):
        if kind in volume and not volume[kind].get(name):
            yield field_required(f"{field}.{kind}.{name}")
    for kind in ("configMap", "secret", "downwardAPI", "projected"):
        mode = (volume.get(kind) or {}).get("defaultMode")
        if mode is not None and not 0 <= mode <= 0o777:
            yield field_invalid(f"{field}.{kind}.defaultMode", mode, _MODE_RANGE)
    for kind in ("configMap", "secret"):
        for index, item in enumerate((volume.get(kind) or {}).get("items") or ()):
            yield from _validate_item(item, f"{field}.{kind}.items[{index}]")
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        # The server names no index here.
        yield from _validate_path(item.get("path", ""), f"{field}.downwardAPI.path")
        if item.get("fieldRef") is not None:
            at = f"{field}.downwardAPI.fieldRef"
            yield from validate_field_reference(item["fieldRef"], at, _DOWNWARD_FIELDS)
    size = (volume.get("emptyDir") or {}).get("sizeLimit")
    if size is not None and quantity_to_fraction(size) < 0:
        detail = "SizeLimit field must be a valid resource quantity"
        yield field_forbidden(f"{field}.emptyDir.sizeLimit", detail)
    if "hostPath" in volume:
        yield from _validate_host_path(volume["hostPath"], f"{field}.hostPath")


def _validate_item(item: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    if not item.get("key"):
        yield field_required(f"{field}.key")
    yield from _validate_path(item.get("path", ""), f"{field}.path")
    if item.get("mode") is not None and not 0 <= item["mode"] <= 0o777:
        yield field_invalid(f"{field}.mode", item["mode"], _MODE_RANGE)


def _validate_path(path: str, field: str) -> Iterator[FieldError]:
    if not path:
        yield field_required(field)
    for detail in find_path_errors(path):
        yield field_invalid(field, path, detail)


def _validate_host_path(source: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    path = source.get("path", "")
    if not path:
        yield field_required(f"{field}.path")
    elif ".." in path.split("/"):
        yield field_invalid(f"{field}.path", path, "must not contain '..'")
    if source.get("type") is not None and source["type"] not in _HOST_PATH_TYPES:
        yield field_not_supported(f"{field}.type", source["type"], _HOST_PATH_TYPES)
