"""Structural schemas for a CustomResourceDefinition from type hints: without references, a type for each field.

`msgspec.inspect` reads the types, so dataclasses, attrs classes, Structs and models work alike. A type without a
counterpart in Kubernetes (a union of two objects, a tuple of mixed items, a recursive type) is an error of the
declaration. All errors are reported at once with the paths of their fields.
"""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Mapping
from enum import Enum
from typing import Any, get_type_hints

import msgspec
from msgspec import inspect

from konverge._internal.crd.api_names import to_json_name
from konverge._internal.crd.class_types import ObjectType, read_type
from konverge._internal.crd.constraints import ATOMIC, list_class_rules
from konverge._internal.crd.pydantic_models import is_model, is_pydantic_dataclass, translate_model
from konverge._internal.crd.value_encoding import encode_value
from konverge._internal.kube import Object

__all__ = ["build_object_schema", "build_type_schema"]

_MISSING = msgspec.NODEFAULT
# With only the format, the server accepts texts that other programs reject ("PT5M", "3 days").
_DURATION: Object = {
    "type": "string",
    "format": "duration",
    "pattern": r"^-?([0-9]+(\.[0-9]+)?(ms|s|m|h))+$",
    "maxLength": 64,
}
_SCALARS: dict[type[inspect.Type], Object] = {
    inspect.BoolType: {"type": "boolean"},
    inspect.DateTimeType: {"type": "string", "format": "date-time"},
    inspect.DateType: {"type": "string", "format": "date"},
    inspect.TimeDeltaType: _DURATION,
    inspect.UUIDType: {"type": "string", "format": "uuid"},
}


# Alternatives for frequent types without a counterpart.
_INSTEAD = {
    "Decimal": "; use str with a pattern, since its numbers are binary",
    "Time": "; use str with a pattern",
    "Tuple": "; use a class with a field for each item, or a list",
}
_VALIDATIONS = "x-kubernetes-validations"


def build_type_schema(info: inspect.Type, path: str, errors: list[str], ancestors: tuple[type, ...] = ()) -> Object:
    """Return the schema of one type.

    Args:
        info: The type in the terms of msgspec.
        path: The path of the type in JSON names, for errors.
        errors: Receives one sentence for each part without a schema; the returned schema is then unusable.
        ancestors: The enclosing classes, to detect recursion.
    """
    match info := read_type(info):
        case inspect.Metadata():
            return _apply_annotations(
                build_type_schema(info.type, path, errors, ancestors), info.extra_json_schema or {}
            )
        case inspect.IntType():
            return {"type": "integer", "format": "int64"} | _list_number_limits(info)
        case inspect.FloatType():
            return {"type": "number", "format": "double"} | _list_number_limits(info)
        case inspect.StrType():
            return {"type": "string"} | _without_absent(
                minLength=info.min_length, maxLength=info.max_length, pattern=info.pattern
            )
        case inspect.BytesType():
            return {"type": "string", "format": "byte"}
        case inspect.AnyType():
            return {"x-kubernetes-preserve-unknown-fields": True}
        case inspect.EnumType():
            return _build_enumeration([member.value for member in info.cls], path, errors)
        case inspect.LiteralType():
            return _build_enumeration(list(info.values), path, errors)
        case inspect.UnionType():
            return _build_union(info, path, errors, ancestors)
        case inspect.SetType() | inspect.FrozenSetType():
            return _build_set(info, path, errors, ancestors)
        case inspect.ListType() | inspect.VarTupleType():
            return _build_array(info, path, errors, ancestors)
        case inspect.DictType():
            return _build_mapping(info, path, errors, ancestors)
        case inspect.DataclassType() | inspect.StructType():
            return build_object_schema(info, path, errors, ancestors)
    scalar = _SCALARS.get(type(info))
    if scalar is None:
        name = info.cls.__name__ if isinstance(info, inspect.CustomType) else type(info).__name__.removesuffix("Type")
        errors.append(f"{path}: {name} has no counterpart in a Kubernetes schema{_INSTEAD.get(name, '')}")
        return {}
    return dict(scalar)


