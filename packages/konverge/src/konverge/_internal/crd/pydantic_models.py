"""pydantic models in the terms of msgspec, so that one type reader and one validation work for all classes.

A model is described as a dataclass. msgspec validates an object against a *twin* of the model, a Struct with the same
fields, so that errors are the same for every kind of class. Then pydantic creates the instance, which runs the model's
validators. This module imports pydantic only if a class is a model, and then it is already loaded.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from konverge._internal.crd.api_names import to_camel_case, to_json_name
from konverge._internal.crd.msgspec_errors import translate_error
from konverge._internal.crd.relaxed_types import relax_type

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo

__all__ = [
    "ModelValidationError",
    "PydanticModel",
    "is_model",
    "is_pydantic_dataclass",
    "list_extra_fields",
    "make_instance",
    "translate_model",
    "translate_refusal",
]

# The names in annotated_types, pydantic and msgspec.
_CONSTRAINTS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")


class ModelValidationError(ValueError):
    """A model rejects its fields.

    It has no text: msgspec adds the path of the model to the text, and the path must be parsable.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__()
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class PydanticModel:
    """Description of a model for msgspec.

    Args:
        info: The model as a dataclass; a field's ``encode_name`` is its alias.
        struct: A Struct with the same fields without defaults: absent ones are unset.
        keeps_unknown: True if the model keeps fields that it does not declare (``extra="allow"``).
        errors: The parts of the model without a counterpart; each has a field's name and a sentence.
    """

    info: inspect.DataclassType
    struct: type[msgspec.Struct]
    keeps_unknown: bool
    errors: tuple[tuple[str, str], ...]


def is_model(cls: object) -> TypeGuard[type[BaseModel]]:
    """Return whether a class is a pydantic model; False if pydantic is not loaded."""
    pydantic = sys.modules.get("pydantic.main")
    return pydantic is not None and isinstance(cls, type) and issubclass(cls, pydantic.BaseModel)


def is_pydantic_dataclass(cls: type) -> bool:
    """Return whether a class is a ``pydantic.dataclasses.dataclass``, whose validators msgspec would skip."""
    return "__pydantic_validator__" in cls.__dict__ and not is_model(cls)


@lru_cache(maxsize=256)
def translate_model(cls: type[BaseModel]) -> PydanticModel:
    """Return the description of the model for msgspec."""
    fields: list[inspect.Field] = []
    twin_fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    renamed: dict[str, str] = {}
    mistakes: list[tuple[str, str]] = []
    for name, declared in cls.model_fields.items():
        alias, problem = _find_alias(name, declared)
        if problem:
            mistakes.append((name, problem))
        factory: Any = declared.default_factory or msgspec.NODEFAULT
        if declared.default_factory_takes_validated_data:
            mistakes.append((name, "its default is made of other fields, which a schema has no word for"))
            factory = msgspec.NODEFAULT
        renamed[name] = alias
        try:
            hint = _apply_metadata(_translate_hint(declared.annotation), [declared])
            info = inspect.type_info(hint)
        except TypeError as error:
            mistakes.append((name, f"its type or a constraint of it has no counterpart in a schema: {error}"))
            hint, info = Any, inspect.AnyType()
        is_required = declared.is_required()
        hint = relax_type(hint)
        fields.append(
            inspect.Field(
                name=name,
                encode_name=alias,
                type=info,
                required=is_required,
                default=_replace_undefined(declared.default),
                default_factory=factory,
            )
        )
        twin_fields.append((name, hint) if is_required else (name, hint | msgspec.UnsetType, msgspec.UNSET))
    if cls.__pydantic_root_model__:
        mistakes.append(("", "a RootModel is not an object: use the type that it wraps"))
    twin = msgspec.defstruct(cls.__name__, twin_fields, rename=renamed, kw_only=True, module=cls.__module__)
    info = inspect.DataclassType(cls, tuple(fields))
    return PydanticModel(info, twin, cls.model_config.get("extra") == "allow", tuple(mistakes))


def make_instance(cls: type, value: Any) -> Any:
    """Return an instance of a model for a decoded value; the ``dec_hook`` of msgspec.

    Raises:
        ModelValidationError: The validators of the model, or of a model inside it, reject the value.
        msgspec.ValidationError: A field does not fit.
        NotImplementedError: The class is not a model.
    """
    if not is_model(cls):
        raise NotImplementedError(f"{cls.__qualname__} cannot be read")
    model = translate_model(cls)
    try:
        checked = msgspec.convert(value, model.struct, dec_hook=make_instance)
    except msgspec.ValidationError as error:
        raise translate_refusal(error) from None
    given = ((field.name, getattr(checked, field.name)) for field in model.info.fields)
    found = {name: item for name, item in given if item is not msgspec.UNSET}
    if model.keeps_unknown and isinstance(value, Mapping):
        known = {name for field in model.info.fields for name in (field.name, field.encode_name)}
        found |= {name: item for name, item in value.items() if name not in known}
    pydantic = sys.modules["pydantic"]
    try:
        return cls.model_validate(found, by_name=True, by_alias=False)
    except pydantic.ValidationError as error:
        raise _build_validation_error(error, model) from None


