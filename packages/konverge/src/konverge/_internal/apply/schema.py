"""Schemas: the fields of a kind, their merge rules, and their valid values.

There is one model for both sources: the API server's OpenAPI v3 documents for built-in kinds, and the
``openAPIV3Schema`` of a CustomResourceDefinition. It keeps every keyword of a structural schema, so that validation,
pruning and defaulting need no second model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

__all__ = ["ABSENT", "DEDUCED", "EMBEDDED", "OBJECT_META", "UNTYPED", "Schema", "SchemaDefinitions"]


class _AbsentType:
    """The class with the only value `ABSENT`."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT = _AbsentType()
"""The absence of a value, where None is a value (an explicit null)."""


class SchemaDefinitions:
    """Named schemas to which other schemas refer.

    Args:
        find: A function that returns the OpenAPI form of a name; None for an unknown name.
    """

    def __init__(self, find: Callable[[str], Mapping[str, Any] | None]) -> None:
        self._find = find
        self._schemas: dict[str, Schema] = {}

    def find_spec(self, name: str) -> Mapping[str, Any]:
        """Return the OpenAPI form of a name; an unknown name accepts anything."""
        return self._find(name) or {}

    def find_schema(self, name: str) -> Schema:
        """Return the schema of that name, the same object each time."""
        schema = self._schemas.get(name)
        if schema is None:
            schema = self._schemas[name] = Schema({"$ref": f"#/components/schemas/{name}"}, self)
        return schema


_NO_DEFINITIONS = SchemaDefinitions(lambda name: None)

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
"""The name of the definition of ``metadata``."""


def _find_reference(spec: Mapping[str, Any]) -> str:
    """Return the name to which a node refers: directly, or through a one-element allOf with a default beside it."""
    target = spec.get("$ref")
    if target is None:
        branches = spec.get("allOf")
        if isinstance(branches, list) and len(branches) == 1 and isinstance(branches[0], Mapping):
            target = branches[0].get("$ref")
    return target.rpartition("/")[2] if isinstance(target, str) else ""


