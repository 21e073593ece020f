"""The errors of a value against its schema, as messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge._internal.apply.field_set import Path, field_element, format_path
from konverge._internal.apply.schema import Schema
from konverge._internal.apply.typed_values import find_item_element, find_item_schema, find_shape

__all__ = ["find_schema_errors"]


def find_schema_errors(value: Any, schema: Schema) -> tuple[str, ...]:
    """Find the errors of the value against the schema, one message each; empty if it is valid.

    Only the requirements of a merge are checked: known fields, types, keys of associative lists.
    """
    return tuple(_find_errors(value, schema, ()))


def _find_errors(value: Any, schema: Schema, path: Path) -> Iterable[str]:
    if value is None:
        return
    shape = find_shape(schema, value)
    if shape == "map":
        if not isinstance(value, dict):
            yield f"{format_path(path)}: expected map, got {_describe_type(value)}"
            return
        for name, below in value.items():
            at = (*path, field_element(name))
            child = schema.find_child(name)
            if child is None:
                yield f"{format_path(at)}: field not declared in schema"
            else:
                yield from _find_errors(below, child, at)
    elif shape == "list":
        if not isinstance(value, list):
            yield f"{format_path(path)}: expected list, got {_describe_type(value)}"
            return
        yield from _find_list_errors(value, schema, path)
    elif not _is_scalar_of(schema, value):
        yield (
            f"{format_path(path)}: expected {_SCALAR_WORDS.get(schema.type, 'any scalar')}, got {_describe_type(value)}"
        )


def _find_list_errors(value: list[Any], schema: Schema, path: Path) -> Iterable[str]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if schema.list_type in ("map", "set"):
            key = find_item_element(schema, item)
            if key is None:
                yield f"{format_path(path)}: element {index}: {_describe_missing_key(schema, item)}"
                return
            element = key
            if element in seen:
                yield f"{format_path(path)}: duplicate entries for key {format_path((element,))}"
            seen.add(element)
        yield from _find_errors(item, find_item_schema(schema), (*path, element))


def _describe_missing_key(schema: Schema, item: Any) -> str:
    if schema.list_type == "set":
        return f"a set holds scalars, got {_describe_type(item)}"
    if not isinstance(item, dict):
        return f"a list with keys holds mappings, got {_describe_type(item)}"
    return f"associative list with keys has an element that omits all key fields {list(schema.list_map_keys)}"


_SCALAR_WORDS = {"string": "string", "boolean": "boolean", "integer": "numeric", "number": "numeric"}


def _is_scalar_of(schema: Schema, value: Any) -> bool:
    match schema.type:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(value, str | int | float)


def _describe_type(value: Any) -> str:
    """Return the type of a value, never the value itself: it may be secret."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "list"
        case _:
            return "map"
