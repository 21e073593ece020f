"""The round trip of a built-in object through the server's own types: decode, default, encode.

The result is the form that the server stores. It has no nulls, and no zero values in fields that do not distinguish
zero from absent. Some fields appear without a request (``resources: {}``). Quantities, times and bytes have their
canonical form. The schema data contains the behavior of each field; it was read from the types themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from konverge._internal.apply.schema import Schema
from konverge._internal.kube.base64_text import canonicalize_base64
from konverge._internal.kube.quantities import canonicalize_quantity
from konverge._internal.kube.timestamps import format_micro_time, format_time, parse_time

__all__ = ["Defaulter", "round_trip_value"]

Defaulter: TypeAlias = Callable[[str, dict[str, Any]], None]
"""A function that adds the defaults of a value of a named type, in place: the definition's name, and the value."""

# Other code reads the ownership, and an empty list has a meaning there: remove all managers.
_LEFT_ALONE = "managedFields"

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def round_trip_value(value: Any, schema: Schema, default: Defaulter | None = None) -> Any:
    """Return a new value in the server's form; parts that do not match the schema stay unchanged for validation.

    Args:
        value: The value, which stays unchanged.
        schema: The schema of a built-in kind, or of a part of one.
        default: The function that adds the defaults of each value of a named type, outer values first; None for no
            defaults.
    """
    if isinstance(value, dict):
        if schema.properties:
            return _convert_struct(value, schema, default)
        below = schema.additional_properties
        if schema.type != "object" or below is None or not below.spec:
            return value
        if below.quantity:
            return {name: _convert_quantity(each, milli=True) for name, each in value.items()}
        return {name: _convert_element(each, below, default) for name, each in value.items()}
    if isinstance(value, list):
        return [_convert_element(each, schema.items, default) for each in value] if schema.items is not None else value
    if schema.quantity:
        return _convert_quantity(value, milli=False)
    if isinstance(value, str) and schema.format == "date-time":
        return _convert_time(value, micro=schema.name == _META + "MicroTime")
    if isinstance(value, str) and schema.format == "byte":
        return _convert_bytes(value)
    if isinstance(value, float) and schema.type == "integer" and value.is_integer():
        return int(value)
    return value


_ZEROS: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


def _convert_element(value: Any, schema: Schema, default: Defaulter | None) -> Any:
    """Convert an item of a list or of a map without named fields; null becomes the zero value of its type."""
    if value is None:
        value = {} if schema.properties else _ZEROS.get(schema.type)
    return round_trip_value(value, schema, default)


def _convert_struct(value: Mapping[str, Any], schema: Schema, default: Defaulter | None) -> dict[str, Any]:
    always, keeps_zero, properties = schema.always_written, schema.keeps_zero, schema.properties
    converted: dict[str, Any] = {}
    for name, field in value.items():
        if field is None:
            continue
        # In a field that is always written, an empty list differs from the null that absence becomes.
        is_kept = name in keeps_zero or name == _LEFT_ALONE or (name in always and isinstance(field, list | dict))
        if not field and not is_kept and _is_zero(field, properties.get(name)):
            continue
        converted[name] = field
    if default is not None:
        for name, field in schema.declared_defaults.items():
            converted.setdefault(name, field)
        default(schema.name, converted)
    for name, zero in always.items():
        if name not in converted:
            converted[name] = {} if zero == {} else zero
    for name, field in converted.items():
        child = properties.get(name)
        if child is not None and name != _LEFT_ALONE:
            converted[name] = round_trip_value(field, child, default)
    return converted


def _is_zero(value: Any, schema: Schema | None) -> bool:
    """Return True if an empty value is the zero of its type; an empty mapping is not if the type has named fields."""
    if schema is None:
        return False
    return not (isinstance(value, dict) and (schema.properties or schema.type != "object"))


def _convert_quantity(value: Any, *, milli: bool) -> Any:
    try:
        return canonicalize_quantity(value, milli=milli) if isinstance(value, str | int | float) else value
    except ValueError:
        return value


def _convert_bytes(value: str) -> str:
    try:
        return canonicalize_base64(value)
    except ValueError:
        return value


def _convert_time(value: str, *, micro: bool) -> Any:
    try:
        moment = parse_time(value)
    except ValueError:
        return value
    return format_micro_time(moment) if micro else format_time(moment)
