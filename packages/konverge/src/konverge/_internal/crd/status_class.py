"""The class of a custom resource's status: its fields, and the JSON of an instance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from konverge._internal.crd.class_types import read_class_type
from konverge._internal.crd.undeclared_fields import iter_classes, keep_undeclared_fields
from konverge._internal.crd.unstructured import UnstructuredResource
from konverge._internal.crd.value_encoding import encode_value, list_json_names
from konverge._internal.kube import Object
from konverge._internal.suggestions import did_you_mean
from konverge.errors import ConfigurationError

__all__ = ["RESERVED_FIELDS", "StatusClass", "find_status_class"]

RESERVED_FIELDS = frozenset({"conditions", "observedGeneration"})
"""The fields of a status that konverge writes itself."""

_MAX_BYTES = 262_144  # a sixth of the largest object that etcd accepts
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class StatusClass:
    """The class of the status of a custom resource.

    Args:
        owner: The custom resource class.
        classes: The classes of its field ``status``, without None.
        names: The names of their fields in JSON; empty for a status without declared fields.
    """

    owner: type
    classes: tuple[type, ...]
    names: frozenset[str]

    @property
    def description(self) -> str:
        """The names of the classes, for messages."""
        return " or ".join(cls.__name__ for cls in self.classes)

    def encode_fields(self, status: object) -> Object:
        """Return the JSON of an instance, without the fields that konverge writes and without any check."""
        return {name: value for name, value in encode_value(status).items() if name not in RESERVED_FIELDS}

    def find_unknown_attribute(self, status: object) -> str:
        """Describe an attribute of the instance that is not a field of its class; empty without one."""
        return next(_iter_unknown_attributes(status, "status", _MAX_DEPTH), "")

    def encode(self, status: object, stored: object = None) -> Object:
        """Return the JSON of a status that is to be written, without the fields that konverge writes.

        Args:
            status: The instance.
            stored: The status that the owner has. Its fields inside of a field of the class, at any depth, stay if no
                class declares them.

        Raises:
            ConfigurationError: The value is not an instance of the class, has attributes that are not fields, or has
                no JSON.
        """
        if not isinstance(status, self.classes):
            hint = "; is there a return at the end of the function?" if status is None else ""
            raise ConfigurationError(f"status: expected {self.description}, found {type(status).__name__}{hint}")
        if unknown := self.find_unknown_attribute(status):
            raise ConfigurationError(unknown)
        try:
            fields = self.encode_fields(status)
        except (AttributeError, RecursionError, TypeError, ValueError) as error:
            raise ConfigurationError(f"status: expected a value with a JSON form, found none: {error}") from error
        _check_json(fields, "status")
        return self.complete_fields(fields, stored)

    def complete_fields(self, fields: Object, stored: object) -> Object:
        """Return the fields of `encode_fields` with those inside of them that only the stored status has."""
        if not isinstance(stored, dict) or not self.names:
            return fields
        merged = keep_undeclared_fields(self.classes, fields, stored)
        return {name: merged[name] for name in fields}


def find_status_class(cls: type[Any]) -> StatusClass | None:
    """Return the class of the field ``status`` of a custom resource class; None without the field."""
    return _find_status_class(cls)  # type: ignore[arg-type]  # a class is hashable


@lru_cache(maxsize=256)
def _find_status_class(cls: type[Any]) -> StatusClass | None:
    info = read_class_type(cls)  # type: ignore[arg-type]  # a class is hashable
    found = next((field.type for field in info.fields if field.name == "status"), None) if info is not None else None
    if found is None:
        return None
    if issubclass(cls, UnstructuredResource):
        return StatusClass(cls, (dict,), frozenset())
    classes = tuple(iter_classes(found))
    return StatusClass(cls, classes, frozenset(name for member in classes for name in list_json_names(member)))


def _iter_unknown_attributes(value: object, path: str, depth: int) -> Iterator[str]:
    """Yield a sentence for each attribute that an assignment has added: no JSON would contain it."""
    if depth and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _iter_unknown_attributes(item, f"{path}[{key}]", depth - 1)
    elif depth and isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _iter_unknown_attributes(item, f"{path}[{index}]", depth - 1)
    elif depth and dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        for name in getattr(value, "__dict__", {}):
            # A cached property is an attribute of the class too.
            if name not in fields and not name.startswith("_") and not hasattr(type(value), name):
                yield (
                    f"{path}.{name}: expected a field of {type(value).__name__}, found no such field"
                    f"{did_you_mean(name, fields)}"
                )
        for name in fields:
            yield from _iter_unknown_attributes(getattr(value, name, None), f"{path}.{name}", depth - 1)


def _check_json(value: Object, path: str) -> None:
    """Refuse values that no request can contain; then no condition of the owner would be written either.

    Raises:
        ConfigurationError: The value has no JSON or is too large.
    """
    if bad := next(_iter_invalid_values(value, path), ""):
        raise ConfigurationError(bad)
    try:
        size = len(msgspec.json.encode(value))
    except (RecursionError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{path}: expected a value with a JSON form, found none: {error}") from error
    if size > _MAX_BYTES:
        raise ConfigurationError(f"{path}: expected at most {_MAX_BYTES} bytes of JSON, found {size}; report less")


def _iter_invalid_values(value: Any, path: str) -> Iterator[str]:
    match value:
        case float() if not math.isfinite(value):
            yield f"{path}: expected a finite number, found {value}"
        case str() if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                yield f"{path}: expected text that UTF-8 can encode, found {value!a}"
        case dict():
            for name, item in value.items():
                yield from _iter_invalid_values(item, f"{path}.{name}")
        case list():
            for index, item in enumerate(value):
                yield from _iter_invalid_values(item, f"{path}[{index}]")
