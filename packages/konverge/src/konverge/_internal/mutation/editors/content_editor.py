"""Editor of any content by path, for kinds without their own editor."""

from __future__ import annotations

from typing import Any

from konverge._internal.kube import Object
from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import copy_json, ensure_mapping, remove_key

__all__ = ["ContentEditor"]


class ContentEditor(Editor):
    """Edits a whole object by field path."""

    __slots__ = ()

    def set_nested_field(self, value: Any, *path: str) -> None:
        """Set a field to any JSON value; missing parent mappings are created."""
        *parents, field = path
        ensure_mapping(self._fields, *parents)[field] = copy_json(value)

    def remove_nested_field(self, *path: str) -> None:
        """Remove a field, which may be absent."""
        *parents, field = path
        parent = self._find_parent(parents)
        if parent is not None:
            parent.pop(field, None)

    def ensure_nested_string_map_entry(self, key: str, value: str, *path: str) -> None:
        """Set an entry of the mapping in this field, created if absent."""
        ensure_mapping(self._fields, *path)[key] = value

    def remove_nested_string_map_entry(self, key: str, *path: str) -> None:
        """Remove an entry of the mapping in this field."""
        *parents, field = path
        parent = self._find_parent(parents)
        if parent is not None:
            remove_key(parent, field, key)

    def _find_parent(self, path: list[str]) -> Object | None:
        parent = self._fields
        for field in path:
            value = parent.get(field)
            if not isinstance(value, dict):
                return None
            parent = value
        return parent
