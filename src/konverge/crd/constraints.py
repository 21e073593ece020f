"""What a type hint alone cannot say about a field: CEL rules and the keys of a list.

Both are `msgspec.Meta` values for `typing.Annotated`, beside msgspec's own constraints (``ge``, ``max_length``,
``pattern``, ``description`` ...), which become their counterparts of the schema.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

__all__ = ["Rule", "list_map", "rules"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL expression that the server evaluates on each write; `message` is what the user reads when it is false.

    ``self`` is the field's value, ``oldSelf`` the stored one: ``Rule("self == oldSelf", "is immutable")``.
    """

    expression: str
    message: str


def rules(*listed: Rule) -> msgspec.Meta:
    """What the server checks on each write of the field that is ``Annotated`` with it."""
    return msgspec.Meta(
        extra_json_schema={
            "x-kubernetes-validations": [{"rule": rule.expression, "message": rule.message} for rule in listed]
        }
    )


def list_map(*keys: str) -> msgspec.Meta:
    """A list whose items are told apart by these JSON fields, so that two appliers can each own their items.

    Each key is a required scalar field of the item, or one with a default.
    """
    return msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})
