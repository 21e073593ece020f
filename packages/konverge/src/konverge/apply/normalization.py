"""The server's form of an object: what its fields read once the server has stored them."""

from __future__ import annotations

from typing import Any

from konverge.apply.builtin_defaults import with_builtin_defaults
from konverge.apply.builtin_schemas import find_builtin_schema
from konverge.apply.schema import Schema
from konverge.apply.structural_schema import with_schema_defaults
from konverge.apply.typed_values import is_granular
from konverge.kube import GroupVersionKind, Object

__all__ = ["normalize", "to_stored_form"]


def to_stored_form(obj: Object, schema: Schema) -> Object:
    """The object with everything that the server fills in by itself: of a custom resource, its schema's defaults."""
    if find_builtin_schema(GroupVersionKind.of(obj)) is not None:
        return with_builtin_defaults(obj)
    filled: Object = with_schema_defaults(obj, schema)
    return filled


def normalize(desired: Object, schema: Schema | None = None) -> Object:
    """Put a desired object in the server's form, without adding fields to it.

    Quantities and times get their one spelling, ``stringData`` goes into ``data``, an explicit null becomes the
    default that it asks for, and a value that merges as a whole gets the defaults inside it, since it is compared as
    a whole. Mappings and lists that merge by field or item keep exactly the fields and items that they had.

    Args:
        desired: The object; not changed.
        schema: Its schema; None for that of the built-in kind. Without either the object comes back as it is.
    """
    schema = schema or find_builtin_schema(GroupVersionKind.of(desired))
    if schema is None:
        return desired
    form = to_stored_form(desired, schema)
    if "stringData" in desired and desired.get("kind") == "Secret" and desired.get("apiVersion") == "v1":
        desired = {name: value for name, value in desired.items() if name != "stringData"}
        desired["data"] = form.get("data", {})
    projected: Object = _project(desired, form, schema)
    return projected


def _project(desired: Any, form: Any, schema: Schema) -> Any:
    """The form, cut down to the fields that desired has."""
    if not is_granular(schema, desired) or type(desired) is not type(form):
        return form
    if isinstance(desired, dict):
        return {name: _project_field(name, value, form, schema) for name, value in desired.items()}
    items = schema.items
    if items is None or len(desired) != len(form):
        return form
    return [_project(each, stored, items) for each, stored in zip(desired, form, strict=True)]


def _project_field(name: str, value: Any, form: dict[str, Any], schema: Schema) -> Any:
    if name not in form:
        return value  # A zero that the server does not tell from absence; it is owned all the same.
    child = schema.find_child(name)
    return form[name] if child is None else _project(value, form[name], child)
