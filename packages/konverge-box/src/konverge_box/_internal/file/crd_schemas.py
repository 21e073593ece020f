"""Checks of the OpenAPI schema of a box's custom resource: its keywords and the fields that it declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from konverge_box._internal.file.validation_errors import Path, format_hint

__all__ = ["OpenAPI", "complete_schema", "find_schema_errors", "find_unknown_field"]

OpenAPI: TypeAlias = dict[str, Any]
"""A schema node in the form of a CustomResourceDefinition."""

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_KEYWORDS: dict[str, type | tuple[type, ...]] = {
    "type": str,
    "description": str,
    "properties": dict,
    "additionalProperties": (dict, bool),
    "items": dict,
    "required": list,
    "default": object,
    "enum": list,
    "format": str,
    "pattern": str,
    "minimum": (int, float),
    "maximum": (int, float),
    "exclusiveMinimum": bool,
    "exclusiveMaximum": bool,
    "multipleOf": (int, float),
    "minLength": int,
    "maxLength": int,
    "minItems": int,
    "maxItems": int,
    "uniqueItems": bool,
    "minProperties": int,
    "maxProperties": int,
    "nullable": bool,
    "title": str,
    "example": object,
    "externalDocs": dict,
    "allOf": list,
    "anyOf": list,
    "oneOf": list,
    "not": dict,
    "x-kubernetes-embedded-resource": bool,
    "x-kubernetes-int-or-string": bool,
    "x-kubernetes-list-map-keys": list,
    "x-kubernetes-list-type": str,
    "x-kubernetes-map-type": str,
    "x-kubernetes-preserve-unknown-fields": bool,
    "x-kubernetes-validations": list,
}
_WORDS = {str: "a string", dict: "a mapping", list: "a list", bool: "true or false", int: "a whole number"}


def complete_schema(schema: Mapping[str, Any]) -> OpenAPI:
    """Return the schema for a CustomResourceDefinition, with the types that ``properties`` and ``items`` imply."""
    completed = dict(schema)
    if isinstance(properties := completed.get("properties"), Mapping):
        completed = {"type": "object", **completed}
        completed["properties"] = {name: complete_schema(each) for name, each in properties.items()}
    if isinstance(below := completed.get("additionalProperties"), Mapping):
        completed = {"type": "object", **completed, "additionalProperties": complete_schema(below)}
    if isinstance(items := completed.get("items"), Mapping):
        completed = {"type": "array", **completed, "items": complete_schema(items)}
    return completed


def find_schema_errors(schema: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the errors of a schema, each with its path and message."""
    if not isinstance(schema, dict):
        yield path, "expected a schema such as {type: string}"
        return
    for word, value in schema.items():
        expected = _KEYWORDS.get(word)
        if expected is None:
            yield (*path, word), f"unknown schema keyword{format_hint(word, _KEYWORDS)}"
        elif not isinstance(value, expected) or (isinstance(value, bool) and expected in (int, (int, float))):
            words = expected if isinstance(expected, tuple) else (expected,)
            yield (*path, word), f"expected {' or '.join(_WORDS.get(each, 'a number') for each in words)}"
    kind, properties = schema.get("type"), schema.get("properties")
    if isinstance(kind, str) and kind not in _TYPES:
        yield (*path, "type"), f"unknown schema type {kind!r}{format_hint(kind, _TYPES)}"
    elif kind is None and not any(
        word in schema
        for word in (
            "properties",
            "items",
            "additionalProperties",
            "x-kubernetes-int-or-string",
            "x-kubernetes-preserve-unknown-fields",
        )
    ):
        yield path, f"type is missing; known: {', '.join(_TYPES)}"
    if isinstance(properties, dict):
        for name, each in properties.items():
            yield from find_schema_errors(each, (*path, "properties", name))
        required = schema.get("required")
        for index, name in enumerate(required if isinstance(required, list) else []):
            if name not in properties:
                yield (*path, "required", index), f"no such property: {name!r}{format_hint(str(name), properties)}"
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from find_schema_errors(schema[word], (*path, word))


def find_unknown_field(schema: Any, steps: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the path to the first unknown step and the end of a message about it; None if all steps are allowed."""
    for depth, step in enumerate(steps):
        if not isinstance(schema, Mapping) or schema.get("x-kubernetes-preserve-unknown-fields"):
            return None
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            if schema.get("type") not in ("string", "integer", "number", "boolean"):
                return None
            return ".".join(steps[: depth + 1]), f": its type is {schema['type']}, which has no fields"
        if step not in properties:
            return ".".join(steps[: depth + 1]), format_hint(step, properties)
        schema = properties[step]
    return None
