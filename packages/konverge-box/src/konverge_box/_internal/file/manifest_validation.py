"""Validation of objects with expressions against the schemas of their kinds: unknown, mistyped and missing fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge._internal.apply.schema import DEDUCED, Schema
from konverge._internal.kube.quantities import quantity_to_fraction
from konverge._internal.message_text import quote
from konverge_box._internal.file.box_kinds import MAIN, ObjectPath
from konverge_box._internal.file.struct_reader import describe_type, has_expression
from konverge_box._internal.file.validation_errors import Path, format_hint, format_path

__all__ = ["find_manifest_errors", "find_missing_fields", "find_schema"]

_SCALARS: dict[str, type | tuple[type, ...]] = {"string": str, "boolean": bool, "integer": int, "number": (int, float)}
_WORDS = {"string": "a string", "boolean": "true or false", "integer": "a whole number", "number": "a number"}


def find_schema(schema: Schema | None, path: ObjectPath) -> Schema | None:
    """Return the schema at a path in an object; None if there is none."""
    for step in path:
        if schema is None:
            return None
        schema = schema.items if step == MAIN else schema.find_child(step)
    return schema


def find_manifest_errors(value: Any, schema: Schema, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the errors of a value, each with its path and message.

    A message contains only values of fields that cannot be secret: quantities and the words of an enum. An expression
    matches every type because its value is known only at run time. A null removes the field.
    """
    if schema is DEDUCED or value is None or (isinstance(value, str) and has_expression(value)):
        return
    if _is_int_or_string(schema):
        if isinstance(value, dict | list | bool):
            yield path, f"expected a number or a string, found {describe_type(value)}"
        elif isinstance(value, str) and schema.name.endswith(".Quantity") and not _is_quantity(value):
            similar = next(filter(_is_quantity, _list_similar_quantities(value)), "")
            hint = f"; did you mean {similar}?" if similar else ""
            yield path, f"expected a quantity such as 500m, 1.5 or 2Gi, found {quote(str(value))}{hint}"
    elif schema.type == "array":
        if not isinstance(value, list):
            yield path, f"expected a list, found {describe_type(value)}"
        elif schema.items is not None:
            for index, each in enumerate(value):
                yield from find_manifest_errors(each, schema.items, (*path, index))
    elif schema.type == "object" or schema.properties:
        if not isinstance(value, dict):
            yield path, f"expected a mapping, found {describe_type(value)}"
            return
        for name, each in value.items():
            child = schema.find_child(name)
            if has_expression(name):
                continue
            if child is None:
                yield (*path, name), f"unknown field of {_describe_type(schema)}{format_hint(name, schema.properties)}"
            else:
                yield from find_manifest_errors(each, child, (*path, name))
    elif schema.type in _SCALARS:
        fits = isinstance(value, _SCALARS[schema.type])
        if not fits or (isinstance(value, bool) and schema.type != "boolean"):
            advice = "; quote it" if schema.type == "string" and not isinstance(value, dict | list) else ""
            yield path, f"expected {_WORDS[schema.type]}, found {describe_type(value)}{advice}"
        elif schema.enum and value not in schema.enum and value:
            words = [str(word) for word in schema.enum]
            hint = format_hint(str(value), words)
            yield path, f"expected one of {', '.join(words)}, found {quote(str(value))}{hint if 'mean' in hint else ''}"


def find_missing_fields(value: Any, schema: Schema, at: Path = ()) -> Iterator[str]:
    """Yield the paths of the fields that the API server requires and the complete object lacks."""
    if isinstance(value, dict):
        for name in schema.spec.get("required", ()):
            if name not in value:
                yield format_path((*at, name))
        for name, each in value.items():
            child = schema.find_child(name)
            if child is not None and child is not DEDUCED:
                yield from find_missing_fields(each, child, (*at, name))
    elif isinstance(value, list) and schema.items is not None:
        for index, each in enumerate(value):
            yield from find_missing_fields(each, schema.items, (*at, index))


def _is_int_or_string(schema: Schema) -> bool:
    source = schema.spec
    return (
        source.get("format") == "int-or-string"
        or bool(source.get("x-kubernetes-int-or-string"))
        or "oneOf" in source
        or schema.name.endswith(".Quantity")
    )


def _is_quantity(text: str) -> bool:
    try:
        quantity_to_fraction(text)
    except ValueError:
        return False
    return True


def _list_similar_quantities(text: str) -> Iterator[str]:
    """Yield texts that may be meant: without spaces and the B of bytes, and with the case of the suffixes."""
    plain = text.replace(" ", "").removesuffix("B").removesuffix("b")
    yield plain
    yield f"{plain[:-1]}{plain[-1:].upper()}"
    yield f"{plain[:-2]}{plain[-2:].capitalize()}"


def _describe_type(schema: Schema) -> str:
    return schema.name.rpartition(".")[2] or "this object"
