"""Translation of msgspec's errors into sentences about the fields of the object."""

from __future__ import annotations

import re

from konverge._internal.crd.api_names import to_camel_case

__all__ = ["translate_error"]

_COMPLAINT = re.compile(r"(?P<problem>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_WRONG_TYPE = re.compile(r"Expected `(?P<expected>[^`]+)`(?P<limit>[^,]*), got `(?P<found>[^`]+)`")
_MISSING_FIELD = re.compile(r"Object missing required field `(?P<field>[^`]+)`")


def translate_error(message: str) -> tuple[str, str]:
    """Return the field's JSON path and the sentence of msgspec without its quotation marks."""
    parts = _COMPLAINT.fullmatch(message)
    assert parts is not None  # the pattern takes any text
    problem = parts["problem"]
    path = ".".join(to_camel_case(segment) for segment in (parts["path"] or "").split("."))
    if missing := _MISSING_FIELD.fullmatch(problem):
        field = to_camel_case(missing["field"])
        return (f"{path}.{field}" if path else field), "required, but missing"
    if wrong := _WRONG_TYPE.fullmatch(problem):
        return path, f"expected {wrong['expected']}{wrong['limit']}, found {wrong['found']}"
    if problem.startswith("Expected `"):
        return path, problem.replace("`", "").replace("Expected", "expected", 1)
    return path, problem
