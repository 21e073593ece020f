"""From a schema to the types that its objects have: the part that kinds of the server and custom resources share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from konverge.errors import ConfigurationError
from konverge.typegen.annotations import (
    ANY,
    ANY_MAPPING,
    INT_OR_STRING,
    Annotation,
    list_of,
    literal,
    mapping_of,
    quoted,
)
from konverge.typegen.modules import Field, TypedDictClass
from konverge.typegen.names import Names, class_name

__all__ = ["Place", "Translation", "plain", "shown", "takes_any_fields"]

_MAX_DEPTH = 64
_MAX_CHARACTERS = 16 * 1024 * 1024
_FIELD_CHARACTERS = 16
_CLASS_CHARACTERS = 400
_MAX_LITERALS = 512
_SHOWN = 60
_PLAIN = re.compile(r"[A-Za-z0-9_.*\[\]-]{1,100}")

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_TYPES = ", ".join(sorted([*_SCALARS, "array", "object"]))


class Place(NamedTuple):
    """Where in a schema, for an error: its name, and what it is in."""

    name: str
    above: Place | None = None
    depth: int = 0

    def below(self, name: str) -> Place:
        """What that name says in it.

        Raises:
            konverge.errors.ConfigurationError: That would be too deep.
        """
        if self.depth == _MAX_DEPTH:
            raise ConfigurationError(f"{self}: expected at most {_MAX_DEPTH} levels of fields, found more")
        return Place(name, self, self.depth + 1)

    def mistake(self, expected: str, found: object) -> ConfigurationError:
        """The error about what stands there."""
        return ConfigurationError(f"{self}: expected {expected}, found {shown(found)}")

    def __str__(self) -> str:
        steps: list[str] = []
        place: Place | None = self
        while place is not None:
            steps.append(place.name)
            place = place.above
        subject, *fields = reversed(steps)
        return f"{subject}, field {'.'.join(map(plain, fields))}" if fields else subject


def plain(name: str) -> str:
    """A name of somebody else's in an error: as it is, where it is one."""
    return name if _PLAIN.fullmatch(name) else shown(name)


def shown(value: object) -> str:
    """A value of somebody else's in an error: one line, not longer than is good for reading."""
    match value:
        case str() if len(value) > _SHOWN:
            return f"{quoted(value[:_SHOWN])} and more"
        case str():
            return quoted(value)
        case None | bool():
            return repr(value)
        case Mapping():
            return "a mapping"
    return f"a value of type {type(value).__name__}"


def _no_reference(target: str, place: Place) -> Annotation:
    raise ConfigurationError(
        f"{place}: expected a schema that is written out, found $ref {shown(target)}; the API server accepts none"
    )


def takes_any_fields(schema: Mapping[str, Any]) -> bool:
    """Tell whether no class can have the fields of an object: it may have unknown ones, or one without a name."""
    properties = schema.get("properties")
    has_nameless = isinstance(properties, Mapping) and "" in properties
    return has_nameless or schema.get("x-kubernetes-preserve-unknown-fields") is True


