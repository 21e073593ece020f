"""The data of a ConfigMap."""

from __future__ import annotations

from base64 import b64encode

import yaml

from konverge.kube import Object
from konverge.mutation.editors.editor import Editor
from konverge.mutation.fields import mapping_at, remove_key

__all__ = ["ConfigMapDataEditor"]


class ConfigMapDataEditor(Editor):
    """Edits ``data`` and ``binaryData`` of the ConfigMap under it."""

    __slots__ = ()

    def raw(self) -> Object:
        """The plain mapping ``data`` itself."""
        return mapping_at(self._fields, "data")

    def raw_binary(self) -> Object:
        """The plain mapping ``binaryData`` itself, of base64 texts."""
        return mapping_at(self._fields, "binaryData")

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
        data = self.raw()
        data[key] = _merged_yaml(data.get(key) or "", patch, key)


def _merged_yaml(text: str, patch: str, key: str) -> str:
    document, changes = _composed(text, f"{key} holds"), _composed(patch, f"the patch of {key} is")
    if document is None:
        return patch
    if changes is None:
        return text
    merged: str = yaml.serialize(_merged(document, changes, {}), Dumper=yaml.CSafeDumper, allow_unicode=True)
    return merged


def _composed(text: str, what: str) -> yaml.Node | None:
    try:
        found: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"{what} not one YAML document: {error}") from error
    return found


def _merged(old: yaml.Node, new: yaml.Node, seen: dict[tuple[int, int], yaml.Node]) -> yaml.Node:
    """Merge two syntax trees; not the values they stand for, whose spelling would be lost.

    `seen` keeps the work linear where aliases make one node appear many times.
    """
    if not (isinstance(old, yaml.MappingNode) and isinstance(new, yaml.MappingNode)):
        return new
    pair = (id(old), id(new))
    if pair not in seen:
        merged = seen[pair] = yaml.MappingNode(old.tag, [], flow_style=old.flow_style)
        places = {_spelling(key): (key, value) for key, value in old.value}
        for key, value in new.value:
            name = _spelling(key)
            places[name] = (key, _merged(places[name][1], value, seen) if name in places else value)
        merged.value = list(places.values())
    return seen[pair]


def _spelling(key: yaml.Node) -> object:
    return (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key)
