"""Editor of the data of a Secret."""

from __future__ import annotations

from base64 import b64encode

from konverge._internal.kube import Object
from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import ensure_mapping, remove_key

__all__ = ["SecretDataEditor"]


class SecretDataEditor(Editor):
    """Edits ``data`` and ``stringData`` of a Secret."""

    __slots__ = ()

    def raw(self) -> Object:
        """Return the mapping ``data`` itself, with base64 values, created if absent."""
        return ensure_mapping(self._fields, "data")

    def raw_string_data(self) -> Object:
        """Return the mapping ``stringData`` itself, created if absent; the server merges it over ``data``."""
        return ensure_mapping(self._fields, "stringData")

    def set(self, key: str, value: bytes) -> None:
        """Set an entry of ``data``; the value is encoded as base64."""
        self.raw()[key] = b64encode(value).decode()

    def remove(self, key: str) -> None:
        """Remove an entry of ``data``."""
        remove_key(self._fields, "data", key)

    def set_string(self, key: str, value: str) -> None:
        """Set an entry of ``stringData``."""
        self.raw_string_data()[key] = value

    def remove_string(self, key: str) -> None:
        """Remove an entry of ``stringData``."""
        remove_key(self._fields, "stringData", key)
