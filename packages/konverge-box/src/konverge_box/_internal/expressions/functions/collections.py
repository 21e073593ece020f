"""Functions of lists and mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_box._internal.expressions.functions.encodings import to_json
from konverge_box._internal.expressions.functions.function import build_group
from konverge_box._internal.expressions.values import Absent, are_equal, describe_value_type, is_number

__all__ = ["COLLECTIONS", "SAFE", "look_up_path"]


def look_up_path(value: object, path: str | list[Any]) -> Any:
    """Return the value at a path (a string with dots or a list of keys); an `Absent` if there is none."""
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
    """Tell whether the list contains the item: `listHas(spec.tiers, "gold")`."""
    return any(are_equal(each, item) for each in items)


def list_get(items: list[Any], index: int, fallback: Any = None) -> Any:
    """Return the item at an index, from 0, or from the end if negative; the fallback if there is none."""
    return items[index] if -len(items) <= index < len(items) else fallback


def list_len(items: Any | Absent) -> int:
    """Return the number of items; 0 for absent, null or any value that is not a list."""
    return len(items) if isinstance(items, list) else 0


def first(items: list[Any]) -> Any:
    """Return the first item; null for an empty list."""
    return items[0] if items else None


def last(items: list[Any]) -> Any:
    """Return the last item; null for an empty list."""
    return items[-1] if items else None


def sort(items: list[Any]) -> list[Any]:
    """Sort a list of only numbers or only strings: `sort([3, 1])` is `[1, 3]`."""
    if not (all(is_number(item) for item in items) or all(isinstance(item, str) for item in items)):
        raise ValueError("expected only numbers or only strings to sort")
    return sorted(items)


def reverse(items: list[Any]) -> list[Any]:
    """Return the list in reverse order."""
    return items[::-1]


def unique(items: list[Any]) -> list[Any]:
    """Remove duplicates; each item keeps its first position: `unique(["b", "a", "b"])` is `["b", "a"]`."""
    items_by_json: dict[str, Any] = {}
    for item in items:
        items_by_json.setdefault(to_json(item), item)
    return list(items_by_json.values())


def pluck(items: list[Any], key: str) -> list[Any]:
    """Return this field of each mapping in the list that has it: `pluck(spec.users, "name")`."""
    return [item[key] for item in items if isinstance(item, Mapping) and key in item]


def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    """Replace each list in the list by its items, to a depth of 1 to 10: `flatten([[1], 2, [3]])` is `[1, 2, 3]`."""
    if not 1 <= depth <= 10:
        raise ValueError(f"expected a depth from 1 to 10, found {depth}")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list):
            flat += flatten(item, depth - 1) if depth > 1 else item
        else:
            flat.append(item)
    return flat


def map_get(mapping: Mapping[str, Any], key: str, fallback: Any = None) -> Any:
    """Return the value of a key that may contain dots, or the fallback: `mapGet(labels, "app.kubernetes.io/name")`."""
    return mapping.get(key, fallback)


def map_keys(mapping: Mapping[str, Any]) -> list[str]:
    """Return the keys in sorted order."""
    return sorted(mapping)


def map_values(mapping: Mapping[str, Any]) -> list[Any]:
    """Return the values in the order of their keys."""
    return [mapping[key] for key in sorted(mapping)]


def map_items(mapping: Mapping[str, Any]) -> list[Any]:
    """Return pairs of key and value in the order of the keys: `{% for key, value in mapItems(spec.env) %}`."""
    return [[key, mapping[key]] for key in sorted(mapping)]


def map_pick(mapping: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return a mapping with only these keys: `mapPick(labels, "app", "tier")`."""
    return {key: value for key, value in mapping.items() if key in keys}


def map_omit(mapping: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return a mapping without these keys."""
    return {key: value for key, value in mapping.items() if key not in keys}


def map_merge(mapping: Mapping[str, Any], *others: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge mappings; the last value of a key wins. Nested mappings are not merged."""
    merged = dict(mapping)
    for other in others:
        merged.update(other)
    return merged


def get(value: Any | Absent, path: str | list[Any]) -> Any:
    """Return the value at a path of any depth, null if there is none: `get(spec, "resources.requests.cpu")`.

    If keys contain dots, the path is a list: `get(metadata, ["labels", "app.kubernetes.io/name"])`.
    """
    return _use_fallback(look_up_path(value, path), None)


def get_or(value: Any | Absent, path: str | list[Any], fallback: Any) -> Any:
    """Return the value at a path, or the fallback if absent or null: `getOr(spec, "resources.cpu", "100m")`."""
    return _use_fallback(look_up_path(value, path), fallback)


def get_string_or(value: Any | Absent, path: str | list[Any], fallback: str) -> str:
    """Return the string at a path, or the fallback if there is no string."""
    found = look_up_path(value, path)
    return found if isinstance(found, str) else fallback


def get_int_or(value: Any | Absent, path: str | list[Any], fallback: int) -> int:
    """Return the integer at a path, or the fallback if there is no integer."""
    found = look_up_path(value, path)
    return found if type(found) is int else fallback


def get_bool_or(value: Any | Absent, path: str | list[Any], fallback: bool) -> bool:
    """Return the boolean at a path, or the fallback if there is no boolean."""
    found = look_up_path(value, path)
    return found if isinstance(found, bool) else fallback


def require(value: Any | Absent, message: str) -> Any:
    """Return the value; fail with this message if it is absent, null or an empty string."""
    if isinstance(value, Absent) or value is None or value == "":
        raise ValueError(f"{message} (found {'an empty string' if value == '' else describe_value_type(value)})")
    return value


COLLECTIONS = build_group(
    "Lists and mappings",
    "A loop over a mapping iterates over its keys in sorted order.\n\n"
    "A comprehension computes a list or a mapping: `[m.name for m in spec.members if m.active]`, "
    "`{m.name: m.port for m in spec.members}`, `[m.name ~ '-' ~ e for m in spec.members for e in m.environments]`. A "
    "key that occurs twice is an error; `omit` leaves an item out. The same as functions, which can be piped: "
    "`map(items, name, expression)`, `filter(items, name, condition)`; `any(items, name, condition)` and "
    "`all(items, name, condition)` tell whether the condition holds for some or for all items: "
    "`spec.members | filter(m, m.active) | map(m, m.name)`. For lists of pairs, give several names: "
    "`map(mapItems(spec.env), key, value, key ~ '=' ~ value)`.",
    list_has,
    list_get,
    list_len,
    first,
    last,
    sort,
    reverse,
    unique,
    pluck,
    flatten,
    map_get,
    map_keys,
    map_values,
    map_items,
    map_pick,
    map_omit,
    map_merge,
)
SAFE = build_group(
    "Absent values",
    "A path to an absent field, or below one, is an error unless one of these functions, `default` or `is defined` "
    "reads it.",
    get,
    get_or,
    get_string_or,
    get_int_or,
    get_bool_or,
    require,
)
