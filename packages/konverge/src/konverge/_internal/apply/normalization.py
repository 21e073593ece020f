"""The form in which the server stores the fields of an object."""

from __future__ import annotations

from typing import Any

from konverge._internal.apply.builtin_defaults import with_builtin_defaults
from konverge._internal.apply.builtin_schemas import find_builtin_schema
from konverge._internal.apply.schema import Schema
from konverge._internal.apply.structural_schema import with_schema_defaults
from konverge._internal.apply.typed_values import is_granular
from konverge._internal.kube import GroupVersionKind, Object

__all__ = ["normalize", "to_stored_form"]


def to_stored_form(obj: Object, schema: Schema) -> Object:
    """Return the object with the server's defaults: for a custom resource, those of its schema."""
    if find_builtin_schema(GroupVersionKind.of(obj)) is not None:
        return with_builtin_defaults(obj)
    defaulted: Object = with_schema_defaults(obj, schema)
    return defaulted


def normalize(desired: Object, schema: Schema | None = None) -> Object:
    """Convert a desired object into the server's form, without adding fields to it.

    Quantities and times get their canonical form, ``stringData`` moves into ``data``, and an explicit null becomes the
    default. A value that merges as a whole gets the defaults inside it, because it is compared as a whole. Mappings and
    lists that merge by field or item keep exactly their fields and items.

    Args:
        desired: The object, which stays unchanged.
        schema: Its schema; None for that of the built-in kind. Without either the object is returned unchanged.
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
    """Reduce the form to the fields of the desired value."""
    if not is_granular(schema, desired) or type(desired) is not type(form):
        return form
    if isinstance(desired, dict):
        return {name: _project_field(name, value, form, schema) for name, value in desired.items()}
    items = schema.items
    if items is None or len(desired) != len(form):
        return form
    return [_project(item, stored, items) for item, stored in zip(desired, form, strict=True)]


def _project_field(name: str, value: Any, form: dict[str, Any], schema: Schema) -> Any:
    if name not in form:
        return (
            value  # A zero value that the server does not distinguish from absence; the manager owns it nevertheless.
        )
    child = schema.find_child(name)
    return form[name] if child is None else _project(value, form[name], child)
