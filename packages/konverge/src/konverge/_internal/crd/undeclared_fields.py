"""Fields of a stored status that its class does not declare: those of a newer version of the operator. Pure.

After a downgrade, the old version must not remove what the new one wrote. A field is matched by its name, an entry of a
mapping by its key, and an item of a list by its map keys (`konverge.crd.list_map`). Items of other lists have no
identity: such a list is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import inspect

from konverge._internal.crd.class_types import ObjectType, read_type
from konverge._internal.crd.value_encoding import list_json_fields
from konverge._internal.kube import Object

__all__ = ["iter_classes", "keep_undeclared_fields"]

_MAP_KEYS = "x-kubernetes-list-map-keys"


def iter_classes(info: inspect.Type) -> Iterator[type]:
    """Yield the class of a type, or the classes of a union."""
    for member in _iter_members(info):
        read = read_type(member)
        if isinstance(read, ObjectType):
            yield member.cls if isinstance(member, inspect.CustomType) else read.cls


def keep_undeclared_fields(classes: Iterable[type], encoded: Object, stored: Object) -> Object:
    """Return the JSON of an object, with the fields of the stored JSON that no class declares, at any depth.

    Args:
        classes: The classes that the object can have.
        encoded: The JSON of the object.
        stored: The JSON that is stored in its place.
    """
    types: dict[str, list[inspect.Type]] = {}
    for cls in classes:
        for field, name in list_json_fields(cls):
            types.setdefault(name, []).append(field.type)
    merged = {name: value for name, value in stored.items() if name not in types} | encoded
    for name in encoded.keys() & stored.keys() & types.keys():
        merged[name] = _merge_value(inspect.UnionType(tuple(types[name])), encoded[name], stored[name])
    return {name: merged[name] for name in (*encoded, *(name for name in merged if name not in encoded))}


def _merge_value(info: inspect.Type, encoded: Any, stored: Any) -> Any:
    if isinstance(encoded, dict) and isinstance(stored, dict):
        if classes := tuple(iter_classes(info)):
            return keep_undeclared_fields(classes, encoded, stored)
        mapping = next((member for member in _iter_members(info) if isinstance(member, inspect.DictType)), None)
        if mapping is not None:
            return {key: _merge_value(mapping.value_type, item, stored.get(key)) for key, item in encoded.items()}
    elif isinstance(encoded, list) and isinstance(stored, list) and (keys := _find_map_keys(info)):
        items = next((member for member in _iter_members(info) if isinstance(member, inspect.ListType)), None)
        if items is not None:
            before = {_read_keys(item, keys): item for item in stored}
            return [_merge_value(items.item_type, item, before.get(_read_keys(item, keys))) for item in encoded]
    return encoded


def _iter_members(info: inspect.Type) -> Iterator[inspect.Type]:
    """Yield the type without constraints, or the members of a union."""
    match info:
        case inspect.Metadata():
            yield from _iter_members(info.type)
        case inspect.UnionType():
            for member in info.types:
                yield from _iter_members(member)
        case _:
            yield info


def _find_map_keys(info: inspect.Type) -> Sequence[str]:
    match info:
        case inspect.Metadata():
            keys: Sequence[str] = (info.extra_json_schema or {}).get(_MAP_KEYS) or ()
            return keys or _find_map_keys(info.type)
        case inspect.UnionType():
            return next(filter(None, map(_find_map_keys, info.types)), ())
    return ()


def _read_keys(item: Any, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(repr(item.get(key)) for key in keys) if isinstance(item, Mapping) else ()
