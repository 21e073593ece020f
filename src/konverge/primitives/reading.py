"""Reading objects that nobody has checked: what a server sends may lack any field, or hold something else in it.

A field that is missing or of the wrong type reads as its default, so that no answer of a server can make a handler
raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["boolean_at", "entries_at", "integer_at", "items_at", "text_at"]


def _value_at(obj: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = obj
    for field in path:
        # What JSON decodes to is a dict; to ask whether it is any mapping takes several times as long.
        if type(found) is not dict and not isinstance(found, Mapping):
            return None
        found = found.get(field)
    return found


def integer_at(obj: Mapping[str, Any], *path: str, default: int = 0) -> int:
    """The whole number under these fields. A boolean is none, although Python counts it as one."""
    found = _value_at(obj, path)
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def text_at(obj: Mapping[str, Any], *path: str) -> str:
    """The text under these fields, empty by default."""
    found = _value_at(obj, path)
    return found if isinstance(found, str) else ""


def boolean_at(obj: Mapping[str, Any], *path: str) -> bool:
    """Tell whether true is under these fields."""
    return _value_at(obj, path) is True


def items_at(obj: Mapping[str, Any], *path: str) -> list[Mapping[str, Any]]:
    """The mappings in the list under these fields; other items are left out."""
    found = _value_at(obj, path)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def entries_at(obj: Mapping[str, Any], *path: str) -> list[tuple[str, Any]]:
    """The keys and values of the mapping under these fields, in its order."""
    found = _value_at(obj, path)
    return list(found.items()) if isinstance(found, Mapping) else []
