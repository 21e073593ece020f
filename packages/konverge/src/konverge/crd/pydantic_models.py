"""pydantic models in the terms of msgspec, so that one reader of types and one check of values serve all classes.

A model is described as if it were a dataclass. msgspec checks an object against a *twin* of the model, a Struct with
the same fields, so that a mistake reads the same in every kind of class; then pydantic makes the instance, which runs
the model's validators. pydantic is never imported here unless a class is a model, and then it is loaded already.
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

from konverge.crd.api_names import to_camel_case, to_json_name
from konverge.crd.msgspec_errors import translate_error
from konverge.crd.relaxed_types import relax_type

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

# What annotated_types and pydantic call them, and msgspec too.
_CONSTRAINTS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")


class ModelValidationError(ValueError):
    """A model does not accept its fields.

    It has no text: msgspec adds the path of the model to the text, and nothing else shall be in the way of reading it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__()
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class PydanticModel:
    """What msgspec is told of a model.

    Args:
        info: The model as a dataclass; a field's ``encode_name`` is its alias.
        struct: A Struct with the same fields, none of which has a default: absent ones are unset.
        keeps_unknown: Whether the model keeps fields that it does not declare (``extra="allow"``).
        errors: What of the model has no counterpart; a field's name and a sentence each.
    """

    info: inspect.DataclassType
    struct: type[msgspec.Struct]
    keeps_unknown: bool
    errors: tuple[tuple[str, str], ...]


def is_model(cls: object) -> TypeGuard[type[BaseModel]]:
    """Tell whether a class is a pydantic model; where pydantic is not loaded, none can be."""
    pydantic = sys.modules.get("pydantic.main")
    return pydantic is not None and isinstance(cls, type) and issubclass(cls, pydantic.BaseModel)


def is_pydantic_dataclass(cls: type) -> bool:
    """Tell whether a class is under ``pydantic.dataclasses.dataclass``: msgspec would pass by its validators."""
    return "__pydantic_validator__" in cls.__dict__ and not is_model(cls)


@lru_cache(maxsize=256)
def translate_model(cls: type[BaseModel]) -> PydanticModel:
    """The model in msgspec's terms."""
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
        mistakes.append(("", "a RootModel is no object: use the type that it wraps"))
    twin = msgspec.defstruct(cls.__name__, twin_fields, rename=renamed, kw_only=True, module=cls.__module__)
    info = inspect.DataclassType(cls, tuple(fields))
    return PydanticModel(info, twin, cls.model_config.get("extra") == "allow", tuple(mistakes))


def make_instance(cls: type, value: Any) -> Any:
    """An instance of a model from what the reader of its objects made; msgspec's ``dec_hook``.

    Raises:
        ModelValidationError: The model's validators do not accept it, or those of a model in it.
        msgspec.ValidationError: A field does not fit.
        NotImplementedError: The class is no model.
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
    """The fields that an instance of a model keeps without declaring them; none in any other value."""
    return (getattr(value, "model_extra", None) or {}) if is_model(type(value)) else {}


def translate_refusal(error: msgspec.ValidationError) -> ModelValidationError:
    """A complaint of msgspec as a path in JSON names and a sentence without marks.

    Where the complaint is a model's own, its path is joined to the one that msgspec adds.
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
    """The field's name in JSON, or its own where it has no alias; and what is wrong with its aliases."""
    read, written = declared.validation_alias, declared.serialization_alias
    alias = read or written or name
    if not isinstance(alias, str) or (written or alias) != alias:
        return name, "it is read by another alias than it is written by: expected one name (alias=...)"
    return alias, ""


def _translate_hint(hint: Any) -> Any:
    """A type hint with pydantic's constraints in msgspec's words, at every depth."""
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
    """The hint with what its metadata says: msgspec's own as it is, pydantic's translated."""
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
    """The hint with constraints; of an optional one, they are its value's."""
    if get_origin(hint) not in (Union, types.UnionType):
        return Annotated[hint, meta]
    return reduce(or_, (member if member is type(None) else Annotated[member, meta] for member in get_args(hint)))


def _replace_undefined(default: Any) -> Any:
    from pydantic_core import PydanticUndefined

    return msgspec.NODEFAULT if default is PydanticUndefined or default is ... else default
