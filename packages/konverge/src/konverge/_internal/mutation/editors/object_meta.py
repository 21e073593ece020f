"""Editor of labels and annotations."""

from __future__ import annotations

from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import ensure_mapping, remove_key

__all__ = ["ObjectMetaEditor"]


class ObjectMetaEditor(Editor):
    """Edits the ``metadata`` of the object or of its pod template."""

    __slots__ = ()

    def ensure_label(self, key: str, value: str) -> None:
        """Set the value of a label."""
        ensure_mapping(self._fields, "labels")[key] = value

    def remove_label(self, key: str) -> None:
        """Remove a label if it exists."""
        remove_key(self._fields, "labels", key)

    def ensure_annotation(self, key: str, value: str) -> None:
        """Set the value of an annotation."""
        ensure_mapping(self._fields, "annotations")[key] = value

    def remove_annotation(self, key: str) -> None:
        """Remove an annotation if it exists."""
        remove_key(self._fields, "annotations", key)
