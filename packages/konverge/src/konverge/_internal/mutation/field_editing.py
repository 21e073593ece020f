"""Edits of optional fields of a JSON-shaped object, shared by all editors.

Null counts as absent. A removal that empties a field drops the field: the API's own serialization omits an empty map or
list, and sending it would make the applier its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from konverge._internal.kube import Object

__all__ = [
    "copy_json",
    "encode_json",
    "ensure_list",
    "ensure_mapping",
    "match_names",
    "read_name",
    "remove_items",
    "remove_key",
    "set_item",
]


def _to_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"found a value of type {type(value).__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_to_plain)


def encode_json(value: Any) -> bytes:
    """Encode the value as JSON: tuples become lists, bytes become base64 text.

    Raises:
        TypeError: A value in it has no JSON form.
        ValueError: A string in it is not valid Unicode.
    """
    return _encoder.encode(value)


def copy_json(value: Any) -> Any:
    """Return a private copy of a JSON-shaped value through `encode_json`, much faster than `copy.deepcopy`."""
    return msgspec.json.decode(encode_json(value))


def ensure_mapping(parent: Object, *path: str) -> Object:
    """Return the mapping at this path, created where it is absent.

    Raises:
        TypeError: A field has a value of another type.
    """
    for field in path:
        value = parent.get(field)
        if value is None:
            value = parent[field] = {}
        elif not isinstance(value, dict):
            raise TypeError(f"{field}: expected a mapping, found {type(value).__name__}")
        parent = value
    return parent


def ensure_list(parent: Object, field: str) -> list[Any]:
    """Return the list in this field, created if it is absent.

    Raises:
        TypeError: The field has a value of another type.
    """
    value = parent.get(field)
    if value is None:
        value = parent[field] = []
    elif not isinstance(value, list):
        raise TypeError(f"{field}: expected a list, found {type(value).__name__}")
    return value


def read_name(item: Mapping[str, Any]) -> str:
    """Return the name of a list item, which is its key.

    Raises:
        ValueError: The item has no name.
    """
    name = item.get("name")
    if not (isinstance(name, str) and name):
        raise ValueError(f"name: expected a non-empty string, found {name!r}")
    return name


def match_names(*names: str) -> Callable[[Any], bool]:
    """Return a predicate for list items with one of these names."""
    wanted = frozenset(names)
    return lambda item: isinstance(item, dict) and item.get("name") in wanted


def set_item(parent: Object, field: str, item: Any, is_same: Callable[[Any], bool]) -> None:
    """Replace the first item for which `is_same` is true by a copy of the item, else append the copy."""
    items = ensure_list(parent, field)
    # A copy, because the author's value outlives this reconcile and a later edit may change the item in place.
    own = copy_json(item)
    for index, candidate in enumerate(items):
        if is_same(candidate):
            items[index] = own
            return
    items.append(own)


def remove_items(parent: Object, field: str, is_unwanted: Callable[[Any], bool]) -> None:
    """Remove every item for which `is_unwanted` is true; the list may be absent."""
    if parent.get(field) is None:
        return
    kept = [item for item in ensure_list(parent, field) if not is_unwanted(item)]
    if kept:
        parent[field] = kept
    else:
        del parent[field]


def remove_key(parent: Object, field: str, key: str) -> None:
    """Remove an entry of the mapping in this field; both may be absent."""
    if parent.get(field) is None:
        return
    mapping = ensure_mapping(parent, field)
    mapping.pop(key, None)
    if not mapping:
        del parent[field]
