"""The table columns of a resource and the cells of an object."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from konverge._internal.kube import Object, parse_time
from konverge_cluster._internal.embedded.resource_registry import Column, ServedResource
from konverge_cluster._internal.embedded.tables.jsonpath import find_value
from konverge_cluster._internal.embedded.tables.network import NETWORK
from konverge_cluster._internal.embedded.tables.other_kinds import OTHER_KINDS
from konverge_cluster._internal.embedded.tables.pods import POD
from konverge_cluster._internal.embedded.tables.printers import TablePrinter, format_duration
from konverge_cluster._internal.embedded.tables.workloads import WORKLOADS

__all__ = ["build_row", "list_columns"]

_PRINTERS: Mapping[str, TablePrinter] = {"pods": POD, **WORKLOADS, **NETWORK, **OTHER_KINDS}
_NAME = Column(name="Name", type="string", path="", format="name")


def list_columns(resource: ServedResource) -> list[Object]:
    """Return the definitions of the resource's columns."""
    return list(_build_definitions(_find_columns(resource)))


def build_row(resource: ServedResource, obj: Object, now: datetime) -> list[Any]:
    """Return the cells of an object, one for each column.

    Args:
        resource: The resource of the object.
        obj: The object in the served form.
        now: The current time, for ages.
    """
    printer = None if resource.is_custom else _PRINTERS.get(resource.storage)
    if printer is not None:
        return printer.cells(obj, now)
    return [
        obj["metadata"].get("name", ""),
        *(_format_cell(column, find_value(obj, column.path), now) for column in resource.columns),
    ]


def _find_columns(resource: ServedResource) -> tuple[Column, ...]:
    printer = None if resource.is_custom else _PRINTERS.get(resource.storage)
    return printer.columns if printer is not None else (_NAME, *resource.columns)


@lru_cache(maxsize=256)
def _build_definitions(columns: tuple[Column, ...]) -> tuple[Object, ...]:
    return tuple(
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns
    )


def _format_cell(column: Column, value: Any, now: datetime) -> Any:
    """Return the cell of a custom resource's column; None if the value does not fit its type."""
    if value is None:
        return None
    match column.type:
        case "string":
            if isinstance(value, str):
                return value
            return msgspec.json.encode(value).decode()
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return _format_age(value, now)
        case _:
            return None


def _format_age(value: Any, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        return format_duration(now - parse_time(value))
    except ValueError:
        return "<invalid>"
