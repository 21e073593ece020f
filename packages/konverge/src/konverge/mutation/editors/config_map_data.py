"""The data of a ConfigMap."""

from __future__ import annotations

from base64 import b64encode

from konverge.kube import Object
from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import ensure_mapping, remove_key

__all__ = ["ConfigMapDataEditor"]


class ConfigMapDataEditor(Editor):
    """Edits ``data`` and ``binaryData`` of the ConfigMap under it."""

    __slots__ = ()

    def raw(self) -> Object:
        """The plain mapping ``data`` itself."""
        return ensure_mapping(self._fields, "data")

    def raw_binary(self) -> Object:
        """The plain mapping ``binaryData`` itself, of base64 texts."""
        return ensure_mapping(self._fields, "binaryData")

    def set(self, key: str, value: str) -> None:
        """Set a text entry."""
        self.raw()[key] = value

    def remove(self, key: str) -> None:
        """Remove a text entry."""
        remove_key(self._fields, "data", key)

    def set_binary(self, key: str, value: bytes) -> None:
        """Set a binary entry."""
        self.raw_binary()[key] = b64encode(value).decode()

    def remove_binary(self, key: str) -> None:
        """Remove a binary entry."""
        remove_key(self._fields, "binaryData", key)

    def merge_yaml(self, key: str, patch: str) -> None:
        """Merge a YAML document into the one that the entry holds.

        Mappings merge deeply, in all else the patch wins; an absent entry takes the patch as it is. Scalars keep
        their spelling (``yes``, ``12:30`` and ``0644`` stay what they are); comments are lost.

        Raises:
            ValueError: One of the two is not one YAML document.
        """
        from konverge.mutation.editors.yaml_merge import (
            merge_yaml_documents,  # not at the top: few edits need a YAML library
        )

        data = self.raw()
        data[key] = merge_yaml_documents(data.get(key) or "", patch, key)
