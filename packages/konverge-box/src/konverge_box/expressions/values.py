"""What an expression can have as a value: JSON's values, two signs, and what each is called and reads like.

*Absent* is a field that is not there, *null* one that is there without a value, *empty* one whose value is empty; these
are three things. `OMIT` is what an expression answers whose field is to be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, TypeGuard

from konverge.suggestions import closest_match
from konverge_box.expressions.sensitive import Sensitive

__all__ = ["OMIT", "Absent", "Omit", "are_equal", "describe_value_type", "format_hint", "format_scalar", "is_number"]

MAX_INTEGER: Final = 2**63 - 1
"""Of an integer in Kubernetes' JSON; the least is its negative, less one."""

_MAX_HINT_WORDS = 8
_MAX_WORD_LENGTH = 60


class Omit(Enum):
    """The type of `OMIT`, so that type checkers can tell it apart."""

    OMIT = "omit"

    def __repr__(self) -> str:
        return "omit"


OMIT: Final = Omit.OMIT
"""The field that would get this value is left out."""


class Absent:
    """A field that is not there.

    Args:
        path: As it was written, for example ``spec.resources.requests``.
        missing: The part of the path that is not there first, for example ``spec.resources``.
        parent: What should have it; its keys are the known words.
    """

    __slots__ = ("missing", "parent", "path")

    def __init__(self, path: str, missing: str, parent: Any) -> None:
        self.path = path
        self.missing = missing
        self.parent = parent

    def describe_problem(self, *, shows_words: bool = True) -> str:
        """What is to be said to somebody who needs the value.

        Args:
            shows_words: Whether the words that are known may be told; they can come from a Secret, too.
        """
        said = f"{self.path} is absent" if self.path == self.missing else f"{self.path}: {self.missing} is absent"
        if isinstance(self.parent, Mapping):
            known = [key for key in self.parent if shows_words and isinstance(key, str)]
            said += format_hint(self.missing.rpartition(".")[2], known)
        elif self.parent is not None:
            said += f", since what should have it is {describe_value_type(self.parent)}"
        return f"{said}. Write {self.path} | default(…) for what may be absent"


def format_hint(word: str, known: Iterable[str]) -> str:
    """A half sentence on which known word may have been meant, or on which there are; empty if there are none."""
    words = sorted(known)
    near = closest_match(word, words)
    if near:
        return f" (did you mean {_shorten_word(near)}?)"
    shown = ", ".join(_shorten_word(each) for each in words[:_MAX_HINT_WORDS])
    return f" (there are {shown}{', …' if len(words) > _MAX_HINT_WORDS else ''})" if words else ""


def _shorten_word(word: str) -> str:
    return word if len(word) <= _MAX_WORD_LENGTH else f"{word[:_MAX_WORD_LENGTH]}…"


def describe_value_type(value: object) -> str:
    """What the value is, in the words of messages: ``text``, ``a number``, ``a list``."""
    match value:
        case None:
            return "null"
        case Absent():
            return "absent"
        case Omit():
            return "omit"
        case Sensitive():
            return "a value that comes from a Secret"
        case bool():
            return "a boolean"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "a mapping"
    return f"no value of an expression ({type(value).__name__})"


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether it is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def format_scalar(value: object) -> str:
    """The text of a scalar, as it reads in YAML: ``true``, ``3``, ``0.5``; a float that is whole reads as an integer.

    Raises:
        ValueError: It is null, a list, a mapping, or no value at all.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[return-value]  # its type was looked at
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, Sensitive):
        return format_scalar(value.reveal())
    hint = "toJSON writes it out" if isinstance(value, list | Mapping) else "default(…) gives it one"
    raise ValueError(f"{describe_value_type(value)} has no text; {hint}")


def are_equal(left: object, right: object) -> bool:
    """Tell whether two values are equal. A boolean is no number; 1 and 1.0 are one; keys have no order."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(are_equal(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(are_equal(item, right[key]) for key, item in left.items())
    return left == right
