"""The changes from one value to another, as field sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from konverge._internal.apply.field_set import FieldSet, Path, field_element
from konverge._internal.apply.schema import ABSENT, UNTYPED, Schema
from konverge._internal.apply.typed_values import (
    Shape,
    find_item_schema,
    find_shape,
    group_items_by_element,
    is_same_value,
)

__all__ = ["FieldComparison", "compare"]


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """The paths that were added, modified and removed from one value to another."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    def subtract_trees(self, ignored: FieldSet) -> FieldComparison:
        """Return the comparison without these paths and everything below them."""
        return FieldComparison(
            self.added.subtract_trees(ignored),
            self.modified.subtract_trees(ignored),
            self.removed.subtract_trees(ignored),
        )


@dataclass(slots=True)
class _ChangedPaths:
    added: list[Path] = field(default_factory=list)
    modified: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)


def compare(old: Any, new: Any, schema: Schema) -> FieldComparison:
    """Compare the old value with the new one."""
    changes = _ChangedPaths()
    _compare(old, new, schema, (), changes)
    return FieldComparison(FieldSet.of(changes.added), FieldSet.of(changes.modified), FieldSet.of(changes.removed))


def _compare(old: Any, new: Any, schema: Schema, path: Path, changes: _ChangedPaths) -> None:
    shapes: set[Shape] = {
        find_shape(schema, value) for value in (old, new) if value is not ABSENT and value is not None
    }
    for shape in shapes or {find_shape(schema, None)}:
        if not _compare_inside(shape, old, new, schema, path, changes):
            _compare_whole(old, new, path, changes)
        elif old is ABSENT:
            changes.added.append(path)
        elif new is ABSENT:
            changes.removed.append(path)


def _compare_whole(old: Any, new: Any, path: Path, changes: _ChangedPaths) -> None:
    if old is ABSENT:
        changes.added.append(path)
    elif new is ABSENT:
        changes.removed.append(path)
    elif not is_same_value(old, new):
        changes.modified.append(path)


def _compare_inside(shape: Shape, old: Any, new: Any, schema: Schema, path: Path, changes: _ChangedPaths) -> bool:
    """Compare the fields or items; return False if the value has none or is atomic."""
    if shape == "map" and not schema.map_atomic:
        before = old if isinstance(old, dict) else {}
        after = new if isinstance(new, dict) else {}
        if not before and not after:
            return False
        for name in before | after:
            at = (*path, field_element(name))
            _compare(before.get(name, ABSENT), after.get(name, ABSENT), schema.find_child(name) or UNTYPED, at, changes)
        return True
    if shape == "list" and schema.list_type in ("map", "set"):
        was = group_items_by_element(schema, old if isinstance(old, list) else [])
        now = group_items_by_element(schema, new if isinstance(new, list) else [])
        if not was and not now:
            return False
        for element in was | now:
            _compare_items(
                was.get(element, []), now.get(element, []), find_item_schema(schema), (*path, element), changes
            )
        return True
    return False


def _compare_items(was: list[Any], now: list[Any], schema: Schema, path: Path, changes: _ChangedPaths) -> None:
    """Compare one item of an associative list; several values for it mean that the list contains duplicates."""
    if len(was) > 1 and len(now) > 1:
        if not is_same_value(was, now):
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
