"""The API server's changes to a custom resource before it is stored: removal of meaningless nulls, and defaults.

The rules are those of structural schemas (apiextensions/v1).
"""

from __future__ import annotations

import copy
from typing import Any

from konverge._internal.apply.round_trip import round_trip_value
from konverge._internal.apply.schema import ABSENT, OBJECT_META, Schema

__all__ = ["remove_meaningless_nulls", "with_schema_defaults"]


def remove_meaningless_nulls(value: Any, schema: Schema) -> Any:
    """Return a new value without nulls in fields that are not nullable and have no default.

    The server does this with the body of a request, but not with the result of an apply: validation rejects nulls
    there.
    """
    if isinstance(value, dict):
        kept = {}
        for name, field in value.items():
            child = schema.find_child(name)
            if field is None and child is not None and child.type and not child.nullable and child.default is ABSENT:
                continue
            kept[name] = field if child is None else remove_meaningless_nulls(field, child)
        return kept
    if isinstance(value, list) and schema.items is not None:
        items = schema.items
        return [remove_meaningless_nulls(item, items) for item in value]
    return value


def with_schema_defaults(value: Any, schema: Schema) -> Any:
    """Return a new value with the defaults of its schema, outer values first, so that a default may contain others.

    A null counts as absent if the schema has a default and is not nullable. ``metadata`` has the server's own type, in
    embedded objects too.
    """
    if schema.name == OBJECT_META:
        return round_trip_value(value, schema)
    if isinstance(value, dict):
        fields = dict(value)
        for name, child in schema.properties.items():
            if child.default is not ABSENT and (name not in fields or (fields[name] is None and not child.nullable)):
                fields[name] = copy.deepcopy(child.default)
        for name, field in fields.items():
            below = schema.find_child(name)
            if below is not None:
                fields[name] = with_schema_defaults(field, below)
        return fields
    if isinstance(value, list) and schema.items is not None:
        items = schema.items
        return [with_schema_defaults(item, items) for item in value]
    return value
