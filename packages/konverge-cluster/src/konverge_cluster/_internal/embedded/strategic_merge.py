"""Strategic merge patch: a merge patch that merges the lists of the built-in kinds.

A list whose items have a key merges item by item; a set of scalars grows; any other list is replaced. The key of a list
is the first of those that server-side apply uses. Directives in the patch override this: ``$patch:
delete|replace|merge``, ``$retainKeys``, ``$deleteFromPrimitiveList/<field>``, ``$setElementOrder/<field>``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from konverge._internal.apply import Schema
from konverge.errors import ApiError, BadRequestError

__all__ = ["apply_strategic_merge_patch", "get_merge_key"]

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def get_merge_key(schema: Schema) -> str:
    """Return the key field of the list's items; empty for a list that is replaced or contains scalars."""
    return schema.list_map_keys[0] if schema.list_type == "map" and schema.list_map_keys else ""


def apply_strategic_merge_patch(target: Mapping[str, Any], patch: Any, schema: Schema) -> dict[str, Any]:
    """Return the target with the patch merged in.

    Raises:
        BadRequestError: The patch is malformed, or an item of a keyed list has no key.
    """
    if not isinstance(patch, Mapping):
        raise BadRequestError("error decoding patch: a strategic merge patch is a mapping")
    return _merge_fields(target, patch, schema)


def _merge_fields(target: Mapping[str, Any], patch: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise BadRequestError(f"unknown patch type: {directive}")
    merged = dict(target)
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        merged = {name: value for name, value in merged.items() if name in retained}
    for name, value in patch.items():
        if name.startswith(_DELETE) and isinstance(merged.get(name.removeprefix(_DELETE)), list):
            field = name.removeprefix(_DELETE)
            merged[field] = [item for item in merged[field] if item not in value]
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            merged.pop(name, None)
            continue
        child = schema.find_child(name) or schema
        merged[name] = _merge(merged.get(name), value, child, patch.get(_ORDER + name))
    for name, order in patch.items():
        field = name.removeprefix(_ORDER)
        if field != name and field not in patch and isinstance(merged.get(field), list):
            key = get_merge_key(schema.find_child(field) or schema)
            merged[field] = _sort_items(merged[field], order, merged[field], key)
    return merged


def _merge(target: Any, patch: Any, schema: Schema, order: Any) -> Any:
    if isinstance(patch, Mapping):
        return _merge_fields(target if isinstance(target, Mapping) else {}, patch, schema)
    if not isinstance(patch, list):
        return patch
    key = get_merge_key(schema)
    items = target if isinstance(target, list) else []
    if key:
        merged = _merge_items(items, patch, schema, key)
    elif schema.list_type == "set":
        merged = [*items, *(item for item in patch if item not in items)]
    else:
        return patch
    return _sort_items(merged, order if isinstance(order, list) else patch, items, key)


def _merge_items(target: Sequence[Any], patch: Sequence[Any], schema: Schema, key: str) -> list[Any]:
    items = schema.items or schema
    if any(isinstance(item, Mapping) and item.get(_DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, Mapping) and item.get(_DIRECTIVE) == "replace")]
    merged = list(target)
    for item in patch:
        if not isinstance(item, Mapping) or key not in item:
            # The real server returns a server error here.
            message = f"map: an item of the patch does not contain declared merge key: {key}"
            raise ApiError(message, reason="", code=500)
        place = next((at for at, old in enumerate(merged) if _get_item_key(old, key) == item[key]), None)
        if item.get(_DIRECTIVE) == "delete":
            merged = [old for old in merged if _get_item_key(old, key) != item[key]]
        elif place is None:
            merged.append(_merge_fields({}, item, items))
        else:
            merged[place] = _merge_fields(merged[place], item, items)
    return merged


def _sort_items(items: list[Any], order: Any, before: Sequence[Any], key: str) -> list[Any]:
    """Return the items in the order of the patch.

    Items that the patch does not name remain before the items that they preceded.

    Args:
        items: The items, in any order.
        order: The items or keys from the patch, in its order.
        before: The list before the patch.
        key: The key field; empty for scalars.
    """
    if not isinstance(order, list):
        return items
    names, places = [_get_item_key(item, key) for item in order], [_get_item_key(item, key) for item in before]
    named = sorted(
        (item for item in items if _get_item_key(item, key) in names),
        key=lambda each: names.index(_get_item_key(each, key)),
    )
    others = [item for item in items if _get_item_key(item, key) not in names]
    ordered: list[Any] = []
    for item in named:
        name = _get_item_key(item, key)
        while others and name in places and places.index(_get_item_key(others[0], key)) < places.index(name):
            ordered.append(others.pop(0))
        ordered.append(item)
    return [*ordered, *others]


def _get_item_key(item: Any, key: str) -> Any:
    if not key:
        return item
    return item.get(key) if isinstance(item, Mapping) else None
