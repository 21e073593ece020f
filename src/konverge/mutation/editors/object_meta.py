"""Labels and annotations."""

from __future__ import annotations

from konverge.mutation.editors.editor import Editor
from konverge.mutation.fields import mapping_at, remove_key

__all__ = ["ObjectMetaEditor"]


class ObjectMetaEditor(Editor):
    """Edits ``metadata``, of the object or of its pod template."""

    __slots__ = ()

    def ensure_label(self, key: str, value: str) -> None:
        """Set a label."""
        mapping_at(self._fields, "labels")[key] = value

    def remove_label(self, key: str) -> None:
        """Remove a label."""
        remove_key(self._fields, "labels", key)

    def ensure_annotation(self, key: str, value: str) -> None:
        """Set an annotation."""
        mapping_at(self._fields, "annotations")[key] = value

    def remove_annotation(self, key: str) -> None:
        """Remove an annotation."""
        remove_key(self._fields, "annotations", key)
