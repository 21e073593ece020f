"""Any content, by path: for kinds without an editor of their own."""

from __future__ import annotations

from typing import Any

from konverge.kube import Object
from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import copy_json, ensure_mapping, remove_key

__all__ = ["ContentEditor"]


class ContentEditor(Editor):
    """Edits a whole object by field path."""

    __slots__ = ()

    def set_nested_field(self, value: Any, *path: str) -> None:
        """Set a field to any JSON value; mappings on the way are made. One method serves all types."""
        *parents, field = path
        ensure_mapping(self._fields, *parents)[field] = copy_json(value)

    def remove_nested_field(self, *path: str) -> None:
        """Remove a field; there may be none."""
        *parents, field = path
        found = self._find_parent(parents)
        if found is not None:
            found.pop(field, None)

    def ensure_nested_string_map_entry(self, key: str, value: str, *path: str) -> None:
        """Set an entry of the mapping in that field, made when it is absent."""
        ensure_mapping(self._fields, *path)[key] = value

    def remove_nested_string_map_entry(self, key: str, *path: str) -> None:
        """Remove an entry of the mapping in that field."""
        *parents, field = path
        found = self._find_parent(parents)
        if found is not None:
            remove_key(found, field, key)

    def _find_parent(self, path: list[str]) -> Object | None:
        parent = self._fields
        for field in path:
            found = parent.get(field)
            if not isinstance(found, dict):
                return None
            parent = found
        return parent
