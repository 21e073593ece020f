"""Changes of a reconcile to a status, moved onto a status that another writer stored meanwhile. Pure.

Mappings are merged by field at any depth: two versions of an operator can write different fields of one mapping. Any
other value is one unit. Conditions have rules of their own (`component.reconcile_context`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from konverge._internal.kube import Object

__all__ = ["FieldPath", "find_changed_paths", "move_changes"]

FieldPath: TypeAlias = tuple[str, ...]
"""The names of the fields from the status down to a value."""

_ABSENT = object()
_CONDITIONS = "conditions"


def find_changed_paths(before: Any, after: Any) -> set[FieldPath]:
    """Return the paths that differ, without the conditions. A mapping that is gone is one path, not one for each field.

    Args:
        before: The status as it was read; None without one.
        after: The status that is to be written.
    """
    changed = _iter_changed_paths(before if isinstance(before, dict) else {}, after or {}, ())
    return {path for path in changed if path[0] != _CONDITIONS}


def move_changes(paths: Iterable[FieldPath], staged: Object, stored: Object) -> Object:
    """Return the stored status with the values of the staged one at the paths; none of the arguments is changed.

    Args:
        paths: The paths of `find_changed_paths`.
        staged: The status with the changes.
        stored: The status that another writer stored.
    """
    moved = stored
    for path in sorted(paths):
        moved = _move_value(path, staged, moved)
    return moved


def _iter_changed_paths(before: Object, after: Object, path: FieldPath) -> Iterator[FieldPath]:
    for name in before.keys() | after.keys():
        was, value = before.get(name, _ABSENT), after.get(name, _ABSENT)
        if was == value:
            continue
        below = was if isinstance(was, dict) else {}
        if isinstance(value, dict) and value:
            yield from _iter_changed_paths(below, value, (*path, name))
        else:
            yield (*path, name)


def _move_value(path: FieldPath, staged: Object, stored: Object) -> Object:
    name, *below = path
    value, was = staged.get(name, _ABSENT), stored.get(name, _ABSENT)
    if below and isinstance(value, dict) and isinstance(was, dict):
        return stored | {name: _move_value(tuple(below), value, was)}
    if value is _ABSENT:
        return {field: kept for field, kept in stored.items() if field != name}
    return stored | {name: value}