def build_object_schema(info: ObjectType, path: str, errors: list[str], ancestors: tuple[type, ...] = ()) -> Object:
    """Return the schema of a class: its description, its fields in order of declaration, and the required fields."""
    if info.cls in ancestors:
        errors.append(
            f"{path}: {info.cls.__name__} contains itself, and a Kubernetes schema cannot refer back; "
            "use dict[str, Any] for the inner one"
        )
        return {}
    if is_pydantic_dataclass(info.cls):
        errors.append(
            f"{path}: {info.cls.__name__} is a pydantic dataclass; use a pydantic BaseModel, or a plain dataclass"
        )
        return {}
    if isinstance(info, inspect.StructType) and (info.array_like or info.tag is not None):
        errors.append(f"{path}: {info.cls.__name__} is tagged or array-like; use a plain Struct")
        return {}
    errors += _validate_model(info, path) if is_model(info.cls) else _validate_foreign_constraints(info.cls, path)
    properties: Object = {}
    for field in info.fields:
        name = to_json_name(field)
        where = f"{path}.{name}" if path else name
        if name in properties:
            errors.append(f"{where}: two attributes have this name in JSON")
        schema = build_type_schema(field.type, where, errors, (*ancestors, info.cls))
        try:
            properties[name] = _with_default(schema, field)
        except TypeError as error:
            errors.append(f"{where}: its default has no form in JSON: {error}")
    required = [to_json_name(field) for field in info.fields if field.required]
    schema = _without_absent(
        type="object", description=_read_description(info.cls), properties=properties, required=required or None
    )
    if is_model(info.cls) and translate_model(info.cls).keeps_unknown:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    return _apply_annotations(schema, {_VALIDATIONS: found} if (found := list_class_rules(info.cls)) else {})


def _validate_model(info: ObjectType, path: str) -> list[str]:
    assert is_model(info.cls)
    named = {field.name: to_json_name(field) for field in info.fields}
    return [
        f"{'.'.join(part for part in (path, named.get(name, name)) if part)}: {mistake}"
        for name, mistake in translate_model(info.cls).errors
    ]


