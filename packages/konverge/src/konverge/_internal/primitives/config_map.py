"""ConfigMap: a static primitive without health."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind
from konverge._internal.mutation import ConfigMapDataEditor, EditCategory, EditFunction, Mutator
from konverge._internal.primitives.content_hash import hash_content
from konverge._internal.primitives.field_access import read_entries
from konverge._internal.primitives.kind_categories import StaticKind

__all__ = ["ConfigMap", "ConfigMapMutator"]


class ConfigMap(StaticKind["ConfigMapMutator"]):
    """A core ``v1`` ConfigMap: ready once applied, left alone by suspension."""

    gvk: GroupVersionKind = GroupVersionKind("", "v1", "ConfigMap")

    def create_mutator(self) -> ConfigMapMutator:
        """Return a new mutator for the callback of one mutation."""
        return ConfigMapMutator()

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Report the values of ``data`` that are not strings: the API accepts no others, not even numbers."""
        for key, value in read_entries(obj, "data"):
            if not isinstance(value, str):
                yield f"data[{key!r}]: expected a string, found {type(value).__name__}"

    @staticmethod
    def hash_data(obj: Mapping[str, Any]) -> str:
        """Return a hash that changes with the content, for an annotation on the pods that read it."""
        return hash_content([obj.get("data") or {}, obj.get("binaryData") or {}])

    def hash_desired_data(self) -> str:
        """Return `hash_data` of the desired object."""
        return self.hash_data(self.render())


class ConfigMapMutator(Mutator):
    """Records edits of a ConfigMap."""

    def edit_data(self, edit: EditFunction[ConfigMapDataEditor] | None) -> None:
        """Record an edit of the data."""
        self._edit(EditCategory.CONTENT, ConfigMapDataEditor, (), edit)

    def set_entry(self, key: str, value: str) -> None:
        """Set an entry of ``data``."""
        self.edit_data(lambda data: data.set(key, value))

    def remove_entry(self, key: str) -> None:
        """Remove an entry of ``data``."""
        self.edit_data(lambda data: data.remove(key))

    def merge_yaml(self, key: str, patch: str) -> None:
        """Merge a YAML document into the entry's document (`ConfigMapDataEditor.merge_yaml`)."""
        self.edit_data(lambda data: data.merge_yaml(key, patch))