@dataclass(frozen=True, eq=False, repr=False)
class Schema:
    """One node of a schema; its children are created on first use (definitions may be recursive).

    Args:
        source: The node in OpenAPI form.
        definitions: The definitions for its references.
        preserving: Whether unknown fields are kept because of a node above.
    """

    source: Mapping[str, Any]
    definitions: SchemaDefinitions = field(default=_NO_DEFINITIONS)
    preserving: bool = False

    def __repr__(self) -> str:
        return f"Schema({self.name or self.type or 'any'})"

    @cached_property
    def name(self) -> str:
        """The name of the definition; empty for a node without one."""
        return _find_reference(self.source)

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        """The node in OpenAPI form, with its reference resolved."""
        if not self.name:
            return self.source
        siblings = {key: value for key, value in self.source.items() if key not in ("$ref", "allOf")}
        return {**self.definitions.find_spec(self.name), **siblings}

    @cached_property
    def type(self) -> str:
        """The type: ``object``, ``array``, ``string``, ``integer``, ``number``, ``boolean``, or empty for any."""
        return str(self.spec.get("type") or "")

    @cached_property
    def properties(self) -> Mapping[str, Schema]:
        """The schemas of the named fields."""
        specs = self.spec.get("properties")
        properties = (
            {name: self._build_child(spec) for name, spec in specs.items()} if isinstance(specs, Mapping) else {}
        )
        if self.embedded_resource:
            properties = {name: self._build_child(spec) for name, spec in EMBEDDED.items()} | properties
            properties["metadata"] = self._build_child(EMBEDDED["metadata"])
        return properties

    @cached_property
    def additional_properties(self) -> Schema | None:
        """The schema of the fields that `properties` does not name; None if no other field is allowed."""
        additional = self.spec.get("additionalProperties")
        if isinstance(additional, Mapping):
            return self._build_child(additional)
        if additional is True:
            return DEDUCED
        if additional is None and (self.preserve_unknown or not self.properties):
            return DEDUCED
        return None

    @cached_property
    def items(self) -> Schema | None:
        """The schema of the items of a list."""
        spec = self.spec.get("items")
        return self._build_child(spec) if isinstance(spec, Mapping) else None

    def _build_child(self, spec: Any) -> Schema:
        if not isinstance(spec, Mapping):
            return UNTYPED
        name = _find_reference(spec)
        if name == _RAW_EXTENSION:
            return UNTYPED
        if name and "$ref" in spec and len(spec) == 1:
            return self.definitions.find_schema(name)
        return Schema(spec, self.definitions, self.preserve_unknown and not name)

    def find_child(self, name: str) -> Schema | None:
        """Return the schema of one field, named or additional; None if there can be no such field."""
        return self.properties.get(name) or self.additional_properties

    @cached_property
    def list_type(self) -> str:
        """The merge rule of a list: ``atomic`` as a whole, ``set`` of scalars, or ``map`` of items with keys."""
        return str(self.spec.get("x-kubernetes-list-type") or "atomic")

    @cached_property
    def list_map_keys(self) -> tuple[str, ...]:
        """The key fields of the items of a list of type ``map``."""
        return tuple(self.spec.get("x-kubernetes-list-map-keys") or ())

    @cached_property
    def map_atomic(self) -> bool:
        """True if a mapping merges as a whole instead of field by field."""
        return self.spec.get("x-kubernetes-map-type") == "atomic"

    @property
    def patch_merge_key(self) -> str:
        """The key field that identifies the items of a list in a strategic merge patch; empty for none."""
        return str(self.spec.get("x-kubernetes-patch-merge-key") or "")

    @property
    def patch_strategy(self) -> frozenset[str]:
        """The strategies of a strategic merge patch besides replacement: ``merge``, ``retainKeys``, both or none."""
        return frozenset(str(self.spec.get("x-kubernetes-patch-strategy") or "").split(",")) - {""}

    @cached_property
    def default(self) -> Any:
        """The value for an absent field; `ABSENT` if there is no default."""
        return self.spec.get("default", ABSENT)

    @cached_property
    def declared_defaults(self) -> Mapping[str, Any]:
        """The defaults of fields, except the zero values of their types (which the server's types declare as well)."""
        return {
            name: child.default
            for name, child in self.properties.items()
            if child.default is not ABSENT and child.default not in ("", 0, {}, None)
        }

    @cached_property
    def required(self) -> frozenset[str]:
        """The names of the required fields."""
        return frozenset(self.spec.get("required") or ())

    @cached_property
    def nullable(self) -> bool:
        """True if null is a valid value."""
        return bool(self.spec.get("nullable"))

    @cached_property
    def int_or_string(self) -> bool:
        """True if both an integer and a string are valid (they differ: 80 is not "80")."""
        return bool(self.spec.get("x-kubernetes-int-or-string")) or self.format == "int-or-string"

    @cached_property
    def quantity(self) -> bool:
        """True if the value is a resource quantity, which the server stores in canonical form."""
        return self.name == _QUANTITY

    @cached_property
    def preserve_unknown(self) -> bool:
        """True if fields that the schema does not name are kept, here and below."""
        return self.preserving or bool(self.spec.get("x-kubernetes-preserve-unknown-fields"))

    @cached_property
    def embedded_resource(self) -> bool:
        """True if the value is a whole object with apiVersion, kind and metadata."""
        return bool(self.spec.get("x-kubernetes-embedded-resource"))

    @cached_property
    def always_written(self) -> Mapping[str, Any]:
        """The fields of a built-in type that the server writes even if they are absent, with their values."""
        return self.spec.get("x-konverge-always") or {}

    @cached_property
    def keeps_zero(self) -> frozenset[str]:
        """The optional fields of a built-in type whose zero (``0``, ``false``, empty) differs from absence."""
        return frozenset(self.spec.get("x-konverge-keeps-zero") or ())

    @cached_property
    def enum(self) -> tuple[Any, ...]:
        """The valid values; empty for any value."""
        return tuple(self.spec.get("enum") or ())

    @cached_property
    def format(self) -> str:
        """The OpenAPI format, for example ``int32`` or ``date-time``."""
        return str(self.spec.get("format") or "")

    @property
    def pattern(self) -> str:
        """The regular expression that must match a part of a string; empty for none."""
        return str(self.spec.get("pattern") or "")

    @property
    def minimum(self) -> float | None:
        """The minimum of a number; None for none."""
        return self.spec.get("minimum")

    @property
    def maximum(self) -> float | None:
        """The maximum of a number; None for none."""
        return self.spec.get("maximum")

    @property
    def exclusive_minimum(self) -> bool:
        """True if a number must be greater than `minimum`."""
        return bool(self.spec.get("exclusiveMinimum"))

    @property
    def exclusive_maximum(self) -> bool:
        """True if a number must be less than `maximum`."""
        return bool(self.spec.get("exclusiveMaximum"))

    @property
    def multiple_of(self) -> float | None:
        """The divisor of valid numbers; None for none."""
        return self.spec.get("multipleOf")

    @property
    def min_length(self) -> int | None:
        """The minimum length of a string, in characters."""
        return self.spec.get("minLength")

    @property
    def max_length(self) -> int | None:
        """The maximum length of a string, in characters."""
        return self.spec.get("maxLength")

    @property
    def min_items(self) -> int | None:
        """The minimum number of items in a list."""
        return self.spec.get("minItems")

    @property
    def max_items(self) -> int | None:
        """The maximum number of items in a list."""
        return self.spec.get("maxItems")

    @property
    def min_properties(self) -> int | None:
        """The minimum number of fields in a mapping."""
        return self.spec.get("minProperties")

    @property
    def max_properties(self) -> int | None:
        """The maximum number of fields in a mapping."""
        return self.spec.get("maxProperties")

    @property
    def unique_items(self) -> bool:
        """True if a list must not contain duplicate items."""
        return bool(self.spec.get("uniqueItems"))

    @property
    def validations(self) -> tuple[Mapping[str, Any], ...]:
        """The CEL rules (``x-kubernetes-validations``), as data."""
        return tuple(self.spec.get("x-kubernetes-validations") or ())

    def _build_branches(self, keyword: str) -> tuple[Schema, ...]:
        branches = self.spec.get(keyword)
        return tuple(Schema(spec, self.definitions) for spec in branches) if isinstance(branches, list) else ()

    @cached_property
    def all_of(self) -> tuple[Schema, ...]:
        """Further schemas that the value must all match (a reference is not one of them)."""
        return () if self.name else self._build_branches("allOf")

    @cached_property
    def any_of(self) -> tuple[Schema, ...]:
        """Schemas: the value must match at least one of them."""
        return self._build_branches("anyOf")

    @cached_property
    def one_of(self) -> tuple[Schema, ...]:
        """Schemas: the value must match exactly one of them."""
        return self._build_branches("oneOf")

    @cached_property
    def negated(self) -> Schema | None:
        """A schema that the value must not match (``not``)."""
        spec = self.spec.get("not")
        return Schema(spec, self.definitions) if isinstance(spec, Mapping) else None


EMBEDDED: Mapping[str, Mapping[str, Any]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": f"#/components/schemas/{OBJECT_META}"},
}
"""The fields that every whole object has, independent of its own schema."""

_UNTYPED_SPEC: dict[str, Any] = {"x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": True}

UNTYPED = Schema(_UNTYPED_SPEC)
"""The schema for any value that is owned as a whole: a raw extension, or an item of a list without a schema."""

DEDUCED = Schema({"x-kubernetes-preserve-unknown-fields": True})
"""The schema of unknown fields that are kept: any value; mappings merge field by field, lists as a whole."""
