"""What the API server does to a custom resource before it stores it: nulls that mean nothing, and defaults.

The rules are those of structural schemas (apiextensions/v1).
"""

from __future__ import annotations

import copy
from typing import Any

from konverge.apply.round_trip import round_trip_value
from konverge.apply.schema import ABSENT, OBJECT_META, Schema

__all__ = ["remove_meaningless_nulls", "with_schema_defaults"]


def remove_meaningless_nulls(value: Any, schema: Schema) -> Any:
    """A new value without the nulls of fields that may not be null and have no default.

    The server does so with the body of a request, but not with what an apply merges: there validation refuses them.
    """
    if isinstance(value, dict):
        kept = {}
        for name, each in value.items():
            child = schema.find_child(name)
            if each is None and child is not None and child.type and not child.nullable and child.default is ABSENT:
                continue
            kept[name] = each if child is None else remove_meaningless_nulls(each, child)
        return kept
    if isinstance(value, list) and schema.items is not None:
        items = schema.items
        return [remove_meaningless_nulls(each, items) for each in value]
    return value


def with_schema_defaults(value: Any, schema: Schema) -> Any:
    """A new value with the defaults of its schema, from the outside in, so that a default may hold others.

    A null where the schema has a default and allows no null counts as absent. ``metadata`` is of the server's own type
    here too, and of embedded objects as well.
    """
    if schema.name == OBJECT_META:
        return round_trip_value(value, schema)
    if isinstance(value, dict):
        found = dict(value)
        for name, child in schema.properties.items():
            if child.default is not ABSENT and (name not in found or (found[name] is None and not child.nullable)):
                found[name] = copy.deepcopy(child.default)
        for name, each in found.items():
            below = schema.find_child(name)
            if below is not None:
                found[name] = with_schema_defaults(each, below)
        return found
    if isinstance(value, list) and schema.items is not None:
        items = schema.items
        return [with_schema_defaults(each, items) for each in value]
    return value
