"""Reads of unvalidated objects: any field may be absent or have a wrong type.

A field that is absent or has a wrong type reads as its default, so that no response of a server makes a handler raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["read_boolean", "read_entries", "read_integer", "read_items", "read_text"]


def _read_value(obj: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = obj
    for field in path:
        # Decoded JSON is a dict; the check for any mapping takes several times as long.
        if type(value) is not dict and not isinstance(value, Mapping):
            return None
        value = value.get(field)
    return value


def read_integer(obj: Mapping[str, Any], *path: str, default: int = 0) -> int:
    """Return the integer at this path; a boolean does not count, although Python treats it as an integer."""
    value = _read_value(obj, path)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def read_text(obj: Mapping[str, Any], *path: str) -> str:
    """Return the string at this path (default: an empty one)."""
    value = _read_value(obj, path)
    return value if isinstance(value, str) else ""


def read_boolean(obj: Mapping[str, Any], *path: str) -> bool:
    """Return whether the value at this path is true."""
    return _read_value(obj, path) is True


def read_items(obj: Mapping[str, Any], *path: str) -> list[Mapping[str, Any]]:
    """Return the mappings in the list at this path, without items of other types."""
    items = _read_value(obj, path)
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def read_entries(obj: Mapping[str, Any], *path: str) -> list[tuple[str, Any]]:
    """Return the keys and values of the mapping at this path, in its order."""
    entries = _read_value(obj, path)
    return list(entries.items()) if isinstance(entries, Mapping) else []
