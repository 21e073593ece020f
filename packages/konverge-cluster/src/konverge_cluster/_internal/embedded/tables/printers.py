"""Shared functions for cells: ages, selectors, containers, and the declaration of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from konverge._internal.kube import Object, parse_time
from konverge._internal.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge_cluster._internal.embedded.resource_registry import Column

__all__ = [
    "NONE",
    "UNKNOWN",
    "Cells",
    "TablePrinter",
    "build_printer",
    "format_age",
    "format_containers_and_images",
    "format_duration",
    "format_labels",
    "format_selector",
    "format_since",
    "get_field",
]

NONE = "<none>"
UNKNOWN = "<unknown>"

Cells: TypeAlias = Callable[[Object, datetime], list[Any]]
"""Returns the cells of an object at a time, the name first."""


@dataclass(frozen=True, slots=True)
class TablePrinter:
    """The columns and cells of a kind.

    Attributes:
        columns: The columns of the kind.
        cells: Returns the cells of an object.
    """

    columns: tuple[Column, ...]
    cells: Cells


def build_printer(columns: str, cells: Cells) -> TablePrinter:
    """Return the printer of a kind.

    Args:
        columns: The names of the columns, separated by commas. ``+`` at the start marks a column of the wide form. At
            the end, ``#`` marks integers, ``?`` booleans and ``@`` dates.
        cells: Returns the cells of an object.
    """
    return TablePrinter(tuple(_parse_column(text.strip()) for text in columns.split(",")), cells)


_TYPES = {"#": "integer", "?": "boolean", "@": "date"}


def _parse_column(text: str) -> Column:
    name = text.removeprefix("+")
    kind = _TYPES.get(name[-1], "string")
    name = name.rstrip("#?@")
    return Column(
        name=name, type=kind, path="", format="name" if name == "Name" else "", priority=int(text.startswith("+"))
    )


def get_field(obj: Any, *path: str, default: Any = None) -> Any:
    """Return the value at a path of an object; the default if there is none."""
    for step in path:
        obj = obj.get(step) if isinstance(obj, Mapping) else None
        if obj is None:
            return default
    return obj


def format_age(obj: Object, now: datetime) -> str:
    """Return the age of an object."""
    return format_since(get_field(obj, "metadata", "creationTimestamp"), now)


def format_since(moment: Any, now: datetime) -> str:
    """Return the duration since a timestamp of the API."""
    if not isinstance(moment, str):
        return UNKNOWN
    try:
        return format_duration(now - parse_time(moment))
    except ValueError:
        return UNKNOWN


def format_duration(length: timedelta) -> str:
    """Format a duration with at most two units: precise if it is short, rounded if it is long."""
    seconds = int(length.total_seconds())
    if seconds < -1:
        return "<invalid>"
    minutes, hours = seconds // 60, seconds // 3600
    days = hours // 24
    if seconds < 120:
        return f"{max(0, seconds)}s"
    if minutes < 10:
        return _format_two_units(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _format_two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _format_two_units(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 8 * 365:
        return _format_two_units(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _format_two_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def format_labels(labels: Any) -> str:
    """Format labels as text, for example ``a=b,c=d``."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def format_selector(selector: Any) -> str:
    """Format a label selector in its text form."""
    try:
        parsed = LabelSelector.from_object(selector)
    except SelectorSyntaxError:
        return "<error>"
    return (str(parsed) or NONE) if parsed is not None else NONE


def format_containers_and_images(template: Any) -> list[str]:
    """Return the names of a template's containers, and their images."""
    containers: Iterable[Any] = get_field(template, "spec", "containers", default=())
    listed = list(containers)
    return [",".join(str(container.get(name, "")) for container in listed) for name in ("name", "image")]
