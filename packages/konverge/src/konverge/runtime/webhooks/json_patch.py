"""What a handler changed, as a JSON patch (RFC 6902) on the object that the server holds. Pure.

A handler works on an instance of a class, and a class knows only part of an object. So what counts is the difference
between the instance's JSON before the handler and after it: `merge_partial_change` puts that difference, and nothing
else, into
the whole object; `json_patch` says it in operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from konverge.kube import Object

__all__ = ["create_json_patch", "merge_partial_change"]

_MISSING: Any = object()
_encode = msgspec.json.Encoder(order="deterministic").encode


def merge_partial_change(whole: Any, before: Any, after: Any) -> Any:
    """The whole value with the changes between two partial forms of it; nothing that is passed in is changed.

    Items of lists are recognised by being equal, else by their ``name``, else by their place in a list that kept its
    length: what the class does not know about an item stays with that item.

    Args:
        whole: The value as it is held, with everything that the class does not know.
        before: What the class knew of it.
        after: What the class knows now.
    """
    if _is_same(before, after):
        return after if whole is _MISSING else whole
    if before is _MISSING and isinstance(whole, dict):
        before = {}  # the class leaves out what has its default
    if isinstance(whole, dict) and isinstance(before, dict) and isinstance(after, dict):
        changed = {name: value for name, value in whole.items() if name in after or name not in before}
        for name, value in after.items():
            if not _is_same(before.get(name, _MISSING), value):
                changed[name] = merge_partial_change(whole.get(name, _MISSING), before.get(name, _MISSING), value)
        return changed
    if isinstance(whole, list) and isinstance(before, list) and isinstance(after, list) and len(whole) == len(before):
        return [
            # A set has another order in the whole: only what has fields is more there than here.
            merge_partial_change(whole[place], before[place], value)
            if place is not None and isinstance(value, dict)
            else value
            for place, value in zip(_match_items(before, after), after, strict=True)
        ]
    return after


def create_json_patch(before: Any, after: Any) -> list[Object]:
    """The operations that turn one JSON value into the other, touching only what differs."""
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
        for place in range(common):
            yield from _iter_operations(before[place], after[place], f"{path}/{place}")
        # From the end, so that no removal moves what another one names.
        for place in range(len(before) - 1, common - 1, -1):
            yield {"op": "remove", "path": f"{path}/{place}"}
        for place in range(common, len(after)):
            yield {"op": "add", "path": f"{path}/{place}", "value": after[place]}
        return
    yield {"op": "replace", "path": path, "value": after}


def _join_pointer(path: str, name: str) -> str:
    """The pointer to a field (RFC 6901): a tilde first, or the slash's would be escaped again."""
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"


def _match_items(before: Sequence[Any], after: Sequence[Any]) -> list[int | None]:
    """For each item of the new list, which item of the old one it is; None for a new one."""
    found: list[int | None] = [None] * len(after)
    free = dict.fromkeys(range(len(before)))
    # The surest sign first, for all items, before a weaker one takes an item away.
    for sign in (_get_position_and_value, _get_value, _get_item_name, _get_nameless_position):
        known: dict[Any, list[int]] = {}
        for place in reversed(free):
            known.setdefault(sign(before, place, len(after)), []).append(place)
        for place, match in enumerate(found):
            wanted = sign(after, place, len(before)) if match is None else None
            if wanted is not None and known.get(wanted):
                found[place] = taken = known[wanted].pop()
                del free[taken]
    return found


def _get_position_and_value(items: Sequence[Any], place: int, _: int) -> Any:
    return place, _encode(items[place])


def _get_value(items: Sequence[Any], place: int, _: int) -> Any:
    return _encode(items[place])


def _get_item_name(items: Sequence[Any], place: int, _: int) -> Any:
    item = items[place]
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _get_nameless_position(items: Sequence[Any], place: int, other_length: int) -> Any:
    return place if len(items) == other_length and _get_item_name(items, place, 0) is None else None


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are the same: for Python True is 1, for JSON it is not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    found: bool = one == other
    return found
