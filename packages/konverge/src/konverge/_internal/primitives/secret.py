"""Secret: a static primitive whose values appear in no output."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind
from konverge._internal.kube.base64_text import canonicalize_base64
from konverge._internal.mutation import EditCategory, EditFunction, Mutator, SecretDataEditor
from konverge._internal.primitives.content_hash import hash_content
from konverge._internal.primitives.field_access import read_entries
from konverge._internal.primitives.kind_categories import StaticKind

__all__ = ["Secret", "SecretMutator"]


class Secret(StaticKind["SecretMutator"]):
    """A core ``v1`` Secret: ready once applied, left alone by suspension.

    Values in ``data`` can be bytes. Errors of the author's functions appear only with their type.
    """

    gvk: GroupVersionKind = GroupVersionKind("", "v1", "Secret")

    def create_mutator(self) -> SecretMutator:
        """Return a new mutator for the callback of one mutation."""
        return SecretMutator()

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Report the entries that the API would reject, by key and without the value."""
        for key, value in read_entries(obj, "data"):
            if not isinstance(value, bytes | str):
                yield f"data[{key!r}]: expected bytes or a base64 string, found {type(value).__name__}"
            elif isinstance(value, str) and not _is_base64(value):
                yield f"data[{key!r}]: expected base64; pass bytes here, or the plain text in stringData"
        for key, value in read_entries(obj, "stringData"):
            if not isinstance(value, str):
                yield f"stringData[{key!r}]: expected a string, found {type(value).__name__}"

    @staticmethod
    def hash_data(obj: Mapping[str, Any]) -> str:
        """Return a hash that changes with the content, for an annotation on the pods that read it.

        The hash is the same for ``stringData`` and for the ``data`` into which the server converts it. A reader of the
        hash can test guesses: it does not protect values that are easy to guess.
        """
        text = {key: b64encode(value.encode()).decode() for key, value in (obj.get("stringData") or {}).items()}
        data = {key: _to_stored_value(value) for key, value in (obj.get("data") or {}).items()}
        return hash_content({**data, **text})

    def hash_desired_data(self) -> str:
        """Return `hash_data` of the desired object."""
        return self.hash_data(self.render())


def _is_base64(text: str) -> bool:
    try:
        canonicalize_base64(text)
    except ValueError:
        return False
    return True


def _to_stored_value(value: Any) -> Any:
    return canonicalize_base64(value) if isinstance(value, str) and _is_base64(value) else value


class SecretMutator(Mutator):
    """Records edits of a Secret."""

    def edit_data(self, edit: EditFunction[SecretDataEditor] | None) -> None:
        """Record an edit of the data."""
        self._edit(EditCategory.CONTENT, SecretDataEditor, (), edit)

    def set_data(self, key: str, value: bytes) -> None:
        """Set an entry of ``data``."""
        self.edit_data(lambda data: data.set(key, value))

    def remove_data(self, key: str) -> None:
        """Remove an entry of ``data``."""
        self.edit_data(lambda data: data.remove(key))

    def set_string_data(self, key: str, value: str) -> None:
        """Set an entry of ``stringData``."""
        self.edit_data(lambda data: data.set_string(key, value))

    def remove_string_data(self, key: str) -> None:
        """Remove an entry of ``stringData``."""
        self.edit_data(lambda data: data.remove_string(key))
