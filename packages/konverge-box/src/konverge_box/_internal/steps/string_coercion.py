"""Conversions of rendered values that Kubernetes would otherwise reject.

Numbers and booleans become text where the schema allows only text: in labels, the environment of a container, the data
of a ConfigMap. A single expression keeps the type of its value, and the server would reject the number ``3`` as a
label. Nothing else is converted: text where a number is required is probably an error.

Null fields are removed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from konverge._internal.apply.schema import Schema
from konverge_box._internal.expressions import Sensitive, is_expression
from konverge_box._internal.expressions.values import format_scalar

__all__ = ["StringFields", "coerce_to_strings", "find_string_fields", "remove_nulls"]

_EACH = object()


class StringField(NamedTuple):
    """The path of an expression, whose steps can also stand for each item, and the schema of its value."""

    steps: tuple[Any, ...]
    schema: Schema


StringFields = tuple[StringField, ...]


def find_string_fields(value: Any, schema: Schema | None) -> StringFields:
    """Find the expressions in a value whose results must be text.

    Args:
        value: The value, with expressions in its texts.
        schema: Its schema; None for an unknown kind.
    """
    found: dict[tuple[Any, ...], Schema] = {}
    if schema is not None:
        _collect_string_fields(value, schema, (), found)
    return tuple(StringField(steps, below) for steps, below in found.items())


def _collect_string_fields(
    value: Any, schema: Schema, steps: tuple[Any, ...], found: dict[tuple[Any, ...], Schema]
) -> None:
    if isinstance(value, str):
        if is_expression(value) and (schema.type != "string" or _is_string_schema(schema)):
            found[steps] = schema
    elif isinstance(value, dict):
        for name, each in value.items():
            below = schema.find_child(name)
            if below is not None:
                _collect_string_fields(each, below, (*steps, _EACH if is_expression(name) else name), found)
    elif isinstance(value, list) and schema.items is not None:
        for each in value:
            _collect_string_fields(each, schema.items, (*steps, _EACH), found)


def coerce_to_strings(value: Any, places: StringFields) -> None:
    """Convert the rendered values of these fields in place."""
    for steps, schema in places:
        _coerce_field(value, steps, schema)


def remove_nulls(value: Any) -> Any:
    """Return the value without null fields at any depth. Null items of lists stay."""
    if isinstance(value, dict):
        return {name: remove_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [remove_nulls(each) for each in value]
    return value


def _coerce_field(value: Any, steps: tuple[Any, ...], schema: Schema) -> None:
    step, *rest = steps
    if isinstance(value, dict):
        keys: list[Any] = list(value) if step is _EACH else [step] if step in value else []
    elif isinstance(value, list) and step is _EACH:
        keys = list(range(len(value)))
    else:
        return
    for key in keys:
        if rest:
            _coerce_field(value[key], tuple(rest), schema)
        else:
            value[key] = _coerce_value(value[key], schema)


def _coerce_value(value: Any, schema: Schema | None) -> Any:
    if schema is None or value is None:
        return value
    if isinstance(value, Sensitive):
        return Sensitive(_coerce_value(value.reveal(), schema))
    if isinstance(value, bool | int | float):
        return format_scalar(value) if _is_string_schema(schema) else value
    if isinstance(value, dict):
        return {name: _coerce_value(each, schema.find_child(name)) for name, each in value.items()}
    if isinstance(value, list):
        return [_coerce_value(each, schema.items) for each in value]
    return value


def _is_string_schema(schema: Schema) -> bool:
    """Tell whether the schema allows only text. A port or a quantity can also be a number."""
    is_either = schema.spec.get("format") == "int-or-string" or "oneOf" in schema.spec
    return schema.type == "string" and not is_either and not schema.name.endswith(".Quantity")
