"""Editor of the data of a ConfigMap."""

from __future__ import annotations

from base64 import b64encode

from konverge._internal.kube import Object
from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import ensure_mapping, remove_key

__all__ = ["ConfigMapDataEditor"]


class ConfigMapDataEditor(Editor):
    """Edits ``data`` and ``binaryData`` of a ConfigMap."""

    __slots__ = ()

    def raw(self) -> Object:
        """Return the mapping ``data`` itself, created if absent."""
        return ensure_mapping(self._fields, "data")

    def raw_binary(self) -> Object:
        """Return the mapping ``binaryData`` itself, with base64 values, created if absent."""
        return ensure_mapping(self._fields, "binaryData")

    def set(self, key: str, value: str) -> None:
        """Set an entry of ``data``."""
        self.raw()[key] = value

    def remove(self, key: str) -> None:
        """Remove an entry of ``data``."""
        remove_key(self._fields, "data", key)

    def set_binary(self, key: str, value: bytes) -> None:
        """Set an entry of ``binaryData``; the value is encoded as base64."""
        self.raw_binary()[key] = b64encode(value).decode()

    def remove_binary(self, key: str) -> None:
        """Remove an entry of ``binaryData``."""
        remove_key(self._fields, "binaryData", key)

    def merge_yaml(self, key: str, patch: str) -> None:
        """Merge a YAML document into the document of an entry.

        Mappings merge deeply; otherwise the value of the patch wins. An absent entry gets the patch unchanged. Scalars
        keep their spelling (``yes``, ``12:30`` and ``0644`` do not change); comments are lost.

        Raises:
            ValueError: The entry or the patch is not one YAML document.
        """
        from konverge._internal.mutation.editors.yaml_merge import (
            merge_yaml_documents,  # imported late: few edits need the YAML library
        )

        data = self.raw()
        data[key] = merge_yaml_documents(data.get(key) or "", patch, key)
