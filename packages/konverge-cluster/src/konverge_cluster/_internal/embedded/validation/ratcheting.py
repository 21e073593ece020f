"""The correspondence of a new value with the stored one, for errors that an update does not report again.

Fields correspond by their names and the items of a keyed list by their keys. The items of any other list do not
correspond: such a list is unchanged only as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from konverge._internal.apply.schema import ABSENT, Schema

__all__ = ["find_old_field", "get_item_key", "index_old_items", "is_unchanged"]


def get_item_key(item: Any, keys: tuple[str, ...]) -> Any:
    """Return what identifies an item of a keyed list: its key fields, or the item itself if it is not a mapping."""
    return {key: item[key] for key in keys if key in item} if isinstance(item, Mapping) else item


def find_old_field(old: Any, name: str) -> Any:
    """Return the stored value of a field; `ABSENT` if there is none."""
    return old.get(name, ABSENT) if isinstance(old, Mapping) else ABSENT


def index_old_items(old: Any, schema: Schema) -> Callable[[Any], Any]:
    """Return a function that finds the stored item which corresponds to a new item; `ABSENT` if there is none.

    Args:
        old: The stored list.
        schema: The schema of the list.
    """
    if not isinstance(old, list) or schema.list_type != "map":
        return lambda item: ABSENT
    keys = schema.list_map_keys
    by_key = {_encode(get_item_key(item, keys)): item for item in old}
    return lambda item: by_key.get(_encode(get_item_key(item, keys)), ABSENT)


def is_unchanged(new: Any, old: Any, schema: Schema) -> bool:
    """Return True if the values are equal; the order of a keyed list does not matter."""
    if old is ABSENT:
        return False
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return new.keys() == old.keys() and all(
            (child := schema.find_child(name)) is not None and is_unchanged(value, old[name], child)
            for name, value in new.items()
        )
    if isinstance(new, list) and isinstance(old, list) and schema.list_type == "map" and schema.items is not None:
        find_old, items = index_old_items(old, schema), schema.items
        return len(new) == len(old) and all(is_unchanged(item, find_old(item), items) for item in new)
    return _encode(new) == _encode(old)


def _encode(value: Any) -> bytes:
    """Return the JSON form, which distinguishes numbers from booleans, unlike the equality of Python."""
    return msgspec.json.encode(value, order="sorted")