class Translation:
    """Makes types of schemas, and classes of the objects in them.

    Args:
        names: Those of the module's classes.
        resolve: The type that a ``$ref`` means; custom resources have none.
        needs_defaulted: Whether a required field must be written that has a default. In the schemas of the server's
            own kinds a default is often but Go's zero value.
    """

    def __init__(
        self,
        names: Names,
        resolve: Callable[[str, Place], Annotation] = _no_reference,
        *,
        needs_defaulted: bool = False,
    ) -> None:
        self.classes: list[TypedDictClass] = []
        """Every one so far, those that a class refers to before it."""
        self._names = names
        self._resolve = resolve
        self._needs_defaulted = needs_defaulted
        self._left = _MAX_CHARACTERS

    def annotation(self, node: object, name: str, place: Place) -> Annotation:
        """The type of what a schema allows.

        Args:
            node: The schema.
            name: What its class is to be called if it needs one.
            place: Where it is.

        Raises:
            konverge.errors.ConfigurationError: It is no schema, or more than may come of one.
        """
        schema = _mapping(node, place)
        if (target := _reference(schema)) is not None:
            return self._resolve(target, place)
        found = self._enumerated(schema, place) or self._typed(schema, name, place)
        return found.optional() if schema.get("nullable") is True else found

    def fields(self, schema: Mapping[str, Any], name: str, place: Place) -> tuple[Field, ...]:
        """What an object's schema says of its fields, by name.

        Raises:
            konverge.errors.ConfigurationError: As for `annotation`.
        """
        properties = _mapping(schema.get("properties") or {}, place.below("properties"))
        required = schema.get("required") or ()
        if not isinstance(required, list | tuple):
            raise place.below("required").mistake("a list of names", required)
        needed = {each for each in required if isinstance(each, str)}
        found = []
        for field in _sorted(properties, place):
            self._spend(_FIELD_CHARACTERS + len(field), place)
            below = properties[field]
            annotation = self.annotation(below, class_name(name, field), place.below(field))
            is_needed = field in needed and (self._needs_defaulted or "default" not in below)
            found.append(Field(field, annotation, is_needed))
        return tuple(found)

    def _enumerated(self, schema: Mapping[str, Any], place: Place) -> Annotation | None:
        values = schema.get("enum")
        if not isinstance(values, list) or not 0 < len(values) <= _MAX_LITERALS:
            return None
        if not all(each is None or isinstance(each, str) or _is_small_integer(each) for each in values):
            return None
        self._spend(sum(len(each) for each in values if isinstance(each, str)), place)
        once = {(type(each), each): each for each in values}
        return literal(*once.values())

    def _typed(self, schema: Mapping[str, Any], name: str, place: Place) -> Annotation:
        kind = schema.get("type")
        if schema.get("x-kubernetes-int-or-string") is True or schema.get("format") == "int-or-string":
            return INT_OR_STRING
        if schema.get("x-kubernetes-embedded-resource") is True:
            return ANY_MAPPING
        if kind is None:
            return ANY
        if kind == "object":
            return self._object(schema, name, place)
        if kind == "array":
            return list_of(self.annotation(schema.get("items", {}), class_name(name, "Item"), place.below("[]")))
        if isinstance(kind, str) and kind in _SCALARS:
            return Annotation(_SCALARS[kind])
        raise place.below("type").mistake(f"one of {_TYPES}", kind)

    def _object(self, schema: Mapping[str, Any], name: str, place: Place) -> Annotation:
        if takes_any_fields(schema):
            return ANY_MAPPING
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping):
            return mapping_of(self.annotation(values, class_name(name, "Value"), place.below("*")))
        if values is True or not schema.get("properties"):
            return ANY_MAPPING
        self._spend(_CLASS_CHARACTERS, place)
        own = self._names.take(name)
        self.classes.append(TypedDictClass(own, self.fields(schema, own, place)))
        return Annotation(own)

    def _spend(self, characters: int, place: Place) -> None:
        self._left -= characters
        if self._left < 0:
            raise ConfigurationError(
                f"{place}: expected schemas that come to at most {_MAX_CHARACTERS >> 20} MiB of Python, found more"
            )


def _is_small_integer(value: object) -> bool:
    """Tell whether it is a number that ``Literal`` takes; a boolean is one too."""
    return isinstance(value, int) and value.bit_length() <= 64


def _mapping(node: object, place: Place) -> Mapping[str, Any]:
    if not isinstance(node, Mapping):
        raise place.mistake("a mapping", node)
    return node


def _sorted(properties: Mapping[str, Any], place: Place) -> list[str]:
    for name in properties:
        if not isinstance(name, str):
            raise ConfigurationError(f"{place}: expected names of fields, found {shown(name)}; put it into quotes")
    return sorted(properties)


def _reference(schema: Mapping[str, Any]) -> str | None:
    """What it refers to; OpenAPI v3 wraps a reference that has something beside it into ``allOf``."""
    all_of = schema.get("allOf")
    for each in (schema, *(all_of if isinstance(all_of, list) else ())):
        if isinstance(each, Mapping) and isinstance(target := each.get("$ref"), str):
            return target
    return None
