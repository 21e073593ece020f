"""Reading objects that nobody has checked: what a server sends may lack any field, or hold something else in it.

A field that is missing or of the wrong type reads as its default, so that no answer of a server can make a handler
raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["read_boolean", "read_entries", "read_integer", "read_items", "read_text"]


def _read_value(obj: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = obj
    for field in path:
        # What JSON decodes to is a dict; to ask whether it is any mapping takes several times as long.
        if type(found) is not dict and not isinstance(found, Mapping):
            return None
        found = found.get(field)
    return found


def read_integer(obj: Mapping[str, Any], *path: str, default: int = 0) -> int:
    """The whole number under these fields. A boolean is none, although Python counts it as one."""
    found = _read_value(obj, path)
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def read_text(obj: Mapping[str, Any], *path: str) -> str:
    """The text under these fields, empty by default."""
    found = _read_value(obj, path)
    return found if isinstance(found, str) else ""


def read_boolean(obj: Mapping[str, Any], *path: str) -> bool:
    """Tell whether true is under these fields."""
    return _read_value(obj, path) is True


def read_items(obj: Mapping[str, Any], *path: str) -> list[Mapping[str, Any]]:
    """The mappings in the list under these fields; other items are left out."""
    found = _read_value(obj, path)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def read_entries(obj: Mapping[str, Any], *path: str) -> list[tuple[str, Any]]:
    """The keys and values of the mapping under these fields, in its order."""
    found = _read_value(obj, path)
    return list(found.items()) if isinstance(found, Mapping) else []
