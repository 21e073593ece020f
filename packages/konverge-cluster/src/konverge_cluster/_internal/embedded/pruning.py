"""Pruning of custom resources by their structural schema: unknown fields are removed and reported."""

from __future__ import annotations

from typing import Any

from konverge._internal.apply import Schema
from konverge._internal.kube import Object

__all__ = ["prune", "prune_value"]

_IDENTITY = frozenset({"apiVersion", "kind", "metadata"})


def prune(obj: Object, schema: Schema) -> list[str]:
    """Remove the unknown fields in place; return their paths in the order of the object.

    The schema does not apply to identity and metadata, also in an embedded object.
    """
    unknown: list[str] = []
    _prune_fields(obj, schema, "", unknown, is_object=True)
    return unknown


def prune_value(value: Any, schema: Schema) -> list[str]:
    """Remove the unknown fields of a part of an object, in place; return their paths."""
    unknown: list[str] = []
    _prune(value, schema, "", unknown)
    return unknown


def _prune_fields(value: dict[str, Any], schema: Schema, path: str, unknown: list[str], *, is_object: bool) -> None:
    for name in list(value):
        if is_object and name in _IDENTITY:
            continue
        below = f"{path}.{name}" if path else name
        child = schema.find_child(name)
        if child is None:
            unknown.append(below)
            del value[name]
        else:
            _prune(value[name], child, below, unknown)


def _prune(value: Any, schema: Schema, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        _prune_fields(value, schema, path, unknown, is_object=schema.embedded_resource)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            _prune(item, schema.items, f"{path}[{index}]", unknown)
