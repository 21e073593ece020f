"""The classes that may be part of a custom resource, in the one form that everything here reads."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from msgspec import inspect

from konverge.crd.pydantic_models import is_model, translate_model

__all__ = ["CLASSES", "ObjectType", "read_class_type", "read_type"]

CLASSES = "a dataclass, attrs class, msgspec Struct or pydantic model"

ObjectType: TypeAlias = inspect.DataclassType | inspect.StructType
"""A class with fields: msgspec's word for dataclasses and attrs classes, and for Structs; a model is as the former."""


def read_type(info: inspect.Type) -> inspect.Type:
    """The type, and in place of a model, which msgspec has no word for, its fields."""
    if isinstance(info, inspect.CustomType) and is_model(info.cls):
        return translate_model(info.cls).info
    return info


@lru_cache(maxsize=256)
def read_class_type(cls: type) -> ObjectType | None:
    """The fields of a class; None when it is no class with fields that can be read.

    Raises:
        NameError: One of its type hints names what does not exist.
        TypeError: One of its type hints makes no sense.
    """
    info = read_type(inspect.type_info(cls))
    return info if isinstance(info, inspect.DataclassType | inspect.StructType) else None
