"""Decoding of built-in objects as the server's own types do it: values that they reject, ignore or drop.

The real server decodes a body into a Go struct. So a value of the wrong type fails the request, an unknown field is
ignored (and reported), and null means absent.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from konverge._internal.apply import Schema
from konverge._internal.kube import parse_time
from konverge._internal.kube.quantities import canonicalize_quantity
from konverge.errors import BadRequestError
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = ["decode_typed"]

_QUANTITY_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SCALARS = {"string": "string", "boolean": "bool", "number": "float64"}


def decode_typed(value: Any, schema: Schema, unknown: list[str], *, path: str = "", owner: str = "") -> Any:
    """Return the value as the type stores it.

    Args:
        value: The value from the body.
        schema: The schema of the type.
        unknown: Receives the paths of the fields that the type does not have.
        path: The path of the value.
        owner: The name of the type that contains the field.

    Raises:
        BadRequestError: A value has the wrong type. The message is the text after "cannot be handled as".
    """
    return _TypedDecoder(unknown).decode(value, schema, path, path, owner)


class _TypedDecoder:
    def __init__(self, unknown: list[str]) -> None:
        self._unknown = unknown

    def decode(self, value: Any, schema: Schema, path: str, field: str, owner: str) -> Any:
        """Decode one value.

        Args:
            value: The value from the body.
            schema: The schema of its type.
            path: Its path with list positions, for unknown fields.
            field: Its path without list positions, for wrong types.
            owner: The name of the nearest struct above.
        """
        if schema.int_or_string:
            if isinstance(value, bool) or not isinstance(value, int | str):
                raise _new_wrong_type(value, field, owner, "int32")
            return value
        if schema.quantity:
            return _decode_quantity(value)
        match schema.type:
            case "string":
                return _decode_text(value, schema, field, owner)
            case "integer":
                return _decode_integer(value, schema, field, owner)
            case "boolean":
                if not isinstance(value, bool):
                    raise _new_wrong_type(value, field, owner, "bool")
                return value
            case "number":
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise _new_wrong_type(value, field, owner, "float64")
                return value
            case "array":
                return self._decode_items(value, schema, path, field, owner)
            case "object":
                return self._decode_fields(value, schema, path, field, owner)
            case _:
                return value

    def _decode_items(self, value: Any, schema: Schema, path: str, field: str, owner: str) -> list[Any]:
        if not isinstance(value, list):
            raise _new_wrong_type(value, field, owner, _get_go_type(schema))
        if schema.items is None:
            return value
        return [
            _get_zero_value(schema.items)
            if item is None
            else self.decode(item, schema.items, f"{path}[{index}]", field, owner)
            for index, item in enumerate(value)
        ]

    def _decode_fields(self, value: Any, schema: Schema, path: str, field: str, owner: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _new_wrong_type(value, field, owner, _get_go_type(schema))
        decoded: dict[str, Any] = {}
        properties, anything = schema.properties, schema.additional_properties
        owner = schema.name.rpartition(".")[2] or owner
        for name, actual_type in value.items():
            child = properties.get(name)
            if child is not None:
                if actual_type is not None:
                    below = f"{path}.{name}" if path else name
                    at = f"{field}.{name}" if field else name
                    if _is_schema(actual_type, child):
                        # Its type is that of the schema above. The real server reports no unknown fields below it.
                        decoded[name] = _TypedDecoder([]).decode(actual_type, schema, below, at, owner)
                    else:
                        decoded[name] = self.decode(actual_type, child, below, at, owner)
            elif anything is None:
                self._unknown.append(f"{path}.{name}" if path else name)
            elif actual_type is None:
                decoded[name] = _get_zero_value(anything)
            else:
                decoded[name] = self.decode(actual_type, anything, f"{path}.{name}", field, owner)
        return decoded


def _is_schema(value: Any, schema: Schema) -> bool:
    """Return True for a schema where a JSONSchemaProps can have a schema or something else."""
    kind = schema.name.rpartition(".")[2]
    if kind == "JSONSchemaPropsOrBool" and not isinstance(value, bool | Mapping):
        raise BadRequestError("boolean or JSON schema expected")
    return kind in ("JSONSchemaPropsOrBool", "JSONSchemaPropsOrArray") and isinstance(value, Mapping)


def _decode_quantity(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadRequestError(_QUANTITY_FORM)
    try:
        canonicalize_quantity(value)
    except ValueError:
        raise BadRequestError(_QUANTITY_FORM) from None
    return value


def _decode_text(value: Any, schema: Schema, field: str, owner: str) -> str:
    if not isinstance(value, str):
        raise _new_wrong_type(value, field, owner, "[]uint8" if schema.format == "byte" else "string")
    if schema.format == "byte" and value:
        return _decode_base64(value)
    if schema.format == "date-time" and value:
        try:
            parse_time(value)
        except ValueError:
            form = "2006-01-02T15:04:05Z07:00"
            message = f'parsing time {quote(value)} as "{form}": cannot parse {quote(value)} as "2006"'
            raise BadRequestError(message) from None
    return value


def _decode_base64(text: str) -> str:
    """Return base64 text on one line: line ends inside are permitted and removed."""
    joined = text.replace("\r", "").replace("\n", "")
    try:
        base64.b64decode(joined, validate=True)
    except binascii.Error:
        raise BadRequestError(f"illegal base64 data at input byte {_find_invalid_character(joined)}") from None
    return joined


_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _find_invalid_character(text: str) -> int:
    return next((index for index, letter in enumerate(text) if letter not in _BASE64), len(text))


def _decode_integer(value: Any, schema: Schema, field: str, owner: str) -> int:
    expected_type = schema.format or "int32"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _new_wrong_type(value, field, owner, expected_type)
    limit = 2**63 if expected_type == "int64" else 2**31
    if (isinstance(value, float) and not value.is_integer()) or not -limit <= value < limit:
        raise _new_unmarshal_error(f"number {value}", field, owner, expected_type)
    return int(value)


def _get_zero_value(schema: Schema) -> Any:
    match schema.type:
        case "string":
            return ""
        case "integer" | "number":
            return 0
        case "boolean":
            return False
        case "array":
            return []
        case _:
            return {}


def _new_wrong_type(value: Any, field: str, owner: str, expected_type: str) -> BadRequestError:
    match value:
        case bool():
            actual_type = "bool"
        case int() | float():
            actual_type = "number"
        case str():
            actual_type = "string"
        case list():
            actual_type = "array"
        case _:
            actual_type = "object"
    return _new_unmarshal_error(actual_type, field, owner, expected_type)


def _new_unmarshal_error(actual_type: str, field: str, owner: str, expected_type: str) -> BadRequestError:
    where = f"Go struct field {owner}.{field}" if field else "Go value"
    return BadRequestError(f"json: cannot unmarshal {actual_type} into {where} of type {expected_type}")


def _get_go_type(schema: Schema) -> str:
    """Return the Go name of the type, as in messages of the real server."""
    if schema.name:
        package, _, name = schema.name.rpartition(".")
        return f"{package.rpartition('.')[2]}.{name}"
    match schema.type:
        case "array":
            return f"[]{_get_go_type(schema.items) if schema.items is not None else 'interface {}'}"
        case "object":
            values = schema.additional_properties
            return f"map[string]{_get_go_type(values) if values is not None else 'interface {}'}"
        case "integer":
            return schema.format or "int32"
        case "string" if schema.format == "byte":
            return "[]uint8"
        case other:
            return _SCALARS.get(other, "interface {}")
