"""Conversion of Python values to the JSON of an API object."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
from msgspec import inspect

from konverge._internal.crd.api_names import to_json_name
from konverge._internal.crd.class_types import CLASSES, read_class_type
from konverge._internal.crd.pydantic_models import list_extra_fields
from konverge._internal.kube import Object, format_time
from konverge._internal.kube.durations import format_duration

__all__ = ["encode_value", "list_json_fields", "list_json_names"]


def encode_value(value: Any) -> Any:
    """Return the JSON of one field value; sets are sorted, so that equal values give equal JSON."""
    match value:
        case Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return format_time(value)
        case date():
            return value.isoformat()
        case timedelta():
            return format_duration(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case UUID():
            return str(value)
        case Mapping():
            return {str(encode_value(key)): encode_value(item) for key, item in value.items()}
        case set() | frozenset():
            # A set of int and str has no order of its own.
            return sorted((encode_value(item) for item in value), key=lambda item: (isinstance(item, str), item))
        case list() | tuple():
            return [encode_value(item) for item in value]
    omits_defaults = isinstance(value, msgspec.Struct) and value.__struct_config__.omit_defaults
    found: Object = {}
    for field, name in _list_fields(type(value)):  # type: ignore[arg-type]  # a class is hashable
        item = getattr(value, field.name)
        if not field.required and (item is None or (omits_defaults and item == _find_default(field))):
            continue
        found[name] = encode_value(item)
    return found | {name: encode_value(item) for name, item in list_extra_fields(value).items()}


def list_json_names(cls: type) -> list[str]:
    """Return the JSON names of the fields of a class."""
    return [name for _, name in _list_fields(cls)]


def list_json_fields(cls: type) -> tuple[tuple[inspect.Field, str], ...]:
    """Return the fields of a class with their JSON names."""
    return _list_fields(cls)


def _find_default(field: inspect.Field) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


@lru_cache(maxsize=256)
def _list_fields(cls: type) -> tuple[tuple[inspect.Field, str], ...]:
    info = read_class_type(cls)
    if info is None:
        raise TypeError(f"expected a JSON value or {CLASSES}, found {cls.__qualname__}")
    return tuple((field, to_json_name(field)) for field in info.fields)
