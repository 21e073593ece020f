"""Values read by their schema: which fields they have, how two of them merge, differ and lose fields.

The rules are those of structured-merge-diff, the library behind server-side apply (KEP-555): mappings merge field by
field unless the schema calls them atomic; lists are atomic unless the schema calls them a set or a map by keys.
`ABSENT` stands for no value; None is an explicit null, which is a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from konverge.apply.fields import FieldSet, Path, field_element, format_path, key_element, value_element
from konverge.apply.schema import ABSENT, UNTYPED, Schema

__all__ = [
    "Comparison",
    "compare",
    "field_set_of",
    "merge",
    "mistakes_of",
    "same_value",
    "with_named_parents",
    "without",
]

Shape: TypeAlias = Literal["map", "list", "scalar"]

_SCALARS = frozenset({"string", "integer", "number", "boolean"})


def same_value(one: Any, other: Any) -> bool:
    """Equality of JSON values: 1 equals 1.0, but True is not 1."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, dict):
        return all(same_value(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return all(map(same_value, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


def _shape(schema: Schema, value: Any) -> Shape:
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
    """Tell whether the value merges by its fields or items, rather than as a whole."""
    if isinstance(value, dict):
        return _shape(schema, value) == "map" and not schema.map_atomic
    return isinstance(value, list) and _shape(schema, value) == "list" and not _is_atomic_list(schema)


def _items(schema: Schema) -> Schema:
    return schema.items or UNTYPED


def item_element(schema: Schema, item: Any) -> str | None:
    """The path element of an item of an associative list; None when it cannot have one.

    A key field that the item leaves out takes its default; one without a default is left out of the element.
    """
    if schema.list_type == "set":
        return None if item is None or isinstance(item, dict | list) else value_element(item)
    if not isinstance(item, dict):
        return None
    keys = {}
    for name in schema.list_map_keys:
        value = item.get(name, ABSENT)
        if value is ABSENT:
            of = _items(schema).properties.get(name)
            value = of.default if of is not None else ABSENT
        if isinstance(value, dict | list):
            return None
        if value is not ABSENT:
            keys[name] = value
    return key_element(keys) if keys else None


def _by_element(schema: Schema, items: Sequence[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        element = item_element(schema, item)
        if element is not None:
            found.setdefault(element, []).append(item)
    return found


# Which fields a value has


def field_set_of(value: Any, schema: Schema) -> FieldSet:
    """The paths that somebody owns who applies this value."""
    paths: list[Path] = []
    _collect(value, schema, (), paths)
    return FieldSet.of(paths)


def _collect(value: Any, schema: Schema, path: Path, paths: list[Path]) -> None:
    shape = _shape(schema, value)
    if shape == "scalar":
        paths.append(path)
    elif shape == "map":
        if schema.map_atomic:
            paths.append(path)
        elif isinstance(value, dict):
            for name, below in value.items():
                at = (*path, field_element(name))
                _collect(below, schema.child(name) or UNTYPED, at, paths)
                if below is None or below == {} or name not in schema.properties:
                    paths.append(at)
    elif _is_atomic_list(schema):
        paths.append(path)
    elif isinstance(value, list):
        for element, twins in _by_element(schema, value).items():
            at = (*path, element)
            if len(twins) == 1:
                _collect(twins[0], _items(schema), at, paths)
            paths.append(at)


# What two values make together


def merge(live: Any, applied: Any, schema: Schema) -> Any:
    """The live value with the applied one laid over it; `ABSENT` when nothing is left."""
    decisive = live if applied is ABSENT or applied is None else applied
    shape = _shape(schema, decisive)
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
        value = merge(live.get(name, ABSENT), applied.get(name, ABSENT), schema.child(name) or UNTYPED)
        if value is not ABSENT:
            merged[name] = value
    return merged if merged else ABSENT


def _merge_lists(live: Sequence[Any], applied: Sequence[Any], schema: Schema) -> Any:
    """Applied items keep their order among themselves; live items that were not applied keep their place between."""
    before = [(item_element(schema, item), item) for item in live]
    after = [(item_element(schema, item), item) for item in applied]
    twins = _by_element(schema, live)
    wanted = dict(after)
    shared = [element for element, _ in after if element in twins]
    of = _items(schema)
    merged: list[Any] = []
    done: set[str | None] = set()

    def take(element: str | None, old: Any, new: Any) -> None:
        value = merge(old, new, of)
        if value is not ABSENT:
            merged.append(value)
        done.add(element)

    def take_applied(position: int) -> None:
        element, item = after[position]
        known = twins.get(element or "", [])
        # Of an item that the live list holds twice neither can be told to be the one that is meant.
        take(element, ABSENT if not known else known[0] if len(known) == 1 else None, item)
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
                if element in wanted and shared and shared[0] != element:
                    left += 1  # It comes later, in the applied order.
                    continue
            if element not in wanted:
                take(element, item, ABSENT)
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(after):
            take_applied(right)
            right += 1
    return merged if merged else ABSENT


# How two values differ


@dataclass(frozen=True, slots=True)
class Comparison:
    """Which paths came, changed and went from one value to another."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    def without_trees(self, ignored: FieldSet) -> Comparison:
        """The same, blind to these paths and what is below them."""
        return Comparison(
            self.added.without_trees(ignored), self.modified.without_trees(ignored), self.removed.without_trees(ignored)
        )


@dataclass(slots=True)
class _Changes:
    added: list[Path] = field(default_factory=list)
    modified: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)


def compare(old: Any, new: Any, schema: Schema) -> Comparison:
    """What changed from the old value to the new one."""
    changes = _Changes()
    _compare(old, new, schema, (), changes)
    return Comparison(FieldSet.of(changes.added), FieldSet.of(changes.modified), FieldSet.of(changes.removed))


def _compare(old: Any, new: Any, schema: Schema, path: Path, changes: _Changes) -> None:
    shapes = {_shape(schema, value): None for value in (old, new) if value is not ABSENT and value is not None}
    for shape in shapes or {_shape(schema, None): None}:
        if not _compare_inside(shape, old, new, schema, path, changes):
            _compare_whole(old, new, path, changes)
        elif old is ABSENT:
            changes.added.append(path)
        elif new is ABSENT:
            changes.removed.append(path)


def _compare_whole(old: Any, new: Any, path: Path, changes: _Changes) -> None:
    if old is ABSENT:
        changes.added.append(path)
    elif new is ABSENT:
        changes.removed.append(path)
    elif not same_value(old, new):
        changes.modified.append(path)


def _compare_inside(shape: Shape, old: Any, new: Any, schema: Schema, path: Path, changes: _Changes) -> bool:
    """Compare what is inside; False when the value is one whole here."""
    if shape == "map" and not schema.map_atomic:
        before = old if isinstance(old, dict) else {}
        after = new if isinstance(new, dict) else {}
        if not before and not after:
            return False
        for name in before | after:
            at = (*path, field_element(name))
            _compare(before.get(name, ABSENT), after.get(name, ABSENT), schema.child(name) or UNTYPED, at, changes)
        return True
    if shape == "list" and not _is_atomic_list(schema):
        was = _by_element(schema, old if isinstance(old, list) else [])
        now = _by_element(schema, new if isinstance(new, list) else [])
        if not was and not now:
            return False
        for element in was | now:
            _compare_items(was.get(element, []), now.get(element, []), _items(schema), (*path, element), changes)
        return True
    return False


def _compare_items(was: list[Any], now: list[Any], schema: Schema, path: Path, changes: _Changes) -> None:
    """One item of an associative list; more than one value for it means that the list held it twice."""
    if len(was) > 1 and len(now) > 1:
        if not same_value(was, now):
            changes.modified.append(path)
    elif len(was) > 1:
        if now:
            _compare(ABSENT, now[0], schema, path, changes)
        changes.removed.append(path)
    elif len(now) > 1:
        if was:
            _compare(was[0], ABSENT, schema, path, changes)
        changes.added.append(path)
    else:
        _compare(was[0] if was else ABSENT, now[0] if now else ABSENT, schema, path, changes)


# What is left of a value


def without(value: Any, fields: FieldSet, schema: Schema) -> Any:
    """The value without the fields of the set; None when nothing is left of a mapping or list."""
    shape = _shape(schema, value)
    if shape == "map":
        if not isinstance(value, dict) or not value or schema.map_atomic:
            return None
        kept: dict[str, Any] = {}
        for name, below in value.items():
            gone = fields.children.get(field_element(name))
            if gone is None:
                kept[name] = below
            elif not gone.owned:
                kept[name] = without(below, gone, schema.child(name) or UNTYPED)
        return kept or None
    if shape == "list":
        if not isinstance(value, list) or not value or _is_atomic_list(schema):
            return None
        left: list[Any] = []
        for item in value:
            gone = fields.children.get(item_element(schema, item) or "")
            if gone is None:
                left.append(item)
            elif not gone.owned:
                left.append(without(item, gone, _items(schema)))
        return left or None
    return value


def with_named_parents(fields: FieldSet, schema: Schema | None) -> FieldSet:
    """The set with each field that the schema names and under which something is in it."""
    children = {}
    for element, below in fields.children.items():
        child: Schema | None = None
        named = False
        if schema is not None:
            if element.startswith("f:"):
                name = element[2:]
                named = name in schema.properties
                child = schema.child(name)
            else:
                child = schema.items
        grown = with_named_parents(below, child)
        children[element] = FieldSet(grown.children, owned=below.owned or (named and bool(below.children)))
    return FieldSet(children, owned=fields.owned)


# What is wrong with a value


def mistakes_of(value: Any, schema: Schema, *, allow_twins: bool = False) -> tuple[str, ...]:
    """Why the value cannot be read by the schema, one sentence each; empty when it can.

    Only what merging needs is checked: known fields, types, keys of associative lists.

    Args:
        value: The value.
        schema: Its schema.
        allow_twins: Let an associative list hold an item twice (old objects may).
    """
    return tuple(_mistakes(value, schema, (), allow_twins))


def _mistakes(value: Any, schema: Schema, path: Path, allow_twins: bool) -> Iterable[str]:
    if value is None:
        return
    shape = _shape(schema, value)
    if shape == "map":
        if not isinstance(value, dict):
            yield f"{format_path(path)}: expected map, got {_described(value)}"
            return
        for name, below in value.items():
            at = (*path, field_element(name))
            child = schema.child(name)
            if child is None:
                yield f"{format_path(at)}: field not declared in schema"
            else:
                yield from _mistakes(below, child, at, allow_twins)
    elif shape == "list":
        if not isinstance(value, list):
            yield f"{format_path(path)}: expected list, got {_described(value)}"
            return
        yield from _list_mistakes(value, schema, path, allow_twins)
    elif not _is_scalar_of(schema, value):
        yield f"{format_path(path)}: expected {_SCALAR_WORDS.get(schema.type, 'any scalar')}, got {_described(value)}"


def _list_mistakes(value: list[Any], schema: Schema, path: Path, allow_twins: bool) -> Iterable[str]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if not _is_atomic_list(schema):
            key = item_element(schema, item)
            if key is None:
                yield f"{format_path(path)}: element {index}: {_why_no_key(schema, item)}"
                return
            element = key
            if element in seen and not allow_twins:
                yield f"{format_path(path)}: duplicate entries for key {format_path((element,))}"
            seen.add(element)
        yield from _mistakes(item, _items(schema), (*path, element), allow_twins)


def _why_no_key(schema: Schema, item: Any) -> str:
    if schema.list_type == "set":
        return f"a set holds scalars, got {_described(item)}"
    if not isinstance(item, dict):
        return f"a list with keys holds mappings, got {_described(item)}"
    return f"associative list with keys has an element that omits all key fields {list(schema.list_map_keys)}"


_SCALAR_WORDS = {"string": "string", "boolean": "boolean", "integer": "numeric", "number": "numeric"}


def _is_scalar_of(schema: Schema, value: Any) -> bool:
    match schema.type:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(value, str | int | float)


def _described(value: Any) -> str:
    """The kind of a value, never the value: it may be secret."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "list"
        case _:
            return "map"
