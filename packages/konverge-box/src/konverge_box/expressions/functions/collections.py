"""Functions of lists and mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_box.expressions.functions.encodings import to_json
from konverge_box.expressions.functions.function import build_group
from konverge_box.expressions.values import Absent, are_equal, describe_value_type, is_number

__all__ = ["COLLECTIONS", "SAFE", "look_up_path"]


def look_up_path(value: object, path: str | list[Any]) -> Any:
    """What is at a path, a text with dots or a list of keys; an `Absent` if nothing is."""
    keys = path.split(".") if isinstance(path, str) else path
    for key in keys:
        if isinstance(value, Mapping) and isinstance(key, str) and key in value:
            value = value[key]
        elif isinstance(value, list) and (place := _parse_index(key)) is not None and place < len(value):
            value = value[place]
        else:
            return Absent(str(path), str(path), None)
    return value


def _parse_index(key: object) -> int | None:
    if isinstance(key, str) and key.isdecimal() and len(key) < 10:
        return int(key)
    return key if type(key) is int and key >= 0 else None


def _use_fallback(found: object, fallback: Any) -> Any:
    return fallback if found is None or isinstance(found, Absent) else found


def list_has(items: list[Any], item: Any) -> bool:
    """Whether the item is in the list: `listHas(spec.tiers, "gold")`."""
    return any(are_equal(each, item) for each in items)


def list_get(items: list[Any], index: int, fallback: Any = None) -> Any:
    """The item at a place, counted from 0, or from the end if negative; the fallback where there is none."""
    return items[index] if -len(items) <= index < len(items) else fallback


def list_len(items: Any | Absent) -> int:
    """How many items it has; 0 for what is absent, null or no list."""
    return len(items) if isinstance(items, list) else 0


def first(items: list[Any]) -> Any:
    """The first item; null if there is none."""
    return items[0] if items else None


def last(items: list[Any]) -> Any:
    """The last item; null if there is none."""
    return items[-1] if items else None


def sort(items: list[Any]) -> list[Any]:
    """In order, all of them numbers or all of them text: `sort([3, 1])` is `[1, 3]`."""
    if not (all(is_number(item) for item in items) or all(isinstance(item, str) for item in items)):
        raise ValueError("expected only numbers or only text to sort")
    return sorted(items)


def reverse(items: list[Any]) -> list[Any]:
    """The last item first."""
    return items[::-1]


def unique(items: list[Any]) -> list[Any]:
    """Each item once, where it stands first: `unique(["b", "a", "b"])` is `["b", "a"]`."""
    found: dict[str, Any] = {}
    for item in items:
        found.setdefault(to_json(item), item)
    return list(found.values())


def pluck(items: list[Any], key: str) -> list[Any]:
    """That field of each mapping in the list that has it: `pluck(spec.users, "name")`."""
    return [item[key] for item in items if isinstance(item, Mapping) and key in item]


def map_get(mapping: Mapping[str, Any], key: str, fallback: Any = None) -> Any:
    """The value of a key, dots and all, or else the fallback: `mapGet(labels, "app.kubernetes.io/name")`."""
    return mapping.get(key, fallback)


def map_keys(mapping: Mapping[str, Any]) -> list[str]:
    """The keys, in order."""
    return sorted(mapping)


def map_values(mapping: Mapping[str, Any]) -> list[Any]:
    """The values, in the order of their keys."""
    return [mapping[key] for key in sorted(mapping)]


def map_items(mapping: Mapping[str, Any]) -> list[Any]:
    """Lists of key and value, in the order of the keys: `{% for key, value in mapItems(spec.env) %}`."""
    return [[key, mapping[key]] for key in sorted(mapping)]


def map_pick(mapping: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """A mapping of only these keys: `mapPick(labels, "app", "tier")`."""
    return {key: value for key, value in mapping.items() if key in keys}


def map_omit(mapping: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """A mapping without these keys."""
    return {key: value for key, value in mapping.items() if key not in keys}


def map_merge(mapping: Mapping[str, Any], *others: Mapping[str, Any]) -> Mapping[str, Any]:
    """A mapping of all keys; of those in several, what the last says. It does not look into values."""
    merged = dict(mapping)
    for other in others:
        merged.update(other)
    return merged


def get(value: Any | Absent, path: str | list[Any]) -> Any:
    """What is at a path, null if nothing is, at whatever depth: `get(spec, "resources.requests.cpu")`.

    For keys with dots the path is a list: `get(metadata, ["labels", "app.kubernetes.io/name"])`.
    """
    return _use_fallback(look_up_path(value, path), None)


def get_or(value: Any | Absent, path: str | list[Any], fallback: Any) -> Any:
    """What is at a path; the fallback if that is absent or null: `getOr(spec, "resources.requests.cpu", "100m")`."""
    return _use_fallback(look_up_path(value, path), fallback)


def get_string_or(value: Any | Absent, path: str | list[Any], fallback: str) -> str:
    """The text at a path; the fallback if there is none."""
    found = look_up_path(value, path)
    return found if isinstance(found, str) else fallback


def get_int_or(value: Any | Absent, path: str | list[Any], fallback: int) -> int:
    """The integer at a path; the fallback if there is none."""
    found = look_up_path(value, path)
    return found if type(found) is int else fallback


def get_bool_or(value: Any | Absent, path: str | list[Any], fallback: bool) -> bool:
    """The boolean at a path; the fallback if there is none."""
    found = look_up_path(value, path)
    return found if isinstance(found, bool) else fallback


def require(value: Any | Absent, message: str) -> Any:
    """The value; if it is absent, null or empty text, an error with this message."""
    if isinstance(value, Absent) or value is None or value == "":
        raise ValueError(f"{message} (found {'empty text' if value == '' else describe_value_type(value)})")
    return value


COLLECTIONS = build_group(
    "Lists and mappings",
    "A loop over a mapping goes through its keys in order.",
    list_has,
    list_get,
    list_len,
    first,
    last,
    sort,
    reverse,
    unique,
    pluck,
    map_get,
    map_keys,
    map_values,
    map_items,
    map_pick,
    map_omit,
    map_merge,
)
SAFE = build_group(
    "What may be absent",
    "A path whose field, or parent, is absent is an error, unless it is asked for with one of these, with `default`, "
    "or with `is defined`.",
    get,
    get_or,
    get_string_or,
    get_int_or,
    get_bool_or,
    require,
)
