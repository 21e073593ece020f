"""Values of expressions: JSON values and two markers, with their names and their string forms.

*Absent* is a field that does not exist, *null* a field without a value, *empty* a field with an empty value; these are
three different things. `OMIT` is the result of an expression whose field is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, TypeGuard

from konverge._internal.message_text import shorten
from konverge._internal.suggestions import closest_match
from konverge_box._internal.expressions.sensitive import Sensitive

__all__ = ["OMIT", "Absent", "Omit", "are_equal", "describe_value_type", "format_hint", "format_scalar", "is_number"]

MAX_INTEGER: Final = 2**63 - 1
"""The largest integer in Kubernetes' JSON; the smallest is its negative minus one."""

_MAX_HINT_WORDS = 8
_MAX_WORD_LENGTH = 60


class Omit(Enum):
    """The type of `OMIT`, which type checkers can distinguish."""

    OMIT = "omit"

    def __repr__(self) -> str:
        return "omit"


OMIT: Final = Omit.OMIT
"""The field that would get this value is left out."""


class Absent:
    """A field that does not exist.

    Args:
        path: The path in the expression, for example ``spec.resources.requests``.
        missing: The first part of the path that does not exist, for example ``spec.resources``.
        parent: The value that lacks it; its keys are suggested.
    """

    __slots__ = ("missing", "parent", "path")

    def __init__(self, path: str, missing: str, parent: Any) -> None:
        self.path: str = path
        self.missing: str = missing
        self.parent: Any = parent

    def describe_problem(self, *, shows_words: bool = True) -> str:
        """Return the error message for code that needs the value.

        Args:
            shows_words: Whether the message may suggest keys; they can come from a Secret, too.
        """
        message = f"{self.path} is absent" if self.path == self.missing else f"{self.path}: {self.missing} is absent"
        if isinstance(self.parent, Mapping):
            keys = [key for key in self.parent if shows_words and isinstance(key, str)]
            message += format_hint(self.missing.rpartition(".")[2], keys)
        elif self.parent is not None:
            message += f", because its parent is {describe_value_type(self.parent)}"
        return f"{message}; write {self.path} | default(…) if it may be absent"


def format_hint(word: str, known: Iterable[str]) -> str:
    """Return the end of a message: the nearest known word, or the known words; empty if there are none."""
    words = sorted(known)
    near = closest_match(word, words)
    if near:
        return f" (did you mean {shorten(near, _MAX_WORD_LENGTH)}?)"
    listed = ", ".join(shorten(each, _MAX_WORD_LENGTH) for each in words[:_MAX_HINT_WORDS])
    return f" (known: {listed}{', …' if len(words) > _MAX_HINT_WORDS else ''})" if words else ""


def describe_value_type(value: object) -> str:
    """Return the type of a value in the words of messages: ``a string``, ``a number``, ``a list``."""
    match value:
        case None:
            return "null"
        case Absent():
            return "absent"
        case Omit():
            return "omit"
        case Sensitive():
            return "a value from a Secret"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "a mapping"
    return "a value that expressions do not support"


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether a value is a number; a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def format_scalar(value: object) -> str:
    """Convert a scalar to a string as in YAML: ``true``, ``3``, ``0.5``; a whole float reads as an integer.

    Raises:
        ValueError: The value is null, a list, a mapping, or unsupported.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[return-value]  # its type is checked above
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, Sensitive):
        return format_scalar(value.reveal())
    hint = "use toJSON" if isinstance(value, list | Mapping) else "use default(…)"
    raise ValueError(f"{describe_value_type(value)} cannot become a string; {hint}")


def are_equal(left: object, right: object) -> bool:
    """Tell whether two values are equal: a boolean equals no number, 1 equals 1.0, and the order of keys is ignored."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(are_equal(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(are_equal(item, right[key]) for key, item in left.items())
    return left == right
