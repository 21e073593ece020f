"""What a resource is repeated for: the elements of a list, or the entries of a map in the order of their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_box.expressions import Sensitive
from konverge_box.file import ForEach
from konverge_box.steps.errors import StepError
from konverge_box.steps.scope import Scope

__all__ = ["MAX_ITEMS", "Repetition"]

MAX_ITEMS = 1000
"""So many objects may come from one entry of the file."""

_ABSENT = object()


class Repetition:
    """A ``forEach``; or none, which is one turn without an item.

    Args:
        declared: What the file says.
        where: The path of the resource in the file.
    """

    def __init__(self, declared: ForEach | None, where: str) -> None:
        self._declared = declared
        self._where = f"{where}.forEach"
        self._path = () if declared is None else tuple(declared.field.removeprefix(".").split("."))

    @property
    def is_loop(self) -> bool:
        """Tell whether there may be any number of turns."""
        return self._declared is not None

    def list_scopes(self, scope: Scope) -> list[Scope]:
        """The scope of each turn: with ``item``, ``index``, what ``as`` names, and of a map ``value``.

        What is absent or null has no turns.

        Raises:
            StepError: The field is neither a list nor a map, or has more than `MAX_ITEMS`. A text where a list
                should be must not count as an empty list: that would delete every object of the list.
        """
        if self._declared is None:
            return [scope]
        found = self._find_items(scope)
        if found is _ABSENT or found is None:
            return []
        if not isinstance(found, Mapping | list | tuple):
            what = "what comes from a Secret" if isinstance(found, Sensitive) else type(found).__name__
            raise StepError(self._where, f"expected a list or a map in {self._declared.field}, found {what}")
        if len(found) > MAX_ITEMS:
            problem = f"expected at most {MAX_ITEMS} items in {self._declared.field}, found {len(found)}"
            raise StepError(self._where, problem)
        if isinstance(found, Mapping):
            entries = sorted(found.items())
            return [self._build_scope(scope, index, key, value=value) for index, (key, value) in enumerate(entries)]
        return [self._build_scope(scope, index, item) for index, item in enumerate(found)]

    def _build_scope(self, scope: Scope, index: int, item: Any, **value: Any) -> Scope:
        assert self._declared is not None
        names = {"item": item, "index": index, **value}
        names[self._declared.as_] = item
        return scope.with_names(**names)

    def _find_items(self, scope: Scope) -> Any:
        """The value as it is, not a copy: it may be longer than anything that is rendered."""
        found: Any = scope.names
        for step in self._path:
            if isinstance(found, Mapping):
                found = found.get(step, _ABSENT)
            elif isinstance(found, list | tuple) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                return _ABSENT
        return found
