"""Conversion between the JSON of a custom resource and the instance of its class.

msgspec validates the values. This module converts names between ``tracingEnabled`` and ``tracing_enabled``, durations
between the forms of Kubernetes and Python, and msgspec's errors into errors about the fields of the object.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec import inspect

from konverge._internal.crd.api_names import to_json_name
from konverge._internal.crd.class_types import read_type
from konverge._internal.crd.definition import find_definition
from konverge._internal.crd.plain_resources import is_plain
from konverge._internal.crd.pydantic_models import is_model, make_instance, translate_model, translate_refusal
from konverge._internal.crd.relaxed_types import relax_type
from konverge._internal.crd.value_encoding import encode_value
from konverge._internal.kube import Object, ObjectKey
from konverge._internal.kube.durations import parse_duration
from konverge.errors import DecodeError

__all__ = ["decode", "encode"]

T = TypeVar("T")

ValueReader: TypeAlias = Callable[[Any, str], Any]


def decode(cls: type[T], obj: Mapping[str, Any]) -> T:
    """Return the instance of a custom resource class for an object of the server.

    Unknown fields are ignored, and so is a null if the field has a default: an older or newer version of the definition
    may have written the object. Validators of the class run (``__post_init__``, those of attrs and of pydantic). Their
    ValueError is reported like any other error. Patterns are not checked: the API server matches them in linear time
    (`crd.relaxed_types`). For a kind without a class, the result is a copy of the JSON.

    Raises:
        konverge.errors.DecodeError: A field does not fit; the message has the field, the expected and the found value.
    """
    kind = find_definition(cls).gvk.kind
    if is_plain(cls):
        return cast("T", copy.deepcopy(dict(obj)))
    try:
        read = _find_reader(cls)(obj, "")  # type: ignore[arg-type]  # a class is hashable
        resource: T = msgspec.convert(read, relax_type(cls), dec_hook=make_instance)
    except msgspec.ValidationError as error:
        refusal = translate_refusal(error)
        raise DecodeError(f"{kind} {ObjectKey.of(obj)}", refusal.path, refusal.problem) from None
    except _DecodeFailure as failure:
        raise DecodeError(f"{kind} {ObjectKey.of(obj)}", failure.path, failure.problem) from None
    return resource


def encode(resource: object) -> Object:
    """Return the JSON of a custom resource for a request, without None and empty metadata.

    Args:
        resource: An instance, or the JSON of a kind without a class, of which the result is a copy.

    Raises:
        konverge.errors.BuildError: Its class is not a custom resource.
    """
    if isinstance(resource, dict):
        return copy.deepcopy(resource)
    definition = find_definition(type(resource))
    return {"apiVersion": definition.gvk.api_version, "kind": definition.gvk.kind, **encode_value(resource)}


class _DecodeFailure(Exception):
    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem


@lru_cache(maxsize=256)
def _find_reader(cls: type) -> ValueReader:
    reader = _build_reader(inspect.type_info(cls))
    assert reader is not None  # the type of a class with fields always has one
    return reader


def _build_reader(info: inspect.Type) -> ValueReader | None:
    """Return a function that converts a JSON value for msgspec; None if it needs no conversion."""
    match info:
        case inspect.Metadata():
            return _build_reader(info.type)
        case inspect.CustomType():
            read = read_type(info)
            return None if read is info else _build_reader(read)
        case inspect.DataclassType() | inspect.StructType():
            return _build_object_reader(info)
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            return _build_list_reader(_build_reader(info.item_type))
        case inspect.DictType():
            return _build_mapping_reader(_build_reader(info.value_type))
        case inspect.UnionType():
            readers = [reader for member in info.types if (reader := _build_reader(member)) is not None]
            return readers[0] if readers else None  # the schema allows at most one structured member
        case inspect.TimeDeltaType():
            return _read_duration
    return None


def _build_object_reader(info: inspect.DataclassType | inspect.StructType) -> ValueReader:
    fields = [
        (
            to_json_name(field),
            field.encode_name,
            _build_reader(field.type),
            not field.required and not _takes_null(field.type),
        )
        for field in info.fields
    ]
    known = {name for json, attribute, *_ in fields for name in (json, attribute)}
    keeps_unknown = is_model(info.cls) and translate_model(info.cls).keeps_unknown

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            return value
        found = {name: item for name, item in value.items() if name not in known} if keeps_unknown else {}
        for name, attribute, reader, null_is_default in fields:
            if name not in value:
                continue
            item = value[name]
            if item is None and null_is_default:
                continue
            found[attribute] = item if reader is None else reader(item, f"{path}.{name}" if path else name)
        return found

    return read


def _takes_null(info: inspect.Type) -> bool:
    match info:
        case inspect.Metadata():
            return _takes_null(info.type)
        case inspect.UnionType():
            return info.includes_none
        case inspect.LiteralType():
            return None in info.values
    return isinstance(info, inspect.AnyType)


def _build_list_reader(item_reader: ValueReader | None) -> ValueReader | None:
    if item_reader is None:
        return None

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, list):
            return value
        return [item_reader(item, f"{path}[{index}]") for index, item in enumerate(value)]

    return read


def _build_mapping_reader(item_reader: ValueReader | None) -> ValueReader | None:
    if item_reader is None:
        return None

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {key: item_reader(item, f"{path}[{key}]") for key, item in value.items()}

    return read


def _read_duration(value: Any, path: str) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except ValueError as problem:
        raise _DecodeFailure(path, str(problem)) from None
