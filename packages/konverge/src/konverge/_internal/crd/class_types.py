"""The classes that can be part of a custom resource, in the form that all modules of this package read."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from msgspec import inspect

from konverge._internal.crd.pydantic_models import is_model, translate_model

__all__ = ["CLASSES", "ObjectType", "read_class_type", "read_type"]

CLASSES = "a dataclass, attrs class, msgspec Struct or pydantic model"

ObjectType: TypeAlias = inspect.DataclassType | inspect.StructType
"""A class with fields in the terms of msgspec: a dataclass (also attrs classes and models) or a Struct."""


def read_type(info: inspect.Type) -> inspect.Type:
    """Return the type; a model, which msgspec does not support, is replaced by its fields."""
    if isinstance(info, inspect.CustomType) and is_model(info.cls):
        return translate_model(info.cls).info
    return info


@lru_cache(maxsize=256)
def read_class_type(cls: type) -> ObjectType | None:
    """Return the fields of a class; None if it has no fields that can be read.

    Raises:
        NameError: A type hint refers to an undefined name.
        TypeError: A type hint is invalid.
    """
    info = read_type(inspect.type_info(cls))
    return info if isinstance(info, inspect.DataclassType | inspect.StructType) else None
