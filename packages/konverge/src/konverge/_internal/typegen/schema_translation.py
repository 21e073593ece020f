"""Translation of a schema to types, shared by the kinds of the server and custom resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from konverge._internal.typegen.annotations import (
    ANY,
    ANY_MAPPING,
    INT_OR_STRING,
    Annotation,
    build_list,
    build_literal,
    build_mapping,
    quote_string,
)
from konverge._internal.typegen.class_names import ClassNames, build_class_name
from konverge._internal.typegen.module_source import TypedDictClass, TypedDictField
from konverge.errors import ConfigurationError

__all__ = ["SchemaPath", "SchemaTranslator", "format_name", "format_value", "has_arbitrary_fields"]

_MAX_DEPTH = 64
_MAX_CHARACTERS = 16 * 1024 * 1024
_FIELD_CHARACTERS = 16
_CLASS_CHARACTERS = 400
_MAX_LITERALS = 512
_MAX_VALUE_LENGTH = 60
_PLAIN = re.compile(r"[A-Za-z0-9_.*\[\]-]{1,100}")

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_TYPES = ", ".join(sorted([*_SCALARS, "array", "object"]))


class SchemaPath(NamedTuple):
    """Path in a schema for errors: a name and its parent."""

    name: str
    parent: SchemaPath | None = None
    depth: int = 0

    def child(self, name: str) -> SchemaPath:
        """Return the path of a child of this name.

        Raises:
            konverge.errors.ConfigurationError: The schema is too deep.
        """
        if self.depth == _MAX_DEPTH:
            raise ConfigurationError(f"{self}: expected at most {_MAX_DEPTH} levels of fields, found more")
        return SchemaPath(name, self, self.depth + 1)

    def build_error(self, expected: str, found: object) -> ConfigurationError:
        """Return the error for an unexpected value at this path."""
        return ConfigurationError(f"{self}: expected {expected}, found {format_value(found)}")

    def __str__(self) -> str:
        steps: list[str] = []
        path: SchemaPath | None = self
        while path is not None:
            steps.append(path.name)
            path = path.parent
        subject, *fields = reversed(steps)
        return f"{subject}, field {'.'.join(map(format_name, fields))}" if fields else subject


def format_name(name: str) -> str:
    """Return an untrusted name for an error: unchanged if it is a plain name."""
    return name if _PLAIN.fullmatch(name) else format_value(name)


def format_value(value: object) -> str:
    """Return an untrusted value for an error: one line of limited length."""
    match value:
        case str() if len(value) > _MAX_VALUE_LENGTH:
            return f"{quote_string(value[:_MAX_VALUE_LENGTH])} and more"
        case str():
            return quote_string(value)
        case None | bool():
            return repr(value)
        case Mapping():
            return "a mapping"
    return f"a value of type {type(value).__name__}"


def _refuse_reference(target: str, path: SchemaPath) -> Annotation:
    raise ConfigurationError(
        f"{path}: expected a schema that is written out, found $ref {format_value(target)}; the API server accepts none"
    )


def has_arbitrary_fields(schema: Mapping[str, Any]) -> bool:
    """Return whether no class can express the fields: unknown fields are allowed, or one has an empty name."""
    properties = schema.get("properties")
    has_nameless = isinstance(properties, Mapping) and "" in properties
    return has_nameless or schema.get("x-kubernetes-preserve-unknown-fields") is True


class SchemaTranslator:
    """Translates schemas to types, and the objects in them to classes.

    Args:
        names: The names of the module's classes.
        resolve: Returns the type of a ``$ref``; custom resources have none.
        needs_defaulted: True if a required field with a default must be written. In the schemas of the server's own
            kinds, a default is often only Go's zero value.
    """

    def __init__(
        self,
        names: ClassNames,
        resolve: Callable[[str, SchemaPath], Annotation] = _refuse_reference,
        *,
        needs_defaulted: bool = False,
    ) -> None:
        self.classes: list[TypedDictClass] = []
        """The classes so far, each after the classes that it refers to."""
        self._names = names
        self._resolve = resolve
        self._needs_defaulted = needs_defaulted
        self._remaining = _MAX_CHARACTERS

    def translate_type(self, node: object, name: str, path: SchemaPath) -> Annotation:
        """Return the type for a schema.

        Args:
            node: The schema.
            name: The name of its class if it needs one.
            path: The path of the schema.

        Raises:
            konverge.errors.ConfigurationError: The node is not a schema, or the result is too large.
        """
        schema = _require_mapping(node, path)
        if (target := _find_reference(schema)) is not None:
            return self._resolve(target, path)
        found = self._translate_enum(schema, path) or self._translate_type(schema, name, path)
        return found.or_null() if schema.get("nullable") is True else found

    def translate_fields(self, schema: Mapping[str, Any], name: str, path: SchemaPath) -> tuple[TypedDictField, ...]:
        """Return the fields of an object's schema, sorted by name.

        Raises:
            konverge.errors.ConfigurationError: As for `translate_type`.
        """
        properties = _require_mapping(schema.get("properties") or {}, path.child("properties"))
        required = schema.get("required") or ()
        if not isinstance(required, list | tuple):
            raise path.child("required").build_error("a list of names", required)
        needed = {each for each in required if isinstance(each, str)}
        found = []
        for field in _sort_properties(properties, path):
            self._spend_characters(_FIELD_CHARACTERS + len(field), path)
            below = properties[field]
            annotation = self.translate_type(below, build_class_name(name, field), path.child(field))
            is_needed = field in needed and (self._needs_defaulted or "default" not in below)
            found.append(TypedDictField(field, annotation, is_needed))
        return tuple(found)

    def _translate_enum(self, schema: Mapping[str, Any], path: SchemaPath) -> Annotation | None:
        values = schema.get("enum")
        if not isinstance(values, list) or not 0 < len(values) <= _MAX_LITERALS:
            return None
        if not all(each is None or isinstance(each, str) or _is_small_integer(each) for each in values):
            return None
        self._spend_characters(sum(len(each) for each in values if isinstance(each, str)), path)
        once = {(type(each), each): each for each in values}
        return build_literal(*once.values())

    def _translate_type(self, schema: Mapping[str, Any], name: str, path: SchemaPath) -> Annotation:
        kind = schema.get("type")
        if schema.get("x-kubernetes-int-or-string") is True or schema.get("format") == "int-or-string":
            return INT_OR_STRING
        if schema.get("x-kubernetes-embedded-resource") is True:
            return ANY_MAPPING
        if kind is None:
            return ANY
        if kind == "object":
            return self._translate_object(schema, name, path)
        if kind == "array":
            return build_list(
                self.translate_type(schema.get("items", {}), build_class_name(name, "Item"), path.child("[]"))
            )
        if isinstance(kind, str) and kind in _SCALARS:
            return Annotation(_SCALARS[kind])
        raise path.child("type").build_error(f"one of {_TYPES}", kind)

    def _translate_object(self, schema: Mapping[str, Any], name: str, path: SchemaPath) -> Annotation:
        if has_arbitrary_fields(schema):
            return ANY_MAPPING
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping):
            return build_mapping(self.translate_type(values, build_class_name(name, "Value"), path.child("*")))
        if values is True or not schema.get("properties"):
            return ANY_MAPPING
        self._spend_characters(_CLASS_CHARACTERS, path)
        own = self._names.reserve(name)
        self.classes.append(TypedDictClass(own, self.translate_fields(schema, own, path)))
        return Annotation(own)

    def _spend_characters(self, characters: int, path: SchemaPath) -> None:
        self._remaining -= characters
        if self._remaining < 0:
            raise ConfigurationError(
                f"{path}: expected schemas that come to at most {_MAX_CHARACTERS >> 20} MiB of Python, found more"
            )


def _is_small_integer(value: object) -> bool:
    """Return whether ``Literal`` accepts the value as a number; a boolean counts as one."""
    return isinstance(value, int) and value.bit_length() <= 64


def _require_mapping(node: object, path: SchemaPath) -> Mapping[str, Any]:
    if not isinstance(node, Mapping):
        raise path.build_error("a mapping", node)
    return node


def _sort_properties(properties: Mapping[str, Any], path: SchemaPath) -> list[str]:
    for name in properties:
        if not isinstance(name, str):
            raise ConfigurationError(
                f"{path}: expected names of fields, found {format_value(name)}; put it into quotes"
            )
    return sorted(properties)


def _find_reference(schema: Mapping[str, Any]) -> str | None:
    """Return the target of the reference; OpenAPI v3 wraps a reference with sibling fields in ``allOf``."""
    all_of = schema.get("allOf")
    for each in (schema, *(all_of if isinstance(all_of, list) else ())):
        if isinstance(each, Mapping) and isinstance(target := each.get("$ref"), str):
            return target
    return None
