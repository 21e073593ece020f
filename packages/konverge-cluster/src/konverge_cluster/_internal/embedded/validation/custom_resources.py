"""Validation of custom resources against their structural schema.

The texts are those of the API server, which validates the "body" of a request field by field. CEL rules
(``x-kubernetes-validations``) are in `cel_rules`.

An update does not report the errors of parts that it does not change (`ratcheting`), so that an object from before a
stricter schema can still be changed.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

import msgspec

from konverge._internal.apply.schema import ABSENT, Schema
from konverge._internal.kube.durations import parse_duration
from konverge._internal.kube.re2 import MatchTooCostlyError, compile_pattern
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_duplicate,
    field_invalid,
    field_not_supported,
    field_required,
    field_too_long,
    field_too_many,
    field_type_invalid,
    format_value,
)
from konverge_cluster._internal.embedded.validation.ratcheting import (
    find_old_field,
    get_item_key,
    index_old_items,
    is_unchanged,
)

__all__ = ["validate_scale", "validate_value"]

_ROOT = frozenset({"apiVersion", "kind", "metadata"})
_INTEGER_LIMITS = {"int32": 2**31, "int64": 2**63}


def validate_value(value: Any, schema: Schema, path: str = "", old: Any = ABSENT) -> Iterator[FieldError]:
    """Yield the validation errors of a value.

    Args:
        value: An object or a part of one.
        schema: The schema for the value.
        path: The path of the part; empty for a whole object, whose identity and metadata have other rules.
        old: The stored value that an update replaces; `ABSENT` if there is none that corresponds to it.
    """
    errors = list(_validate_value(value, schema, path, old))
    if errors and path and is_unchanged(value, old, schema):
        return
    yield from errors


def _validate_value(value: Any, schema: Schema, path: str, old: Any) -> Iterator[FieldError]:
    yield from _validate_type(value, schema, path)
    if schema.enum and value not in schema.enum:
        yield field_not_supported(path, value, schema.enum)
    match value:
        case str():
            yield from _validate_text(value, schema, path)
        case bool():
            pass
        case int() | float():
            yield from _validate_number(value, schema, path)
        case list():
            yield from _validate_list(value, schema, path, old)
        case Mapping():
            yield from _validate_fields(value, schema, path, old)
    yield from _validate_junctors(value, schema, path, old)


def validate_scale(obj: Any, path: tuple[str, ...]) -> Iterator[FieldError]:
    """Yield the validation errors of the replicas that a custom resource provides for scaling.

    Args:
        obj: The custom resource.
        path: The path of the number in the scale subresource.
    """
    field, value = f".{'.'.join(path)}", obj
    for name in path:
        if not isinstance(value, Mapping):
            message = (
                f"{field} accessor error: {value} is of the type {_get_go_type(value)}, "
                f"expected map[string]interface{{}}"
            )
            yield field_invalid(field, 0, message)
            return
        if name not in value:
            return
        value = value[name]
    if value is None:
        yield field_invalid(field, 0, f"{field} accessor error: <nil> is of the type <nil>, expected int64")
    elif isinstance(value, bool) or not isinstance(value, int):
        message = f"{field} accessor error: {value} is of the type {_get_go_type(value)}, expected int64"
        yield field_invalid(field, 0, message)
    elif value < 0:
        yield field_invalid(field, value, "should be a non-negative integer")
    elif value >= _INTEGER_LIMITS["int32"]:
        yield field_invalid(field, value, f"should be less than or equal to {_INTEGER_LIMITS['int32'] - 1}")


def _get_go_type(value: Any) -> str:
    go_types = {"array": "[]interface {}", "boolean": "bool", "number": "float64", "string": "string"}
    return go_types.get(_get_type_name(value), "map[string]interface {}")


def _validate_type(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    actual_type = _get_type_name(value)
    if value is None and schema.nullable:
        return
    if schema.int_or_string:
        if actual_type not in ("integer", "string"):
            yield field_type_invalid(
                path, actual_type, f'{path} in body must be of type integer,string: "{actual_type}"'
            )
        return
    if not schema.type or schema.type == actual_type or (schema.type == "number" and actual_type == "integer"):
        return
    if schema.type == "integer" and isinstance(value, float):
        if value.is_integer():
            return
        actual_type, expected_type = "float64", schema.format or "integer"
        yield field_type_invalid(path, actual_type, f'{path} in body must be of type {expected_type}: "{actual_type}"')
        return
    yield field_type_invalid(path, actual_type, f'{path} in body must be of type {schema.type}: "{actual_type}"')


def _validate_text(value: str, schema: Schema, path: str) -> Iterator[FieldError]:
    # Of these three errors only the first is reported.
    if schema.max_length is not None and len(value) > schema.max_length:
        yield field_too_long(path, schema.max_length)
    elif schema.min_length is not None and len(value) < schema.min_length:
        yield field_invalid(path, value, f"{path} in body should be at least {schema.min_length} chars long")
    elif schema.pattern and not _fits_pattern(value, schema.pattern):
        yield field_invalid(path, value, f"{path} in body should match '{schema.pattern}'")
    fits = _FORMATS.get(schema.format)
    if fits is not None and not fits(value):
        yield field_type_invalid(path, value, f"{path} in body must be of type {schema.format}: {format_value(value)}")


def _validate_number(value: float, schema: Schema, path: str) -> Iterator[FieldError]:
    limit = _INTEGER_LIMITS.get(schema.format)
    is_whole = isinstance(value, int) or value.is_integer()
    if schema.type == "integer" and limit is not None and not (is_whole and -limit <= value < limit):
        message = f"Checked value must be of type integer with format {schema.format} in {path}"
        yield field_invalid("<nil>", "", message)
    low, high, step = schema.minimum, schema.maximum, schema.multiple_of
    if low is not None and (value < low or (schema.exclusive_minimum and value == low)):
        than = "greater than" if schema.exclusive_minimum else "greater than or equal to"
        yield field_invalid(path, value, f"{path} in body should be {than} {format_value(low)}")
    if high is not None and (value > high or (schema.exclusive_maximum and value == high)):
        than = "less than" if schema.exclusive_maximum else "less than or equal to"
        yield field_invalid(path, value, f"{path} in body should be {than} {format_value(high)}")
    if step and not _is_multiple(value, step):
        yield field_invalid(path, value, f"{path} in body should be a multiple of {format_value(step)}")


def _is_multiple(value: float, step: float) -> bool:
    """Return whether the real server counts a number as a multiple: `MultipleOfNativeType` of kube-openapi."""
    if isinstance(value, int):
        whole = int(step)  # 0 for a fraction, of which no integer is a multiple
        return whole > 0 and value % whole == 0
    quotient = 1 / step * value if step < 1 else value / step
    below = math.trunc(quotient)
    return quotient == below or abs(quotient - below) / (abs(quotient) + abs(below)) < 1e-9


def _validate_list(value: list[Any], schema: Schema, path: str, old: Any) -> Iterator[FieldError]:
    if schema.items is not None:
        find_old = index_old_items(old, schema)
        for index, item in enumerate(value):
            yield from validate_value(item, schema.items, f"{path}[{index}]", find_old(item))
    if schema.min_items is not None and len(value) < schema.min_items:
        yield field_invalid(path, len(value), f"{path} in body should have at least {schema.min_items} items")
    if schema.max_items is not None and len(value) > schema.max_items:
        yield field_too_many(path, len(value), schema.max_items)
    if schema.list_type == "set" or schema.unique_items:
        yield from _find_duplicates(value, lambda item: item, path)
    elif schema.list_type == "map":
        keys = schema.list_map_keys
        yield from _find_duplicates(value, lambda item: get_item_key(item, keys), path)


def _find_duplicates(value: list[Any], identity: Callable[[Any], Any], path: str) -> Iterator[FieldError]:
    seen: set[bytes] = set()
    for index, item in enumerate(value):
        key = identity(item)
        spelled = msgspec.json.encode(key, order="sorted")
        if spelled in seen:
            yield field_duplicate(f"{path}[{index}]", key)
        seen.add(spelled)


def _validate_fields(value: Mapping[str, Any], schema: Schema, path: str, old: Any) -> Iterator[FieldError]:
    if schema.min_properties is not None and len(value) < schema.min_properties:
        yield field_invalid(path, len(value), f"{path} in body should have at least {schema.min_properties} properties")
    if schema.max_properties is not None and len(value) > schema.max_properties:
        yield field_too_many(path, len(value), schema.max_properties)
    needed = schema.required | {"apiVersion", "kind"} if schema.embedded_resource else schema.required
    for name in sorted(needed):
        if name not in value:
            yield field_required(f"{path}.{name}" if path else name)
    for name, item in value.items():
        if (not path or schema.embedded_resource) and name in _ROOT:
            continue
        child = schema.find_child(name)
        if child is not None:
            yield from validate_value(item, child, f"{path}.{name}" if path else name, find_old_field(old, name))


def _validate_junctors(value: Any, schema: Schema, path: str, old: Any) -> Iterator[FieldError]:
    # The real server reports no field and no value here.
    if schema.any_of and not schema.int_or_string:
        tries = [list(_validate_value(value, branch, path, old)) for branch in schema.any_of]
        if all(tries):
            yield field_invalid("<nil>", "", f'"{path}" must validate at least one schema (anyOf)')
            yield from min(tries, key=len)
    if schema.one_of:
        tries = [list(_validate_value(value, branch, path, old)) for branch in schema.one_of]
        fitting = sum(not errors for errors in tries)
        if fitting != 1:
            summary = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
            yield field_invalid("<nil>", "", f'"{path}" must validate one and only one schema (oneOf). {summary}')
            if not fitting:
                yield from min(tries, key=len)
    if schema.all_of and not schema.int_or_string:
        tries = [list(_validate_value(value, branch, path, old)) for branch in schema.all_of]
        if any(tries):
            yield field_invalid("<nil>", "", f'"{path}" must validate all the schemas (allOf)')
            for errors in tries:
                yield from errors
    if schema.negated is not None and not list(_validate_value(value, schema.negated, path, old)):
        yield field_invalid("<nil>", "", f'"{path}" must not validate the schema (not)')


def _get_type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case _:
            return "array"


def _fits_pattern(value: str, pattern: str) -> bool:
    read = compile_pattern(pattern)
    try:
        # An invalid pattern where the server does not validate the definition; it restricts nothing.
        return read is None or read.matches(value)
    except MatchTooCostlyError:
        return False


def _build_format_check(read: Callable[[str], Any], *failures: type[Exception]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except failures:
            return False
        return True

    return fits


_HOST_LABEL = "[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_FORMATS: dict[str, Callable[[str], Any]] = {
    "byte": _build_format_check(lambda text: base64.b64decode(text, validate=True), binascii.Error, ValueError),
    "cidr": _build_format_check(ipaddress.ip_interface, ValueError),
    "date": _build_format_check(date.fromisoformat, ValueError),
    "date-time": _build_format_check(datetime.fromisoformat, ValueError),
    "duration": _build_format_check(parse_duration, ValueError),
    "email": re.compile(r"[^@\s]+@[^@\s]+").fullmatch,
    "hostname": re.compile(rf"{_HOST_LABEL}(\.{_HOST_LABEL})*").fullmatch,
    "ipv4": _build_format_check(ipaddress.IPv4Address, ValueError),
    "ipv6": _build_format_check(ipaddress.IPv6Address, ValueError),
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+|/.*").fullmatch,
    "uuid": re.compile(r"[0-9A-Fa-f]{8}-?([0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}").fullmatch,
}
