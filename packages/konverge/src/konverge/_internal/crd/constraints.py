"""Constraints of fields beyond type hints: CEL rules, the keys of a list, atomic replacement.

Constraints of fields are `msgspec.Meta` values for `typing.Annotated`. msgspec's own constraints (``ge``,
``max_length``, ``pattern``, ``description`` ...) become their counterparts in the schema. All work in every kind of
class, also in pydantic models.

When the server accepts a definition, it estimates the cost of each rule by the largest value that the schema permits.
It rejects a definition with a rule that may be too expensive. Therefore everything that a rule iterates over needs a
limit: ``max_length`` on strings, lists and mappings. The text of a number counts as unlimited: a message expression
can contain strings of the object, but not ``string(self.replicas)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec

from konverge._internal.kube import Object

__all__ = [
    "ATOMIC",
    "CelRule",
    "atomic",
    "class_rules",
    "embedded_resource",
    "immutable",
    "list_class_rules",
    "list_map",
    "rules",
    "validate_rule",
]

T = TypeVar("T")

ATOMIC = "x-konverge-atomic"
"""Marker of `atomic` that the schema replaces: the keyword differs between lists and mappings."""

_ATTRIBUTE = "__konverge_rules__"


@dataclass(frozen=True, slots=True)
class CelRule:
    """A CEL expression that the server evaluates on each write; if it is false, the server rejects the write.

    ``self`` is the value with the rule, ``oldSelf`` the stored one. The server evaluates a rule with ``oldSelf`` only
    if there is a stored value. Fields have their JSON names; ``has(self.field)`` tests an optional one.

    Args:
        expression: The CEL expression.
        message: The message for the user if the expression is false (default: the expression).
        message_expression: A CEL expression that returns the message; `message` is the fallback if it fails.
        reason: The machine-readable cause (default of the server: ``FieldValueInvalid``).
        field_path: The field of the error, as a path from the value with the rule: ``.minReplicas``.
        optional_old_self: True to evaluate a rule with ``oldSelf`` on creation, too; ``oldSelf`` is then an optional.
    """

    expression: str
    message: str = ""
    message_expression: str = ""
    reason: Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"] | None = (
        None
    )
    field_path: str = ""
    optional_old_self: bool = False

    def to_manifest(self) -> Object:
        """Return the rule as an entry of ``x-kubernetes-validations``."""
        entry: Object = {"rule": self.expression}
        for name, value in (
            ("message", self.message),
            ("messageExpression", self.message_expression),
            ("reason", self.reason),
            ("fieldPath", self.field_path),
            ("optionalOldSelf", self.optional_old_self),
        ):
            if value:
                entry[name] = value
        return entry


def rules(*listed: CelRule) -> msgspec.Meta:
    """Return rules for ``Annotated``, which the server checks on each write of the field."""
    return msgspec.Meta(extra_json_schema={"x-kubernetes-validations": [rule.to_manifest() for rule in listed]})


def class_rules(*listed: CelRule) -> Callable[[type[T]], type[T]]:
    """Return a decorator with rules that the server checks for each field of this class; subclasses inherit them.

    ::

        @class_rules(CelRule("self.minReplicas <= self.maxReplicas", "the minimum is above the maximum"))
        @dataclass
        class Scaling: ...
    """

    def declare(cls: type[T]) -> type[T]:
        setattr(cls, _ATTRIBUTE, listed)
        return cls

    return declare


def list_class_rules(cls: type[Any]) -> list[Object]:
    """Return the rules of the class in the form of the schema."""
    return [rule.to_manifest() for rule in getattr(cls, _ATTRIBUTE, ())]


def immutable(message: str = "is immutable") -> msgspec.Meta:
    """Return a rule for a field that keeps its first value.

    An optional field can still be set later, or removed: then the server has no two values to compare. To forbid that
    too, put a rule on the class of the field: ``has(self.field) == has(oldSelf.field)``.
    """
    return rules(CelRule("self == oldSelf", message))


def list_map(*keys: str) -> msgspec.Meta:
    """Return the keys of a list: its items are identified by these JSON fields, so that each applier owns its items.

    Each key is a required scalar field of the item, or one with a default.
    """
    return msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def atomic() -> msgspec.Meta:
    """Return the marker of a list, mapping or object that one applier owns and replaces as a whole.

    Lists are atomic unless they are a set or a `list_map`. The marker makes a later change visible.
    """
    return msgspec.Meta(extra_json_schema={ATOMIC: True})


def embedded_resource() -> msgspec.Meta:
    """Return the marker of a ``dict[str, Any]`` with a whole object: the server checks apiVersion, kind, metadata."""
    return msgspec.Meta(extra_json_schema={"x-kubernetes-embedded-resource": True})


def validate_rule(rule: Object) -> list[str]:
    """Return the errors for which the server would reject a rule before it parses it, one sentence each."""
    expression = rule.get("rule", "")
    errors = []
    if not expression.strip():
        errors.append("rule: expected an expression, found none")
    if "\n" in expression and not rule.get("message"):
        errors.append("rule: expected a message for an expression of several lines, which the server would not show")
    if "\n" in rule.get("message", "") or "\n" in rule.get("messageExpression", ""):
        errors.append(f"rule {rule['rule']!r}: expected a message of one line, found several")
    return errors
