"""Schemas: what a kind's fields are, how they merge, and what may be in them.

One model for both sources: the API server's OpenAPI v3 documents for built-in kinds, and the ``openAPIV3Schema`` of a
CustomResourceDefinition. It keeps every keyword of a structural schema, so that validation, pruning and defaulting need
no second model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

__all__ = ["ABSENT", "DEDUCED", "EMBEDDED", "OBJECT_META", "UNTYPED", "Schema", "SchemaDefinitions"]


class _AbsentType:
    """The type of `ABSENT`."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT = _AbsentType()
"""Stands for "there is no such value", where None is a value (an explicit null)."""


class SchemaDefinitions:
    """Named schemas that others refer to.

    Args:
        find: Gives the OpenAPI form of a name, None for an unknown one.
    """

    def __init__(self, find: Callable[[str], Mapping[str, Any] | None]) -> None:
        self._find = find
        self._known: dict[str, Schema] = {}

    def find_spec(self, name: str) -> Mapping[str, Any]:
        """The OpenAPI form; an unknown name accepts anything."""
        return self._find(name) or {}

    def find_schema(self, name: str) -> Schema:
        """The schema of that name, the same object each time."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = Schema({"$ref": f"#/components/schemas/{name}"}, self)
        return found


_NO_DEFINITIONS = SchemaDefinitions(lambda name: None)

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
"""The name of the definition of ``metadata``."""


def _find_reference(spec: Mapping[str, Any]) -> str:
    """The name that a node refers to: directly, or through the one-element allOf that carries a default beside it."""
    target = spec.get("$ref")
    if target is None:
        several = spec.get("allOf")
        if isinstance(several, list) and len(several) == 1 and isinstance(several[0], Mapping):
            target = several[0].get("$ref")
    return target.rpartition("/")[2] if isinstance(target, str) else ""


@dataclass(frozen=True, eq=False, repr=False)
class Schema:
    """One node of a schema; its children are made when they are first asked for (definitions may be recursive).

    Args:
        source: The node in OpenAPI form.
        definitions: What its references mean.
        preserving: Unknown fields are kept, because a node above says so.
    """

    source: Mapping[str, Any]
    definitions: SchemaDefinitions = field(default=_NO_DEFINITIONS)
    preserving: bool = False

    def __repr__(self) -> str:
        return f"Schema({self.name or self.type or 'any'})"

    @cached_property
    def name(self) -> str:
        """The definition's name, empty for a node without one."""
        return _find_reference(self.source)

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        """The node in OpenAPI form, with what it refers to filled in."""
        if not self.name:
            return self.source
        beside = {key: value for key, value in self.source.items() if key not in ("$ref", "allOf")}
        return {**self.definitions.find_spec(self.name), **beside}

    @cached_property
    def type(self) -> str:
        """``object``, ``array``, ``string``, ``integer``, ``number``, ``boolean``, or empty for any of them."""
        return str(self.spec.get("type") or "")

    @cached_property
    def properties(self) -> Mapping[str, Schema]:
        """The named fields."""
        found = self.spec.get("properties")
        properties = (
            {name: self._build_child(spec) for name, spec in found.items()} if isinstance(found, Mapping) else {}
        )
        if self.embedded_resource:
            properties = {name: self._build_child(spec) for name, spec in EMBEDDED.items()} | properties
            properties["metadata"] = self._build_child(EMBEDDED["metadata"])
        return properties

    @cached_property
    def additional_properties(self) -> Schema | None:
        """What fields without a name of their own look like; None when there may be none."""
        found = self.spec.get("additionalProperties")
        if isinstance(found, Mapping):
            return self._build_child(found)
        if found is True:
            return DEDUCED
        if found is None and (self.preserve_unknown or not self.properties):
            return DEDUCED
        return None

    @cached_property
    def items(self) -> Schema | None:
        """What a list's items look like."""
        found = self.spec.get("items")
        return self._build_child(found) if isinstance(found, Mapping) else None

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
        """The schema of one field: a named one, else any; None when there is no such field."""
        return self.properties.get(name) or self.additional_properties

    @cached_property
    def list_type(self) -> str:
        """How a list merges: ``atomic`` as a whole, as a ``set`` of scalars, or as a ``map`` of items with keys."""
        return str(self.spec.get("x-kubernetes-list-type") or "atomic")

    @cached_property
    def list_map_keys(self) -> tuple[str, ...]:
        """The key fields of the items of a list of type ``map``."""
        return tuple(self.spec.get("x-kubernetes-list-map-keys") or ())

    @cached_property
    def map_atomic(self) -> bool:
        """Tells that a mapping merges as a whole instead of field by field."""
        return self.spec.get("x-kubernetes-map-type") == "atomic"

    @property
    def patch_merge_key(self) -> str:
        """The key field by which a strategic merge patch tells the items of a list apart; empty for none."""
        return str(self.spec.get("x-kubernetes-patch-merge-key") or "")

    @property
    def patch_strategy(self) -> frozenset[str]:
        """What a strategic merge patch does here beyond replacing: ``merge``, ``retainKeys``, both or nothing."""
        return frozenset(str(self.spec.get("x-kubernetes-patch-strategy") or "").split(",")) - {""}

    @cached_property
    def default(self) -> Any:
        """What an absent value becomes; `ABSENT` when nothing does."""
        return self.spec.get("default", ABSENT)

    @cached_property
    def declared_defaults(self) -> Mapping[str, Any]:
        """The fields with a default that is more than their type's zero (the server's types declare those as well)."""
        return {
            name: each.default
            for name, each in self.properties.items()
            if each.default is not ABSENT and each.default not in ("", 0, {}, None)
        }

    @cached_property
    def required(self) -> frozenset[str]:
        """The names of the fields that must be there."""
        return frozenset(self.spec.get("required") or ())

    @cached_property
    def nullable(self) -> bool:
        """Tells that null is a value here."""
        return bool(self.spec.get("nullable"))

    @cached_property
    def int_or_string(self) -> bool:
        """Tells that both an integer and a string are good (and that they differ: 80 is not "80")."""
        return bool(self.spec.get("x-kubernetes-int-or-string")) or self.format == "int-or-string"

    @cached_property
    def quantity(self) -> bool:
        """Tells that the value is a resource quantity, which the server stores in its canonical spelling."""
        return self.name == _QUANTITY

    @cached_property
    def preserve_unknown(self) -> bool:
        """Tells that fields which the schema does not name are kept, here and below."""
        return self.preserving or bool(self.spec.get("x-kubernetes-preserve-unknown-fields"))

    @cached_property
    def embedded_resource(self) -> bool:
        """Tells that the value is a whole object with apiVersion, kind and metadata."""
        return bool(self.spec.get("x-kubernetes-embedded-resource"))

    @cached_property
    def always_written(self) -> Mapping[str, Any]:
        """Of a built-in type: the fields that the server writes even when they are absent, and as what."""
        return self.spec.get("x-konverge-always") or {}

    @cached_property
    def keeps_zero(self) -> frozenset[str]:
        """Of a built-in type: the optional fields whose zero (``0``, ``false``, empty) is not the same as absence."""
        return frozenset(self.spec.get("x-konverge-keeps-zero") or ())

    @cached_property
    def enum(self) -> tuple[Any, ...]:
        """The values that are allowed; empty for no limit."""
        return tuple(self.spec.get("enum") or ())

    @cached_property
    def format(self) -> str:
        """The OpenAPI format, for example ``int32`` or ``date-time``."""
        return str(self.spec.get("format") or "")

    @property
    def pattern(self) -> str:
        """The regular expression that a string must contain a match of; empty for none."""
        return str(self.spec.get("pattern") or "")

    @property
    def minimum(self) -> float | None:
        """The smallest number."""
        return self.spec.get("minimum")

    @property
    def maximum(self) -> float | None:
        """The greatest number."""
        return self.spec.get("maximum")

    @property
    def exclusive_minimum(self) -> bool:
        """Tells that the number must be greater than `minimum`."""
        return bool(self.spec.get("exclusiveMinimum"))

    @property
    def exclusive_maximum(self) -> bool:
        """Tells that the number must be less than `maximum`."""
        return bool(self.spec.get("exclusiveMaximum"))

    @property
    def multiple_of(self) -> float | None:
        """What the number must be a multiple of."""
        return self.spec.get("multipleOf")

    @property
    def min_length(self) -> int | None:
        """The fewest characters of a string."""
        return self.spec.get("minLength")

    @property
    def max_length(self) -> int | None:
        """The most characters of a string."""
        return self.spec.get("maxLength")

    @property
    def min_items(self) -> int | None:
        """The fewest items of a list."""
        return self.spec.get("minItems")

    @property
    def max_items(self) -> int | None:
        """The most items of a list."""
        return self.spec.get("maxItems")

    @property
    def min_properties(self) -> int | None:
        """The fewest fields of a mapping."""
        return self.spec.get("minProperties")

    @property
    def max_properties(self) -> int | None:
        """The most fields of a mapping."""
        return self.spec.get("maxProperties")

    @property
    def unique_items(self) -> bool:
        """Tells that a list must not hold the same item twice."""
        return bool(self.spec.get("uniqueItems"))

    @property
    def validations(self) -> tuple[Mapping[str, Any], ...]:
        """The CEL rules (``x-kubernetes-validations``), as data."""
        return tuple(self.spec.get("x-kubernetes-validations") or ())

    def _build_branches(self, keyword: str) -> tuple[Schema, ...]:
        found = self.spec.get(keyword)
        return tuple(Schema(spec, self.definitions) for spec in found) if isinstance(found, list) else ()

    @cached_property
    def all_of(self) -> tuple[Schema, ...]:
        """Further demands, all of which the value must meet (a reference is not one of them)."""
        return () if self.name else self._build_branches("allOf")

    @cached_property
    def any_of(self) -> tuple[Schema, ...]:
        """Demands of which the value must meet at least one."""
        return self._build_branches("anyOf")

    @cached_property
    def one_of(self) -> tuple[Schema, ...]:
        """Demands of which the value must meet exactly one."""
        return self._build_branches("oneOf")

    @cached_property
    def negated(self) -> Schema | None:
        """A demand that the value must not meet (``not``)."""
        found = self.spec.get("not")
        return Schema(found, self.definitions) if isinstance(found, Mapping) else None


EMBEDDED: Mapping[str, Mapping[str, Any]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": f"#/components/schemas/{OBJECT_META}"},
}
"""The fields that every whole object has, whatever its own schema says."""

_UNTYPED_SPEC: dict[str, Any] = {"x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": True}

UNTYPED = Schema(_UNTYPED_SPEC)
"""Anything, owned as a whole: a raw extension, or an item of a list without a schema."""

DEDUCED = Schema({"x-kubernetes-preserve-unknown-fields": True})
"""Anything; mappings merge field by field, lists as a whole. What a schema that keeps unknown fields says of them."""