def list_extra_fields(value: object) -> Mapping[str, Any]:
    """Return the undeclared fields that an instance of a model keeps; none for any other value."""
    return (getattr(value, "model_extra", None) or {}) if is_model(type(value)) else {}


def translate_refusal(error: msgspec.ValidationError) -> ModelValidationError:
    """Return an error of msgspec with a path in JSON names and a sentence without quotation marks.

    If the model raised the error, its path is appended to the path that msgspec adds.
    """
    path, sentence = translate_error(str(error))
    if isinstance(error.__cause__, ModelValidationError):
        inner = error.__cause__
        joint = "." if path and inner.path and not inner.path.startswith("[") else ""
        return ModelValidationError(f"{path}{joint}{inner.path}", inner.problem)
    return ModelValidationError(path, sentence)


def _build_validation_error(error: ValidationError, model: PydanticModel) -> ModelValidationError:
    first = error.errors(include_url=False, include_input=False)[0]
    names = {field.name: to_json_name(field) for field in model.info.fields}
    path = ""
    for place, step in enumerate(first["loc"]):
        if isinstance(step, int):
            path += f"[{step}]"
            continue
        name = names.get(step, step) if place == 0 else to_camel_case(step)
        path += f".{name}" if path else name
    raised = first.get("ctx", {}).get("error")
    return ModelValidationError(path, str(raised) if isinstance(raised, Exception) else first["msg"])


def _find_alias(name: str, declared: FieldInfo) -> tuple[str, str]:
    """Return the field's alias, or its name without one, and the error of its aliases."""
    read, written = declared.validation_alias, declared.serialization_alias
    alias = read or written or name
    if not isinstance(alias, str) or (written or alias) != alias:
        return name, "expected one alias for reading and writing (alias=...), found two"
    return alias, ""


def _translate_hint(hint: Any) -> Any:
    """Return a type hint with pydantic's constraints as msgspec's constraints, at every depth."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _apply_metadata(_translate_hint(arguments[0]), hint.__metadata__)
    if origin in (Union, types.UnionType):
        return reduce(or_, (_translate_hint(argument) for argument in arguments))
    if origin is Literal or not isinstance(origin, type) or not arguments:
        return hint
    generic: Any = origin
    return generic[tuple(_translate_hint(argument) for argument in arguments)]


def _apply_metadata(hint: Any, metadata: Sequence[Any]) -> Any:
    """Return the hint with its metadata: msgspec's unchanged, pydantic's translated."""
    listed = [part for item in metadata for part in (item, *getattr(item, "metadata", ()))]
    for meta in (item for item in listed if isinstance(item, msgspec.Meta)):
        hint = Annotated[hint, meta]
    constraints = {
        name: value
        for item in listed
        if not isinstance(item, msgspec.Meta)
        for name in _CONSTRAINTS
        if (value := getattr(item, name, None)) is not None
    }
    if "pattern" in constraints:
        constraints["pattern"] = getattr(constraints["pattern"], "pattern", constraints["pattern"])
    if constraints:
        hint = _apply_constraints(hint, msgspec.Meta(**constraints))
    if described := next((text for item in listed if (text := getattr(item, "description", None))), None):
        hint = Annotated[hint, msgspec.Meta(description=described)]
    extra = {name: value for item in listed for name, value in _list_kubernetes_extra(item)}
    return Annotated[hint, msgspec.Meta(extra_json_schema=extra)] if extra else hint


def _list_kubernetes_extra(item: Any) -> list[tuple[str, Any]]:
    extra = getattr(item, "json_schema_extra", None)
    if not isinstance(extra, Mapping):
        return []
    return [(name, value) for name, value in extra.items() if name.startswith("x-kubernetes-")]


def _apply_constraints(hint: Any, meta: msgspec.Meta) -> Any:
    """Return the hint with constraints; for an optional hint, they apply to the value."""
    if get_origin(hint) not in (Union, types.UnionType):
        return Annotated[hint, meta]
    return reduce(or_, (member if member is type(None) else Annotated[member, meta] for member in get_args(hint)))


def _replace_undefined(default: Any) -> Any:
    from pydantic_core import PydanticUndefined

    return msgspec.NODEFAULT if default is PydanticUndefined or default is ... else default
