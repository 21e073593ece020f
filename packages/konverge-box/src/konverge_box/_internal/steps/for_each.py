"""The repetition of a resource: for each item of a list, or for each entry of a map in the order of the keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_box._internal.expressions import Sensitive
from konverge_box._internal.expressions.values import describe_value_type
from konverge_box._internal.file import ForEach
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.scope import Scope

__all__ = ["MAX_ITEMS", "Repetition"]

MAX_ITEMS = 1000
"""Maximum number of items for one entry of the file."""

_ABSENT = object()


class Repetition:
    """A compiled ``forEach``. Without one, there is one repetition without an item.

    Args:
        declared: The file's ``forEach``; None without one.
        where: The path of the resource in the file.
    """

    def __init__(self, declared: ForEach | None, where: str) -> None:
        self._declared = declared
        self._where = f"{where}.forEach"
        self._path = () if declared is None else tuple(declared.field.removeprefix(".").split("."))

    @property
    def is_loop(self) -> bool:
        """Tell whether the file declares a ``forEach``."""
        return self._declared is not None

    def list_scopes(self, scope: Scope) -> list[Scope]:
        """Return one scope for each item, with ``item``, ``index``, the name in ``as`` and, for a map, ``value``.

        A field that is absent or null has no items.

        Raises:
            StepError: The field is neither a list nor a map, or has more than `MAX_ITEMS`. Text instead of a list must
                not count as an empty list: that would delete every object of the list.
        """
        if self._declared is None:
            return [scope]
        items = self._find_items(scope)
        if items is _ABSENT or items is None:
            return []
        if not isinstance(items, Mapping | list | tuple):
            actual = "a value from a Secret" if isinstance(items, Sensitive) else describe_value_type(items)
            raise StepError(self._where, f"expected a list or a map in {self._declared.field}, found {actual}")
        if len(items) > MAX_ITEMS:
            problem = f"expected at most {MAX_ITEMS} items in {self._declared.field}, found {len(items)}"
            raise StepError(self._where, problem)
        if isinstance(items, Mapping):
            entries = sorted(items.items())
            return [self._build_scope(scope, index, key, value=value) for index, (key, value) in enumerate(entries)]
        return [self._build_scope(scope, index, item) for index, item in enumerate(items)]

    def _build_scope(self, scope: Scope, index: int, item: Any, **value: Any) -> Scope:
        assert self._declared is not None
        names = {"item": item, "index": index, **value}
        names[self._declared.as_] = item
        return scope.with_names(**names)

    def _find_items(self, scope: Scope) -> Any:
        """Return the value itself, not a copy: it can be longer than the limit of rendered values."""
        value: Any = scope.names
        for step in self._path:
            if isinstance(value, Mapping):
                value = value.get(step, _ABSENT)
            elif isinstance(value, list | tuple) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                return _ABSENT
        return value
