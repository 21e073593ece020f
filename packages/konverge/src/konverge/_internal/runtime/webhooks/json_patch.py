"""The changes of a handler, as a JSON patch (RFC 6902) on the object of the server. Pure.

A handler works on an instance of a class, and a class may cover only a part of an object. Only the difference between
the instance's JSON before and after the handler counts: `merge_partial_change` adds exactly that difference to the
whole object, and `create_json_patch` converts it to operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from konverge._internal.kube import Object

__all__ = ["create_json_patch", "merge_partial_change"]

_MISSING: Any = object()
_encode = msgspec.json.Encoder(order="deterministic").encode


def merge_partial_change(whole: Any, before: Any, after: Any) -> Any:
    """Return the whole value with the changes between two partial forms of it; no argument is modified.

    Items of lists are matched by equality, else by their ``name``, else by their position in a list of unchanged
    length: fields of an item that the class does not cover stay with that item.

    Args:
        whole: The complete value, with all fields that the class does not cover.
        before: The part that the class covers, before.
        after: The part that the class covers, now.
    """
    if _is_same(before, after):
        return after if whole is _MISSING else whole
    if before is _MISSING and isinstance(whole, dict):
        before = {}  # the class omits default values
    if isinstance(whole, dict) and isinstance(before, dict) and isinstance(after, dict):
        changed = {name: value for name, value in whole.items() if name in after or name not in before}
        for name, value in after.items():
            if not _is_same(before.get(name, _MISSING), value):
                changed[name] = merge_partial_change(whole.get(name, _MISSING), before.get(name, _MISSING), value)
        return changed
    if isinstance(whole, list) and isinstance(before, list) and isinstance(after, list) and len(whole) == len(before):
        return [
            # A set may have another order in the whole: only a dictionary can have more fields there.
            merge_partial_change(whole[index], before[index], value)
            if index is not None and isinstance(value, dict)
            else value
            for index, value in zip(_match_items(before, after), after, strict=True)
        ]
    return after


def create_json_patch(before: Any, after: Any) -> list[Object]:
    """Return the operations that turn one JSON value into the other, only for the parts that differ."""
    return list(_iter_operations(before, after, ""))


def _iter_operations(before: Any, after: Any, path: str) -> Iterator[Object]:
    if _is_same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before:
            if name not in after:
                yield {"op": "remove", "path": _join_pointer(path, name)}
        for name, value in after.items():
            if name not in before:
                yield {"op": "add", "path": _join_pointer(path, name), "value": value}
            else:
                yield from _iter_operations(before[name], value, _join_pointer(path, name))
        return
    if isinstance(before, list) and isinstance(after, list):
        common = min(len(before), len(after))
        for index in range(common):
            yield from _iter_operations(before[index], after[index], f"{path}/{index}")
        # From the end, so that no removal shifts the index of another one.
        for index in range(len(before) - 1, common - 1, -1):
            yield {"op": "remove", "path": f"{path}/{index}"}
        for index in range(common, len(after)):
            yield {"op": "add", "path": f"{path}/{index}", "value": after[index]}
        return
    yield {"op": "replace", "path": path, "value": after}


def _join_pointer(path: str, name: str) -> str:
    """Return the pointer to a field (RFC 6901): the tilde is escaped first, or it would escape the slash's escape."""
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"


def _match_items(before: Sequence[Any], after: Sequence[Any]) -> list[int | None]:
    """Return for each item of the new list the index of its old item; None for a new item."""
    matches: list[int | None] = [None] * len(after)
    free = dict.fromkeys(range(len(before)))
    # Apply the strongest criterion to all items before a weaker one takes an item away.
    for criterion in (_get_position_and_value, _get_value, _get_item_name, _get_nameless_position):
        candidates: dict[Any, list[int]] = {}
        for index in reversed(free):
            candidates.setdefault(criterion(before, index, len(after)), []).append(index)
        for index, match in enumerate(matches):
            value = criterion(after, index, len(before)) if match is None else None
            if value is not None and candidates.get(value):
                matches[index] = taken = candidates[value].pop()
                del free[taken]
    return matches


def _get_position_and_value(items: Sequence[Any], index: int, _: int) -> Any:
    return index, _encode(items[index])


def _get_value(items: Sequence[Any], index: int, _: int) -> Any:
    return _encode(items[index])


def _get_item_name(items: Sequence[Any], index: int, _: int) -> Any:
    item = items[index]
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _get_nameless_position(items: Sequence[Any], index: int, other_length: int) -> Any:
    return index if len(items) == other_length and _get_item_name(items, index, 0) is None else None


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: True equals 1 in Python, but not in JSON."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    is_equal: bool = one == other
    return is_equal
