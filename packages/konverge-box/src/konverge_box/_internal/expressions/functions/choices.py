"""Functions that choose between values, test types and convert them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from konverge_box._internal.expressions.functions.function import build_group
from konverge_box._internal.expressions.values import Absent, are_equal, describe_value_type, format_scalar, is_number

__all__ = ["CHOICES", "TYPES", "get_type_name", "is_empty"]

_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")


def is_empty(value: object) -> bool:
    """Tell whether a value is absent, null, or an empty string, list or mapping."""
    return value is None or isinstance(value, Absent) or (isinstance(value, str | list | Mapping) and not value)


def get_type_name(value: object) -> str:
    """Return the YAML name of a value's type: map, list, string, number, bool, null; or absent."""
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
    """Return the first value that is not absent, null or empty; null if all are: `coalesce(spec.host, "localhost")`."""
    return next((value for value in values if not is_empty(value)), None)


def ternary(condition: bool, yes: Any, no: Any) -> Any:
    """Return the second argument if the condition is true, else the third; same as `a if condition else b`."""
    return yes if condition else no


def bool_ternary(condition: Any | Absent, yes: Any, no: Any) -> Any:
    """Return as `ternary`; the condition may be absent or a string: `boolTernary(spec.debug, "debug", "info")`."""
    return yes if not is_empty(condition) and to_bool(condition) else no


def bool_default(value: Any | Absent, fallback: bool) -> bool:
    """Return the boolean, or the fallback if the value is absent, null or empty; false stays false."""
    return fallback if is_empty(value) else to_bool(value)


def eq_ternary(value: Any | Absent, other: Any, yes: Any, no: Any) -> Any:
    """Return the third argument if the first two are equal, else the fourth: `eqTernary(spec.tier, "gold", 3, 1)`."""
    return yes if are_equal(value, other) else no


def empty(value: Any | Absent) -> bool:
    """Tell whether the value is absent, null, or an empty string, list or mapping; 0 and false are not empty."""
    return is_empty(value)


def not_empty(value: Any | Absent) -> bool:
    """Tell whether the value is not empty; the opposite of `empty`."""
    return not is_empty(value)


def to_int(value: Any) -> int:
    """Convert a number (its fraction is cut off), a boolean or a string to an integer: `toInt("8080")` is 8080."""
    if isinstance(value, int | float):
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value.strip())
    raise ValueError(f"expected an integer, found {_describe_value(value)}")


def to_float(value: Any) -> float:
    """Convert a string, a number or a boolean to a number: `toFloat("0.5")` is 0.5."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return float(value.strip())
    raise ValueError(f"expected a number, found {_describe_value(value)}")


def to_bool(value: Any) -> bool:
    """Convert to a boolean: a boolean, 1, 0, or one of the strings true, yes, on, false, no, off."""
    if isinstance(value, bool):
        return value
    word = format_scalar(value).strip().lower() if isinstance(value, str) or is_number(value) else ""
    if word not in _WORDS:
        raise ValueError(f"expected true or false, found {_describe_value(value)}")
    return _WORDS[word]


def to_string(value: Any) -> str:
    """Convert a scalar to a string: `toString(8080)` is `8080`, `toString(true)` is `true`."""
    return format_scalar(value)


def as_list(value: Any | Absent) -> list[Any]:
    """Return a list as it is, a list of one item for any other value, an empty list for absent or null."""
    return value if isinstance(value, list) else [] if value is None or isinstance(value, Absent) else [value]


def as_map(value: Any | Absent) -> Mapping[str, Any]:
    """Return a mapping as it is, an empty mapping for any other value."""
    return value if isinstance(value, Mapping) else {}


def as_string(value: Any | Absent) -> str:
    """Convert a scalar to a string; an empty string for any other value."""
    return format_scalar(value) if isinstance(value, str | bool) or is_number(value) else ""


def type_of(value: Any | Absent) -> str:
    """Return the type: `map`, `list`, `string`, `number`, `bool`, `null` or `absent`."""
    return get_type_name(value)


def type_map(value: Any | Absent) -> bool:
    """Tell whether the value is a mapping."""
    return isinstance(value, Mapping)


def type_list(value: Any | Absent) -> bool:
    """Tell whether the value is a list."""
    return isinstance(value, list)


def type_string(value: Any | Absent) -> bool:
    """Tell whether the value is a string."""
    return isinstance(value, str)


def type_number(value: Any | Absent) -> bool:
    """Tell whether the value is a number."""
    return is_number(value)


def type_bool(value: Any | Absent) -> bool:
    """Tell whether the value is a boolean."""
    return isinstance(value, bool)


def type_null(value: Any | Absent) -> bool:
    """Tell whether the value is null; an absent value is not."""
    return value is None


def is_scalar(value: Any | Absent) -> bool:
    """Tell whether the value is a string, a number or a boolean."""
    return isinstance(value, str | bool) or is_number(value)


def is_composite(value: Any | Absent) -> bool:
    """Tell whether the value is a list or a mapping."""
    return isinstance(value, list | Mapping)


def _len(value: Any) -> int:
    """Return the number of characters, items or keys."""
    if not isinstance(value, str | list | Mapping):
        raise ValueError(f"expected a string, a list or a mapping, found {describe_value_type(value)}")
    return len(value)


def _describe_value(value: object) -> str:
    return repr(value[:40]) if isinstance(value, str) else describe_value_type(value)


CHOICES = build_group(
    "Choices",
    "`default(fallback, value)`, piped `value | default(fallback)`, returns the fallback for an absent or null value; "
    "an empty string, 0 and false are values. The fallback may be `omit`, which leaves the field out.",
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
