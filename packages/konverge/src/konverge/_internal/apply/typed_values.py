"""Values with their schema: their field sets, the merge of two values, and the removal of fields.

The rules are those of structured-merge-diff, the library behind server-side apply (KEP-555). Mappings merge field by
field unless the schema declares them atomic; lists are atomic unless the schema declares a set or a map by keys.
`ABSENT` is the absence of a value; None is an explicit null, which is a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from konverge._internal.apply.field_set import FieldSet, Path, field_element, key_element, value_element
from konverge._internal.apply.schema import ABSENT, UNTYPED, Schema

__all__ = [
    "Shape",
    "build_field_set",
    "find_item_element",
    "find_item_schema",
    "find_shape",
    "group_items_by_element",
    "is_granular",
    "is_same_value",
    "merge_values",
    "remove_fields",
    "with_named_parents",
]

Shape: TypeAlias = Literal["map", "list", "scalar"]
"""The shape of a value, as far as a merge depends on it."""

_SCALARS = frozenset({"string", "integer", "number", "boolean"})


def is_same_value(one: Any, other: Any) -> bool:
    """Return True if two JSON values are equal: 1 equals 1.0, but True is not 1."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, dict):
        return all(is_same_value(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return all(map(is_same_value, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


def find_shape(schema: Schema, value: Any) -> Shape:
    """Return the shape of the value: from the schema, or from the value itself if the schema has no type."""
    if schema.type in _SCALARS:
        return "scalar"
    if schema.type == "object":
        return "map"
    if schema.type == "array":
        return "list"
    if schema.quantity or schema.int_or_string:
        return "scalar"
    if value is ABSENT or value is None or isinstance(value, dict):
        return "map"
    return "list" if isinstance(value, list) else "scalar"


def _is_atomic_list(schema: Schema) -> bool:
    return schema.list_type not in ("map", "set")


def is_granular(schema: Schema, value: Any) -> bool:
    """Return True if the value merges by its fields or items, rather than as a whole."""
    if isinstance(value, dict):
        return find_shape(schema, value) == "map" and not schema.map_atomic
    return isinstance(value, list) and find_shape(schema, value) == "list" and not _is_atomic_list(schema)


def find_item_schema(schema: Schema) -> Schema:
    """Return the schema of the items of a list."""
    return schema.items or UNTYPED


def find_item_element(schema: Schema, item: Any) -> str | None:
    """Return the path element of an item of an associative list; None if it cannot have one.

    A key field that the item omits takes its default; without a default it is left out of the element.
    """
    if schema.list_type == "set":
        return None if item is None or isinstance(item, dict | list) else value_element(item)
    if not isinstance(item, dict):
        return None
    keys = {}
    for name in schema.list_map_keys:
        value = item.get(name, ABSENT)
        if value is ABSENT:
            key_schema = find_item_schema(schema).properties.get(name)
            value = key_schema.default if key_schema is not None else ABSENT
        if isinstance(value, dict | list):
            return None
        if value is not ABSENT:
            keys[name] = value
    return key_element(keys) if keys else None


def group_items_by_element(schema: Schema, items: Sequence[Any]) -> dict[str, list[Any]]:
    """Group the items of an associative list; several items under one element are duplicates."""
    groups: dict[str, list[Any]] = {}
    for item in items:
        element = find_item_element(schema, item)
        if element is not None:
            groups.setdefault(element, []).append(item)
    return groups


def build_field_set(value: Any, schema: Schema) -> FieldSet:
    """Build the set of paths that a manager owns after it applies this value."""
    paths: list[Path] = []
    _collect_paths(value, schema, (), paths)
    return FieldSet.of(paths)


def _collect_paths(value: Any, schema: Schema, path: Path, paths: list[Path]) -> None:
    shape = find_shape(schema, value)
    if shape == "scalar":
        paths.append(path)
    elif shape == "map":
        if schema.map_atomic:
            paths.append(path)
        elif isinstance(value, dict):
            for name, below in value.items():
                at = (*path, field_element(name))
                _collect_paths(below, schema.find_child(name) or UNTYPED, at, paths)
                if below is None or below == {} or name not in schema.properties:
                    paths.append(at)
    elif _is_atomic_list(schema):
        paths.append(path)
    elif isinstance(value, list):
        for element, items in group_items_by_element(schema, value).items():
            at = (*path, element)
            if len(items) == 1:
                _collect_paths(items[0], find_item_schema(schema), at, paths)
            paths.append(at)


def merge_values(live: Any, applied: Any, schema: Schema) -> Any:
    """Merge the applied value into the live one; return `ABSENT` if nothing is left."""
    decisive = live if applied is ABSENT or applied is None else applied
    shape = find_shape(schema, decisive)
    if shape == "map":
        ours = live if isinstance(live, dict) else None
        theirs = applied if isinstance(applied, dict) else None
        if not schema.map_atomic and (ours or theirs):
            return _merge_maps(ours or {}, theirs or {}, schema)
    elif shape == "list" and not _is_atomic_list(schema):
        before = live if isinstance(live, list) else None
        after = applied if isinstance(applied, list) else None
        if before or after:
            return _merge_lists(before or [], after or [], schema)
    return live if applied is ABSENT else applied


def _merge_maps(live: Mapping[str, Any], applied: Mapping[str, Any], schema: Schema) -> Any:
    merged = {}
    for name in (*live, *(name for name in applied if name not in live)):
        value = merge_values(live.get(name, ABSENT), applied.get(name, ABSENT), schema.find_child(name) or UNTYPED)
        if value is not ABSENT:
            merged[name] = value
    return merged if merged else ABSENT


def _merge_lists(live: Sequence[Any], applied: Sequence[Any], schema: Schema) -> Any:
    """Merge two lists: applied items keep their order, and other live items keep their position between them."""
    before = [(find_item_element(schema, item), item) for item in live]
    after = [(find_item_element(schema, item), item) for item in applied]
    live_groups = group_items_by_element(schema, live)
    applied_elements = dict(after)
    shared = [element for element, _ in after if element in live_groups]
    item_schema = find_item_schema(schema)
    merged: list[Any] = []
    done: set[str | None] = set()

    def take(element: str | None, old: Any, new: Any) -> None:
        value = merge_values(old, new, item_schema)
        if value is not ABSENT:
            merged.append(value)
        done.add(element)

    def take_applied(position: int) -> None:
        element, item = after[position]
        live_items = live_groups.get(element or "", [])
        # With duplicates in the live list, it is unknown which of them the applied item means.
        take(element, ABSENT if not live_items else live_items[0] if len(live_items) == 1 else None, item)
        if shared and shared[0] == element:
            shared.pop(0)

    left = right = 0
    while left < len(before) or right < len(after):
        if left < len(before):
            element, item = before[left]
            if right < len(after):
                if element == after[right][0]:
                    take_applied(right)
                    left += 1
                    right += 1
                    continue
                if element in applied_elements and shared and shared[0] != element:
                    left += 1  # It comes later, in the applied order.
                    continue
            if element not in applied_elements:
                take(element, item, ABSENT)
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(after):
            take_applied(right)
            right += 1
    return merged if merged else ABSENT


def remove_fields(value: Any, fields: FieldSet, schema: Schema) -> Any:
    """Return the value without the fields of the set; None if nothing is left of a mapping or list."""
    shape = find_shape(schema, value)
    if shape == "map":
        if not isinstance(value, dict) or not value or schema.map_atomic:
            return None
        kept: dict[str, Any] = {}
        for name, below in value.items():
            removed = fields.children.get(field_element(name))
            if removed is None:
                kept[name] = below
            elif not removed.owned:
                kept[name] = remove_fields(below, removed, schema.find_child(name) or UNTYPED)
        return kept or None
    if shape == "list":
        if not isinstance(value, list) or not value or _is_atomic_list(schema):
            return None
        left: list[Any] = []
        for item in value:
            removed = fields.children.get(find_item_element(schema, item) or "")
            if removed is None:
                left.append(item)
            elif not removed.owned:
                left.append(remove_fields(item, removed, find_item_schema(schema)))
        return left or None
    return value


def with_named_parents(fields: FieldSet, schema: Schema | None) -> FieldSet:
    """Return the set plus each field that the schema names and that has paths of the set below it."""
    children = {}
    for element, below in fields.children.items():
        child: Schema | None = None
        is_named = False
        if schema is not None:
            if element.startswith("f:"):
                name = element[2:]
                is_named = name in schema.properties
                child = schema.find_child(name)
            else:
                child = schema.items
        extended = with_named_parents(below, child)
        children[element] = FieldSet(extended.children, owned=below.owned or (is_named and bool(below.children)))
    return FieldSet(children, owned=fields.owned)
