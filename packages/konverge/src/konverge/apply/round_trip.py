"""The trip of a built-in object through the server's own types: decoded, defaulted, and written back.

What comes back is what the server stores. Nulls are gone, zero values of fields that do not tell zero from absent are
gone, others appear unasked (``resources: {}``), quantities, times and bytes have their one spelling. The schema data
says which field does what; it was read from the types themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from konverge.apply.schema import Schema
from konverge.kube.base64_text import canonicalize_base64
from konverge.kube.quantities import canonicalize_quantity
from konverge.kube.timestamps import format_micro_time, format_time, parse_time

__all__ = ["Defaulter", "round_trip_value"]

Defaulter: TypeAlias = Callable[[str, dict[str, Any]], None]
"""Fills the defaults of a value of a named type, in place: the definition's name, and the value."""

# Ownership is read elsewhere, and an empty list means something there: to forget it all.
_LEFT_ALONE = "managedFields"

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def round_trip_value(value: Any, schema: Schema, default: Defaulter | None = None) -> Any:
    """A new value in the server's form; what does not fit the schema is left as it is (validation will refuse it).

    Args:
        value: The value; not changed.
        schema: The schema of a built-in kind, or of a part of one.
        default: Fills the defaults of each value of a named type, from the outside in; None for no defaults.
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
    """An item of a list or of a free map: a null one is the zero value of its type."""
    if value is None:
        value = {} if schema.properties else _ZEROS.get(schema.type)
    return round_trip_value(value, schema, default)


def _convert_struct(value: Mapping[str, Any], schema: Schema, default: Defaulter | None) -> dict[str, Any]:
    always, keeps_zero, properties = schema.always_written, schema.keeps_zero, schema.properties
    found: dict[str, Any] = {}
    for name, each in value.items():
        if each is None:
            continue
        # An empty list of a field that is always written is not the null that an absent one becomes.
        kept = name in keeps_zero or name == _LEFT_ALONE or (name in always and isinstance(each, list | dict))
        if not each and not kept and _is_zero(each, properties.get(name)):
            continue
        found[name] = each
    if default is not None:
        for name, each in schema.declared_defaults.items():
            found.setdefault(name, each)
        default(schema.name, found)
    for name, zero in always.items():
        if name not in found:
            found[name] = {} if zero == {} else zero
    for name, each in found.items():
        child = properties.get(name)
        if child is not None and name != _LEFT_ALONE:
            found[name] = round_trip_value(each, child, default)
    return found


def _is_zero(value: Any, schema: Schema | None) -> bool:
    """Tell whether an empty value is its type's zero: an empty mapping is not one where the type has named fields."""
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
