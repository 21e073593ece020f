"""Values put into the type that the file declares, strictly: what is not surely of the type is an error."""

from __future__ import annotations

import math
import re
from typing import Any

from konverge.box.expressions import OMIT, Sensitive
from konverge.box.expressions.values import GREATEST_INTEGER, is_number, kind_of, text_of
from konverge.box.file.model import ValueType
from konverge.box.steps.errors import StepError

__all__ = ["cast"]

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")
_EXPECTED: dict[ValueType, str] = {
    "string": "text, a number or a boolean",
    "integer": "an integer of 64 bits",
    "number": "a number",
    "boolean": "true or false",
}
_SHOWN = 40


def cast(value: Any, wanted: ValueType, where: str) -> Any:
    """A value in its declared type.

    Text is parsed, with blanks around it. A whole number is an integer, also when it is written as ``3.0`` in the
    object; the text ``"3.0"`` is none. No other type turns into a number or a boolean.

    Args:
        value: What was found, perhaps `Sensitive`.
        wanted: The type.
        where: Whose value it is, as a path in the file.

    Returns:
        The value, `Sensitive` if it was; `OMIT` for null and for blank text, which have none: the field is left out.

    Raises:
        StepError: It cannot be of that type. The message shows no sensitive value.
    """
    if value is OMIT or value is None:
        return OMIT
    if isinstance(value, Sensitive):
        found = _parsed(value.reveal(), wanted)
        if found is None:
            raise StepError(where, f"expected {_EXPECTED[wanted]}, found a value that comes from a Secret (not shown)")
        return found if found is OMIT else Sensitive(found)
    found = _parsed(value, wanted)
    if found is None:
        shown = repr(value[:_SHOWN]) if isinstance(value, str) else str(value) if is_number(value) else kind_of(value)
        raise StepError(where, f"expected {_EXPECTED[wanted]}, found {shown}")
    return found


def _parsed(value: Any, wanted: ValueType) -> Any:
    """The value in its type; None where it has none."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return OMIT
    match wanted:
        case "string":
            return text_of(value) if isinstance(value, str | bool) or is_number(value) else None
        case "integer":
            return _integer(value)
        case "number":
            return _number(value)
        case "boolean":
            return _boolean(value)


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        value = int(value.strip())
    if not is_number(value) or not math.isfinite(value) or value != int(value):
        return None
    return int(value) if -GREATEST_INTEGER - 1 <= value <= GREATEST_INTEGER else None


def _number(value: Any) -> int | float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        text = value.strip()
        whole = _integer(text)
        value = float(text) if whole is None else whole
    return value if is_number(value) and math.isfinite(value) else None


def _boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None
