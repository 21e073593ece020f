"""Strict conversion of values to the type that the file declares. A doubtful value is an error."""

from __future__ import annotations

import math
import re
from typing import Any

from konverge_box._internal.expressions import OMIT, Sensitive
from konverge_box._internal.expressions.values import MAX_INTEGER, describe_value_type, format_scalar, is_number
from konverge_box._internal.file.model import ValueType
from konverge_box._internal.steps.errors import StepError

__all__ = ["cast_value"]

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")
_EXPECTED: dict[ValueType, str] = {
    "string": "text, a number or a boolean",
    "integer": "a 64-bit integer",
    "number": "a number",
    "boolean": "true or false",
}
_MAX_VALUE_LENGTH = 40


def cast_value(value: Any, wanted: ValueType, where: str) -> Any:
    """Convert a value to its declared type.

    Text is parsed without surrounding blanks. A whole number is an integer, also when it is written as ``3.0`` in the
    object; the text ``"3.0"`` is not. No other type becomes a number or a boolean.

    Args:
        value: The value, which can be `Sensitive`.
        wanted: The declared type.
        where: The path of the declaration in the file.

    Returns:
        The converted value, `Sensitive` if it was; `OMIT` for null and blank text, which removes the field.

    Raises:
        StepError: The value cannot be converted. The message contains no sensitive value.
    """
    if value is OMIT or value is None:
        return OMIT
    if isinstance(value, Sensitive):
        revealed = _parse_value(value.reveal(), wanted)
        if revealed is None:
            raise StepError(where, f"expected {_EXPECTED[wanted]}, found a value that comes from a Secret (not shown)")
        return revealed if revealed is OMIT else Sensitive(revealed)
    converted = _parse_value(value, wanted)
    if converted is None:
        description = (
            repr(value[:_MAX_VALUE_LENGTH])
            if isinstance(value, str)
            else str(value)
            if is_number(value)
            else describe_value_type(value)
        )
        raise StepError(where, f"expected {_EXPECTED[wanted]}, found {description}")
    return converted


def _parse_value(value: Any, wanted: ValueType) -> Any:
    """Convert a value; return None when it cannot be converted."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return OMIT
    match wanted:
        case "string":
            return format_scalar(value) if isinstance(value, str | bool) or is_number(value) else None
        case "integer":
            return _parse_integer(value)
        case "number":
            return _parse_number(value)
        case "boolean":
            return _parse_boolean(value)


def _parse_integer(value: Any) -> int | None:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        value = int(value.strip())
    if not is_number(value) or not math.isfinite(value) or value != int(value):
        return None
    return int(value) if -MAX_INTEGER - 1 <= value <= MAX_INTEGER else None


def _parse_number(value: Any) -> int | float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        text = value.strip()
        whole = _parse_integer(text)
        value = float(text) if whole is None else whole
    return value if is_number(value) and math.isfinite(value) else None


def _parse_boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None
