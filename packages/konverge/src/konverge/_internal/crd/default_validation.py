"""Validation of defaults by their own schema: with an invalid default, no object without the field can be stored.

The keywords of schemas are implemented here separately from the embedded server, so that both cannot have the same
error. Only the server evaluates CEL rules for a default.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any
from uuid import UUID

from konverge._internal.kube import Object
from konverge._internal.kube.re2 import MatchTooCostlyError, compile_pattern

__all__ = ["validate_default"]

_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (Mapping,),
    "string": (str,),
}
_FORMATS: dict[str, Callable[[str], object]] = {
    "byte": lambda text: base64.b64decode(text, validate=True),
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
    "uuid": UUID,
}
_LENGTH_LIMITS: dict[type, tuple[str, str]] = {
    str: ("minLength", "maxLength"),
    list: ("minItems", "maxItems"),
    dict: ("minProperties", "maxProperties"),
}


def validate_default(schema: Object) -> Iterator[str]:
    """Yield the errors of a default by its own schema, one sentence each."""
    default = schema.get("default")
    if default is None:  # no default for the server either
        return
    for path, problem in _validate_value(default, schema, ""):
        at = f"at {path} of its default: " if path else "its default: "
        yield f"{at}{problem}"


def _validate_value(value: Any, schema: Object, path: str) -> Iterator[tuple[str, str]]:
    expected = _list_expected_types(schema)
    if value is None and schema.get("nullable"):
        return
    if expected and (
        not isinstance(value, sum((_TYPES[name] for name in expected), ())) or _is_unexpected_bool(value, expected)
    ):
        yield path, f"expected {' or '.join(expected)}, found {_format_value(value)}"
        return
    if (allowed := schema.get("enum")) and value not in allowed:
        yield path, f"expected one of {', '.join(map(_format_value, allowed))}, found {_format_value(value)}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        problems = _validate_number(value, schema)
    elif isinstance(value, str):
        problems = _validate_text(value, schema)
    else:
        problems = _validate_list(value, schema) if isinstance(value, list) else iter(())
    for problem in (*problems, *_validate_length(value, schema)):
        yield path, problem
    yield from _validate_children(value, schema, path)


def _list_expected_types(schema: Object) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") in _TYPES else ()


def _is_unexpected_bool(value: Any, expected: tuple[str, ...]) -> bool:
    """Return whether a bool is not permitted: Python treats it as an int, JSON does not."""
    return isinstance(value, bool) and "boolean" not in expected


def _validate_number(value: float, schema: Object) -> Iterator[str]:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if low is not None and (value < low or (value == low and schema.get("exclusiveMinimum"))):
        yield f"expected {'more than' if schema.get('exclusiveMinimum') else 'at least'} {low}, found {value}"
    if high is not None and (value > high or (value == high and schema.get("exclusiveMaximum"))):
        yield f"expected {'less than' if schema.get('exclusiveMaximum') else 'at most'} {high}, found {value}"
    if step and not _is_multiple(value, step):
        yield f"expected a multiple of {step}, found {value}"


def _is_multiple(value: float, step: float) -> bool:
    """Return whether the API server accepts a number as a multiple of a step (kube-openapi, `MultipleOfNativeType`).

    It cuts the step for an integer, so that no integer is a multiple of a fraction. For a fraction, it accepts the
    rounding of a quotient upwards only: 0.3 is a multiple of 0.1, and 0.29 is none of 0.01.
    """
    if isinstance(value, int):
        return int(step) > 0 and value % int(step) == 0
    quotient = abs(1 / step * value if step < 1 else value / step)
    return quotient - int(quotient) <= 1e-9 * (quotient + int(quotient))


def _validate_text(value: str, schema: Object) -> Iterator[str]:
    pattern, read = schema.get("pattern"), _FORMATS.get(schema.get("format", ""))
    if pattern and not _fits_pattern(value, pattern):
        yield f"expected text that matches {pattern!r}, found {_format_value(value)}"
    if read is not None:
        try:
            read(value)
        except ValueError:
            yield f"expected the format {schema['format']}, found {_format_value(value)}"


def _fits_pattern(value: str, pattern: str) -> bool:
    read = compile_pattern(pattern)
    try:
        return read is None or read.matches(value)  # an invalid pattern is reported elsewhere
    except MatchTooCostlyError:
        return False


def _validate_length(value: Any, schema: Object) -> Iterator[str]:
    if type(value) not in _LENGTH_LIMITS:
        return
    least, most = _LENGTH_LIMITS[type(value)]
    if len(value) < schema.get(least, 0):
        yield f"expected a length of at least {schema[least]}, found {len(value)}"
    if len(value) > schema.get(most, len(value)):
        yield f"expected a length of at most {schema[most]}, found {len(value)}"


def _validate_list(value: list[Any], schema: Object) -> Iterator[str]:
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") not in ("set", "map"):
        return
    seen: set[str] = set()
    for item in value:
        identity = {key: item.get(key) for key in keys} if keys and isinstance(item, Mapping) else item
        text = _format_value(identity)
        if text in seen:
            yield f"expected {text} once, found it twice"
        seen.add(text)


def _validate_children(value: Any, schema: Object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _validate_value(item, schema["items"], f"{path}[{index}]")
    if not isinstance(value, Mapping):
        return
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            yield path, f"expected the field {name}, found none"
    for name, item in value.items():
        at = f"{path}.{name}" if path else name
        below = properties.get(name, others)
        if isinstance(below, dict):
            # The default of the field itself is reported at the field.
            if item is None or item != below.get("default"):
                yield from _validate_value(item, below, at)
        elif properties and not others and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield path, f"expected no field {name}, there are {', '.join(properties)}"


def _format_value(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
