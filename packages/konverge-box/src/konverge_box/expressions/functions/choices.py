"""Functions that choose between values, and that tell and change what a value is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from konverge_box.expressions.functions.function import build_group
from konverge_box.expressions.values import Absent, are_equal, describe_value_type, format_scalar, is_number

__all__ = ["CHOICES", "TYPES", "get_type_name", "is_empty"]

_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")


def is_empty(value: object) -> bool:
    """Tell whether it is absent, null, or text, a list or a mapping with nothing in it."""
    return value is None or isinstance(value, Absent) or (isinstance(value, str | list | Mapping) and not value)


def get_type_name(value: object) -> str:
    """What YAML would call it: map, list, string, number, bool, null; absent."""
    match value:
        case None:
            return "null"
        case Absent():
            return "absent"
        case bool():
            return "bool"
        case str():
            return "string"
        case Mapping():
            return "map"
        case list():
            return "list"
    return "number"


def coalesce(*values: Any | Absent) -> Any:
    """The first that is not absent, null or empty; null if all are: `coalesce(spec.host, "localhost")`."""
    return next((value for value in values if not is_empty(value)), None)


def ternary(condition: bool, yes: Any, no: Any) -> Any:
    """The second or the third, as the first is true or false; `a if condition else b` says the same."""
    return yes if condition else no


def bool_ternary(condition: Any | Absent, yes: Any, no: Any) -> Any:
    """As `ternary`, for what may be absent or the text of a boolean: `boolTernary(spec.debug, "debug", "info")`."""
    return yes if not is_empty(condition) and to_bool(condition) else no


def bool_default(value: Any | Absent, fallback: bool) -> bool:
    """The boolean, or the fallback if it is absent, null or empty; false stays false."""
    return fallback if is_empty(value) else to_bool(value)


def eq_ternary(value: Any | Absent, other: Any, yes: Any, no: Any) -> Any:
    """The third if the first two are equal, else the fourth: `eqTernary(spec.tier, "gold", 3, 1)`."""
    return yes if are_equal(value, other) else no


def empty(value: Any | Absent) -> bool:
    """Whether it is absent, null, or text, a list or a mapping with nothing in it; 0 and false are not."""
    return is_empty(value)


def not_empty(value: Any | Absent) -> bool:
    """The opposite of `empty`."""
    return not is_empty(value)


def to_int(value: Any) -> int:
    """An integer of a number (what is behind the point is cut off), a boolean, or text: `toInt("8080")` is 8080."""
    if isinstance(value, int | float):
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value.strip())
    raise ValueError(f"expected an integer, found {_describe_value(value)}")


def to_float(value: Any) -> float:
    """A number of text, a number, or a boolean: `toFloat("0.5")` is 0.5."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return float(value.strip())
    raise ValueError(f"expected a number, found {_describe_value(value)}")


def to_bool(value: Any) -> bool:
    """A boolean of a boolean, the numbers 1 and 0, or true, yes, on, false, no, off as text."""
    if isinstance(value, bool):
        return value
    word = format_scalar(value).strip().lower() if isinstance(value, str) or is_number(value) else ""
    if word not in _WORDS:
        raise ValueError(f"expected true or false, found {_describe_value(value)}")
    return _WORDS[word]


def to_string(value: Any) -> str:
    """Its text: `toString(8080)` is `8080`, `toString(true)` is `true`."""
    return format_scalar(value)


def as_list(value: Any | Absent) -> list[Any]:
    """The list; a list of one for any other value; an empty one for what is absent or null."""
    return value if isinstance(value, list) else [] if value is None or isinstance(value, Absent) else [value]


def as_map(value: Any | Absent) -> Mapping[str, Any]:
    """The mapping; an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def as_string(value: Any | Absent) -> str:
    """Its text; empty for what has none."""
    return format_scalar(value) if isinstance(value, str | bool) or is_number(value) else ""


def type_of(value: Any | Absent) -> str:
    """`map`, `list`, `string`, `number`, `bool`, `null` or `absent`."""
    return get_type_name(value)


def type_map(value: Any | Absent) -> bool:
    """Whether it is a mapping."""
    return isinstance(value, Mapping)


def type_list(value: Any | Absent) -> bool:
    """Whether it is a list."""
    return isinstance(value, list)


def type_string(value: Any | Absent) -> bool:
    """Whether it is text."""
    return isinstance(value, str)


def type_number(value: Any | Absent) -> bool:
    """Whether it is a number."""
    return is_number(value)


def type_bool(value: Any | Absent) -> bool:
    """Whether it is a boolean."""
    return isinstance(value, bool)


def type_null(value: Any | Absent) -> bool:
    """Whether it is null; what is absent is not."""
    return value is None


def is_scalar(value: Any | Absent) -> bool:
    """Whether it is text, a number or a boolean."""
    return isinstance(value, str | bool) or is_number(value)


def is_composite(value: Any | Absent) -> bool:
    """Whether it is a list or a mapping."""
    return isinstance(value, list | Mapping)


def _len(value: Any) -> int:
    """How many letters, items or keys it has."""
    if not isinstance(value, str | list | Mapping):
        raise ValueError(f"expected text, a list or a mapping, found {describe_value_type(value)}")
    return len(value)


def _describe_value(value: object) -> str:
    return repr(value[:40]) if isinstance(value, str) else describe_value_type(value)


CHOICES = build_group(
    "Choices",
    "`default(fallback, value)`, piped `value | default(fallback)`, gives the fallback for what is absent or null; "
    "empty text, 0 and false are values. The fallback may be `omit`, which leaves the field out.",
    coalesce,
    ternary,
    bool_ternary,
    bool_default,
    eq_ternary,
    empty,
    not_empty,
)
TYPES = build_group(
    "Types",
    "",
    to_int,
    to_float,
    to_bool,
    to_string,
    as_list,
    as_map,
    as_string,
    type_of,
    type_map,
    type_list,
    type_string,
    type_number,
    type_bool,
    type_null,
    is_scalar,
    is_composite,
    _len,
)
