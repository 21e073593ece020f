"""What a type hint alone cannot say about a field: CEL rules, the keys of a list, what is replaced as a whole.

Those for fields are `msgspec.Meta` values for `typing.Annotated`, beside msgspec's own constraints (``ge``,
``max_length``, ``pattern``, ``description`` ...), which become their counterparts of the schema. They work in every
kind of class, pydantic models included.

The server estimates what a rule can cost when it accepts the definition, by the largest value that the schema lets
through, and refuses a definition with a rule that may be too expensive. So whatever a rule walks over needs a bound:
``max_length`` on strings, lists and mappings. It takes the text of a number for unbounded, so a message expression can
show the strings of the object, but no ``string(self.replicas)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec

from konverge.kube import Object

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
"""What `atomic` leaves for the schema to replace: the word differs between a list and a mapping."""

_ATTRIBUTE = "__konverge_rules__"


@dataclass(frozen=True, slots=True)
class CelRule:
    """A CEL expression that the server evaluates on each write; false refuses the write.

    ``self`` is the value that the rule stands on, ``oldSelf`` the stored one: a rule that names it is evaluated only
    when there is one. Fields have their JSON names; ``has(self.field)`` asks for an optional one.

    Args:
        expression: The expression.
        message: What the user reads when it is false; the expression itself when there is none.
        message_expression: A CEL expression that makes the message; `message` is what is read if it fails.
        reason: The machine-readable cause; the server's own is ``FieldValueInvalid``.
        field_path: The field that is told to be wrong, by its path from where the rule stands: ``.minReplicas``.
        optional_old_self: Evaluate a rule that names ``oldSelf`` on creation too; ``oldSelf`` then is an optional.
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
        """The rule as an entry of ``x-kubernetes-validations``."""
        found: Object = {"rule": self.expression}
        for name, value in (
            ("message", self.message),
            ("messageExpression", self.message_expression),
            ("reason", self.reason),
            ("fieldPath", self.field_path),
            ("optionalOldSelf", self.optional_old_self),
        ):
            if value:
                found[name] = value
        return found


def rules(*listed: CelRule) -> msgspec.Meta:
    """What the server checks on each write of the field that is ``Annotated`` with it."""
    return msgspec.Meta(extra_json_schema={"x-kubernetes-validations": [rule.to_manifest() for rule in listed]})


def class_rules(*listed: CelRule) -> Callable[[type[T]], type[T]]:
    """What the server checks wherever the class is the type of a field; a decorator, also inherited.

    ::

        @class_rules(Rule("self.minReplicas <= self.maxReplicas", "the minimum is above the maximum"))
        @dataclass
        class Scaling: ...
    """

    def declare(cls: type[T]) -> type[T]:
        setattr(cls, _ATTRIBUTE, listed)
        return cls

    return declare


def list_class_rules(cls: type[Any]) -> list[Object]:
    """The class's own rules as the schema has them."""
    return [rule.to_manifest() for rule in getattr(cls, _ATTRIBUTE, ())]


def immutable(message: str = "is immutable") -> msgspec.Meta:
    """A field that keeps the value with which it came to be.

    An optional field may still be set later, or taken away: the server compares two values, and there is only one. To
    forbid that too, put a rule on the class around it: ``has(self.field) == has(oldSelf.field)``.
    """
    return rules(CelRule("self == oldSelf", message))


def list_map(*keys: str) -> msgspec.Meta:
    """A list whose items are told apart by these JSON fields, so that two appliers can each own their items.

    Each key is a required scalar field of the item, or one with a default.
    """
    return msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def atomic() -> msgspec.Meta:
    """A list, mapping or object that one applier owns and replaces as a whole.

    Lists are so unless they are a set or a `list_map`; it is worth saying where a later change must not go unnoticed.
    """
    return msgspec.Meta(extra_json_schema={ATOMIC: True})


def embedded_resource() -> msgspec.Meta:
    """A ``dict[str, Any]`` that holds a whole object of any kind: the server checks apiVersion, kind and metadata."""
    return msgspec.Meta(extra_json_schema={"x-kubernetes-embedded-resource": True})


def validate_rule(rule: Object) -> list[str]:
    """What the server would refuse of a rule before it reads the expression, one sentence each."""
    expression = rule.get("rule", "")
    mistakes = []
    if not expression.strip():
        mistakes.append("a rule has no expression")
    if "\n" in expression and not rule.get("message"):
        mistakes.append("a rule over several lines needs a message: the server would not show the expression")
    if "\n" in rule.get("message", "") or "\n" in rule.get("messageExpression", ""):
        mistakes.append(f"the message of a rule is one line: {rule['rule']}")
    return mistakes