def _validate_foreign_constraints(cls: type, path: str) -> list[str]:
    """Return an error for each pydantic constraint outside a model, which msgspec would silently ignore."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError:  # a class inside a function; msgspec resolves such names differently
        return []
    return [
        f"{path}.{name}: {type(item).__name__} of {type(item).__module__.partition('.')[0]} counts in pydantic models "
        "only; use msgspec.Meta"
        for name, hint in hints.items()
        for item in getattr(hint, "__metadata__", ())
        if type(item).__module__.partition(".")[0] in ("pydantic", "annotated_types")
    ]


def _apply_annotations(schema: Object, extra: Mapping[str, Any]) -> Object:
    """Return the schema with the additions of `typing.Annotated`: rules follow those of the class, the rest wins."""
    found = schema | dict(extra)
    if rules := [*schema.get(_VALIDATIONS, ()), *extra.get(_VALIDATIONS, ())]:
        found[_VALIDATIONS] = rules
    if found.pop(ATOMIC, False):
        found["x-kubernetes-list-type" if found.get("type") == "array" else "x-kubernetes-map-type"] = "atomic"
    return found


def _with_default(schema: Object, field: inspect.Field) -> Object:
    if field.default_factory is not _MISSING:
        default = encode_value(field.default_factory())
    elif field.default is not _MISSING:
        default = encode_value(field.default)
    else:
        return schema
    # A default of None is not written: the server would have to store the null.
    return schema if default is None else schema | {"default": default}


def _build_union(info: inspect.UnionType, path: str, errors: list[str], ancestors: tuple[type, ...]) -> Object:
    members = [member for member in info.types if not isinstance(member, inspect.NoneType)]
    kinds = {type(member.type if isinstance(member, inspect.Metadata) else member) for member in members}
    if len(members) == 1:
        schema = build_type_schema(members[0], path, errors, ancestors)
    elif kinds == {inspect.IntType, inspect.StrType}:
        schema = {"x-kubernetes-int-or-string": True}
    elif kinds == {inspect.IntType, inspect.FloatType}:
        schema = {"type": "number", "format": "double"}
    else:
        errors.append(
            f"{path}: a union may be of one type and None, of int and str, or of int and float; "
            "give each alternative an optional field of its own"
        )
        schema = {}
    return _allow_null(schema) if info.includes_none else schema


def _build_array(
    info: inspect.SetType | inspect.FrozenSetType | inspect.ListType | inspect.VarTupleType,
    path: str,
    errors: list[str],
    ancestors: tuple[type, ...],
) -> Object:
    items = build_type_schema(info.item_type, f"{path}[]", errors, ancestors)
    return {"type": "array", "items": items} | _without_absent(minItems=info.min_length, maxItems=info.max_length)


def _build_set(
    info: inspect.SetType | inspect.FrozenSetType, path: str, errors: list[str], ancestors: tuple[type, ...]
) -> Object:
    schema = _build_array(info, path, errors, ancestors)
    if schema["items"].get("type") in ("object", "array"):
        errors.append(
            f"{path}: the items of a set are strings, numbers or booleans; use a list, with list_map for its keys"
        )
    return schema | {"x-kubernetes-list-type": "set"}


def _build_mapping(info: inspect.DictType, path: str, errors: list[str], ancestors: tuple[type, ...]) -> Object:
    key = info.key_type.type if isinstance(info.key_type, inspect.Metadata) else info.key_type
    if not isinstance(key, inspect.StrType | inspect.AnyType):
        errors.append(f"{path}: the keys of a mapping are strings")
    limits = _without_absent(minProperties=info.min_length, maxProperties=info.max_length)
    if isinstance(info.value_type, inspect.AnyType):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True} | limits
    return {
        "type": "object",
        "additionalProperties": build_type_schema(info.value_type, f"{path}{{}}", errors, ancestors),
    } | limits


def _build_enumeration(values: list[Any], path: str, errors: list[str]) -> Object:
    given = [value for value in values if value is not None]
    kinds = {type(value) for value in given}
    if kinds not in ({str}, {int}):
        errors.append(f"{path}: the values of an enumeration are all strings or all integers")
        return {}
    schema: Object = {"type": "string" if kinds == {str} else "integer", "enum": given}
    return schema


def _allow_null(schema: Object) -> Object:
    # An enumeration rejects null even if it lists it (kube-openapi never finds a nil among the values). For a field
    # that is not nullable, the server drops the null before validation, which has the same meaning.
    return schema if "enum" in schema else schema | {"nullable": True}


def _list_number_limits(info: inspect.IntType | inspect.FloatType) -> Object:
    limits = _without_absent(minimum=info.ge, maximum=info.le, multipleOf=info.multiple_of)
    limits |= _without_absent(minimum=info.gt, maximum=info.lt)
    limits = {name: _to_shortest_number(limit) for name, limit in limits.items()}
    if info.gt is not None:
        limits["exclusiveMinimum"] = True
    if info.lt is not None:
        limits["exclusiveMaximum"] = True
    return limits


def _to_shortest_number(limit: float) -> float:
    """Return 0 for 0.0, as the API server stores it.

    ``Meta(gt=0)`` equals ``Meta(gt=0.0)``: for either hint, `typing` returns the one that the process used first.
    Without this, a manifest would depend on the order of imports.
    """
    return int(limit) if float(limit).is_integer() else limit


def _read_description(cls: type) -> str | None:
    """Return the docstring of the class itself, not an inherited one and not the signature of `dataclass`."""
    text = cls.__dict__.get("__doc__")
    if not text or text.startswith(f"{cls.__name__}(") or issubclass(cls, Enum):
        return None
    return python_inspect.cleandoc(text)


def _without_absent(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value is not None}
