"""Checks of plain values against the OpenAPI schema of a custom resource: types, words, bounds and unknown fields.

An expression matches every type because its value is known only at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube.re2 import MatchTooCostlyError, compile_pattern
from konverge._internal.message_text import quote
from konverge_box._internal.file.struct_reader import describe_type, has_expression
from konverge_box._internal.file.validation_errors import Path, format_hint

__all__ = ["find_default_errors", "find_node", "find_value_errors"]

_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a mapping",
    "string": "a string",
}
_OPEN = "x-kubernetes-preserve-unknown-fields"
_LENGTHS = (
    (str, "minLength", "maxLength", "characters"),
    (list, "minItems", "maxItems", "items"),
    (dict, "minProperties", "maxProperties", "fields"),
)


def find_default_errors(schema: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the errors of all defaults in a schema, each with its path and message."""
    if not isinstance(schema, Mapping):
        return
    if schema.get("default") is not None:
        yield from find_value_errors(schema["default"], schema, (*path, "default"))
    properties = schema.get("properties")
    for name, below in properties.items() if isinstance(properties, Mapping) else ():
        yield from find_default_errors(below, (*path, "properties", name))
    for word in ("items", "additionalProperties"):
        yield from find_default_errors(schema.get(word), (*path, word))


def find_value_errors(value: Any, schema: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the errors of a value, each with its path and message.

    Args:
        value: The plain value; a null is absent.
        schema: A node of the schema, whose types may be implied by its keywords.
        path: The path of the value in the file.
    """
    if not isinstance(schema, Mapping) or value is None or (isinstance(value, str) and has_expression(value)):
        return
    kind = get_type(schema)
    if kind and not _is_of_type(value, kind):
        hint = "; quote it" if kind == "string" and isinstance(value, int | float) else ""
        yield path, f"expected {_WORDS[kind]}, found {describe_type(value)}{hint}"
        return
    allowed = schema.get("enum")
    if isinstance(allowed, list) and allowed and value not in allowed:
        words = [str(word) for word in allowed]
        hint = format_hint(str(value), words)
        yield path, f"expected one of {', '.join(words)}, found {_describe(value)}{hint if 'mean' in hint else ''}"
        return
    for problem in (*_find_number_errors(value, schema), *_find_text_errors(value, schema)):
        yield path, problem
    yield from _find_child_errors(value, schema, path)


def find_node(schema: Any, steps: tuple[str, ...]) -> Any:
    """Return the node of the schema at a path of field names; None where the schema does not describe it."""
    for step in steps:
        if not isinstance(schema, Mapping):
            return None
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        schema = properties.get(step, others) if isinstance(properties, Mapping) else others
    return schema if isinstance(schema, Mapping) else None


def get_type(schema: Mapping[str, Any]) -> str:
    """Return the type of a node: the declared one, or the one that its keywords imply; empty for any."""
    if schema.get("x-kubernetes-int-or-string"):
        return ""
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind if kind in _TYPES else ""
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    return "array" if "items" in schema else ""


def _is_of_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()  # as for the server, 2.0 is a whole number
    return isinstance(value, _TYPES[kind])


def _find_number_errors(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    low, high, step = (_as_number(schema.get(word)) for word in ("minimum", "maximum", "multipleOf"))
    if low is not None and (value < low or (value == low and schema.get("exclusiveMinimum") is True)):
        yield f"expected {'more than' if schema.get('exclusiveMinimum') is True else 'at least'} {low}, found {value}"
    if high is not None and (value > high or (value == high and schema.get("exclusiveMaximum") is True)):
        yield f"expected {'less than' if schema.get('exclusiveMaximum') is True else 'at most'} {high}, found {value}"
    if step and not float(value / step).is_integer():
        yield f"expected a multiple of {step}, found {value}"


def _find_text_errors(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    for kind, least, most, unit in _LENGTHS:
        if isinstance(value, kind):
            low, high = _as_number(schema.get(least)), _as_number(schema.get(most))
            if low is not None and len(value) < low:
                yield f"expected at least {low} {unit}, found {len(value)}"
            if high is not None and len(value) > high:
                yield f"expected at most {high} {unit}, found {len(value)}"
    pattern = schema.get("pattern")
    if isinstance(value, str) and isinstance(pattern, str) and not _fits_pattern(value, pattern):
        yield f"expected text that matches {quote(pattern)}, found {quote(value)}"


def _find_child_errors(value: Any, schema: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from find_value_errors(item, schema.get("items"), (*path, index))
    if not isinstance(value, dict):
        return
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    known = properties if isinstance(properties, Mapping) else {}
    for name, each in value.items():
        if name in known:
            yield from find_value_errors(each, known[name], (*path, name))
        elif isinstance(others, Mapping):
            yield from find_value_errors(each, others, (*path, name))
        elif known and not others and not schema.get(_OPEN) and not has_expression(name):
            yield (*path, name), f"unknown field{format_hint(name, known)}"


def _fits_pattern(value: str, pattern: str) -> bool:
    read = compile_pattern(pattern)
    try:
        return read is None or read.matches(value)  # an invalid pattern is reported elsewhere
    except MatchTooCostlyError:
        return False


def _as_number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _describe(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    return str(value) if isinstance(value, int | float) else describe_type(value)
