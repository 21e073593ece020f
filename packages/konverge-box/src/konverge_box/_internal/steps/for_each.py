"""The repetition of an entry: for each item of a list, or for each key of a map in sorted order; also in nested loops.

The key of an item identifies it independently of its position, so that another order changes no name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.message_text import quote
from konverge_box._internal.expressions import Absent, Sensitive, Template, compile_expression, is_expression
from konverge_box._internal.expressions.values import describe_value_type
from konverge_box._internal.file import ForEach
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.scope import Scope

__all__ = ["MAX_ITEMS", "Repetition"]

MAX_ITEMS = 1000
"""Maximum number of items for one entry of the file, in all its loops together."""

_ABSENT = object()
_MAX_KEY_LENGTH = 100


class Repetition:
    """The compiled ``forEach`` of an entry. Without one, there is one repetition without an item.

    Args:
        declared: The loops of the file, from the outer to the inner one; empty without a ``forEach``.
        where: The path of the entry in the file.
        max_items: The maximum number of items in all loops together.
    """

    def __init__(self, declared: tuple[ForEach, ...], where: str, max_items: int = MAX_ITEMS) -> None:
        self._where = f"{where}.forEach"
        self._loops = tuple(
            _CompiledLoop(each, self._where if len(declared) == 1 else f"{self._where}[{number}]")
            for number, each in enumerate(declared)
        )
        self._max_items = max_items
        self._needs_keys = any(each.key for each in declared)

    @property
    def is_loop(self) -> bool:
        """Tell whether the file declares a ``forEach``."""
        return bool(self._loops)

    def list_scopes(self, scope: Scope) -> list[Scope]:
        """Return one scope for each item, with the names of its loops, ``key`` and ``index``.

        ``item``, and ``value`` for a map, are those of the innermost loop. ``key`` is absent if an item has none.
        ``index`` counts the items of all loops together. A field that is absent or null has no items.

        Raises:
            StepError: The field is neither a list nor a map, there are too many items, or two items have one key. Text
                instead of a list must not count as an empty list: that would delete every object of the list.
            konverge_box.expressions.ExpressionError: An expression has no value.
        """
        if not self._loops:
            return [scope]
        found: list[tuple[Scope, tuple[str | None, ...]]] = [(scope, ())]
        for loop in self._loops:
            inner: list[tuple[Scope, tuple[str | None, ...]]] = []
            for outer, keys in found:
                for item_scope, key in loop.iter_scopes(outer, self._max_items):
                    inner.append((item_scope, (*keys, key)))
                    if len(inner) > self._max_items:
                        problem = f"expected at most {self._max_items} items in all loops together, found more"
                        raise StepError(self._where, problem)
            found = inner
        return list(self._add_keys(found))

    def _add_keys(self, found: list[tuple[Scope, tuple[str | None, ...]]]) -> Iterator[Scope]:
        seen: set[str] = set()
        for index, (scope, keys) in enumerate(found):
            present = [key for key in keys if key is not None]
            if len(present) < len(keys):
                yield scope.with_names(index=index)
                continue
            key = "-".join(present)
            if self._needs_keys and key in seen:
                shown = quote(key, _MAX_KEY_LENGTH)
                raise StepError(self._where, f"expected different keys, found {shown} twice; change key in forEach")
            seen.add(key)
            yield scope.with_names(index=index, key=key)


class _CompiledLoop:
    def __init__(self, declared: ForEach, where: str) -> None:
        self._where = where
        self._field = declared.field
        self._name = declared.as_
        self._path = tuple(declared.field.removeprefix(".").split("."))
        self._items: Template | None = None
        if is_expression(declared.field):
            self._items = compile_expression(declared.field, where=f"{where}.field")
        self._key = compile_expression(declared.key, where=f"{where}.key") if declared.key else None

    def iter_scopes(self, scope: Scope, max_items: int) -> Iterator[tuple[Scope, str | None]]:
        items = self._find_items(scope)
        if items is _ABSENT or items is None:
            return
        shown = "the expression" if self._items is not None else self._field
        if not isinstance(items, Mapping | list | tuple):
            actual = "a value from a Secret" if isinstance(items, Sensitive) else describe_value_type(items)
            raise StepError(self._where, f"expected a list or a map in {shown}, found {actual}")
        if len(items) > max_items:
            raise StepError(self._where, f"expected at most {max_items} items in {shown}, found {len(items)}")
        if isinstance(items, Mapping):
            for name, value in sorted(items.items()):
                inner = scope.with_names(**{"item": name, "value": value, self._name: name})
                yield inner, self._render_key(inner, name)
        else:
            for item in items:
                inner = scope.with_names(**{"item": item, self._name: item})
                yield inner, self._render_key(inner, item)

    def _render_key(self, scope: Scope, item: Any) -> str | None:
        """Return the declared key of an item; by default the item itself, if that is text or a whole number."""
        if self._key is None:
            return str(item) if type(item) in (str, int) else None
        key = scope.render(self._key)
        where = f"{self._where}.key"
        if isinstance(key, Sensitive):
            raise StepError(where, "expected no value from a Secret: names are not confidential")
        if type(key) not in (str, int) or key == "":
            found = "empty text" if key == "" else describe_value_type(key)
            raise StepError(where, f"expected text or a whole number, found {found}")
        return str(key)

    def _find_items(self, scope: Scope) -> Any:
        """Return the value of a path itself, not a copy: it can be longer than the limit of rendered values."""
        if self._items is not None:
            found = scope.find(self._items)
            return _ABSENT if isinstance(found, Absent) else found
        value: Any = scope.names
        for step in self._path:
            if isinstance(value, Mapping):
                value = value.get(step, _ABSENT)
            elif isinstance(value, list | tuple) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                return _ABSENT
        return value
