"""Validation of the arguments of a primitive, without a cluster.

Each error is one sentence. No error quotes a value of the object other than its kind, name and namespace.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any

from konverge._internal.kube import GroupVersionKind, ObjectKey
from konverge._internal.kube.secret_redaction import SECRET_FIELDS
from konverge._internal.mutation import Mutation
from konverge._internal.primitives.data_cells import Data
from konverge._internal.primitives.field_access import read_entries, read_text

__all__ = [
    "read_cells",
    "read_fields",
    "read_key",
    "read_kind",
    "validate_function",
    "validate_identity",
    "validate_mutations",
    "validate_options",
    "validate_secret_values",
]


def read_fields(obj: object) -> tuple[Mapping[str, Any], list[str]]:
    """Return the object's fields, and the errors that concern the object as a whole."""
    if obj is None:
        return {}, ["expected an object, found None"]
    to_dict = getattr(obj, "to_dict", None)
    fields: object = to_dict() if callable(to_dict) else obj
    if not isinstance(fields, Mapping):
        return {}, [f"expected a mapping or an object with to_dict(), found {type(obj).__name__}"]
    if "api_version" in fields:
        return {}, [
            "field names: expected those of the API (apiVersion), found those of Python (api_version); with the "
            "kubernetes client, pass ApiClient().sanitize_for_serialization(obj)"
        ]
    return fields, []


def read_kind(fields: Mapping[str, Any]) -> GroupVersionKind:
    """Return the object's apiVersion and kind; all parts are empty if one is missing."""
    try:
        return GroupVersionKind.of(fields)
    except ValueError:
        return GroupVersionKind("", "", "")


def read_key(fields: Mapping[str, Any]) -> ObjectKey:
    """Return the object's namespace and name; a part that is missing or not a string is empty."""
    return ObjectKey(read_text(fields, "metadata", "namespace"), read_text(fields, "metadata", "name"))


def validate_identity(
    fields: Mapping[str, Any], gvk: GroupVersionKind, key: ObjectKey, *, is_cluster_scoped: bool, is_scope_given: bool
) -> Iterator[str]:
    """Yield an error for a wrong apiVersion or kind, and for a name or namespace that does not fit the kind's scope.

    Args:
        fields: The object.
        gvk: The kind.
        key: The object's namespace and name.
        is_cluster_scoped: True if the kind is cluster-scoped.
        is_scope_given: True if the scope comes from the argument ``cluster_scoped``, which konverge cannot verify.
    """
    if not gvk.kind:
        yield "apiVersion, kind: expected two non-empty strings, found none"
    else:
        for field, expected in (("apiVersion", gvk.api_version), ("kind", gvk.kind)):
            value = fields.get(field)
            if value is not None and value != expected:
                yield f"{field}: expected {expected!r}, found {value!r}"
    kind = gvk.kind or "object"
    if not key.name:
        yield "metadata.name: expected the object's name, found none"
    if is_cluster_scoped and key.namespace:
        yield f"metadata.namespace: expected none for a cluster-scoped {kind}, found {key.namespace!r}"
    if not is_cluster_scoped and not key.namespace:
        remedy = f"; if {kind} is a cluster-scoped kind, pass cluster_scoped=True" if is_scope_given else ""
        yield f"metadata.namespace: expected a namespace for a {kind}, found none{remedy}"


def validate_secret_values(obj: Mapping[str, Any]) -> Iterator[str]:
    """Yield an error for each value of a Secret with a wrong type, by its key.

    The error of the API server would quote the value.
    """
    for field in SECRET_FIELDS:
        entries = obj.get(field)
        if not isinstance(entries, Mapping | None):
            yield f"{field}: expected a mapping, found {type(entries).__name__}"
        for key, value in read_entries(obj, field):
            if not isinstance(value, str | None):
                yield f"{field}[{key!r}]: expected a string, found {type(value).__name__}"


def validate_mutations(mutations: Iterable[object]) -> Iterator[str]:
    """Yield an error for each item that is not a mutation with a unique name, a function and a valid gate."""
    names: set[str] = set()
    for mutation in mutations:
        if not isinstance(mutation, Mutation):
            yield f"mutations: expected a Mutation, found {type(mutation).__name__}"
            continue
        if not mutation.name:
            yield "mutations: expected a name for each mutation, found an empty one; golden files and errors contain it"
        elif mutation.name in names:
            yield (
                f"mutations: expected unique names, found {mutation.name!r} twice; golden files and errors contain "
                "the name"
            )
        names.add(mutation.name)
        yield from validate_function(f"mutation {mutation.name!r}: mutate", mutation.mutate)
        if mutation.gate is not None and not callable(getattr(mutation.gate, "enabled", None)):
            yield (
                f"mutation {mutation.name!r}: gate: expected an object with enabled(), "
                f"found {type(mutation.gate).__name__}"
            )


def read_cells(name: str, given: object) -> tuple[tuple[Data[Any], ...], list[str]]:
    """Return the distinct data cells of this argument, one or several, and an error for each other value."""
    values = [*given] if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    cells = dict.fromkeys(value for value in values if isinstance(value, Data))
    errors = [f"{name}: expected Data, found {type(value).__name__}" for value in values if not isinstance(value, Data)]
    return tuple(cells), errors


def validate_options(recreate: object, metrics_identifier: object) -> Iterator[str]:
    """Yield an error for each of these options with a wrong type."""
    if not isinstance(recreate, bool):
        yield f"recreate: expected a bool, found {type(recreate).__name__}"
    if metrics_identifier is not None and not (isinstance(metrics_identifier, str) and metrics_identifier.strip()):
        yield f"metrics_identifier: expected a name that is the same for all owners, found {metrics_identifier!r}"


def validate_function(name: str, function: object) -> Iterator[str]:
    """Yield an error unless this is a plain function: a coroutine function returns a coroutine, which is truthy."""
    if not callable(function):
        yield f"{name}: expected a function, found {type(function).__name__}"
    elif _is_coroutine_function(function):
        yield f"{name}: expected a plain function, found a coroutine function; it runs in a reconcile and cannot await"


def _is_coroutine_function(function: object) -> bool:
    # Most functions are written with def: their flags are enough, and `inspect` takes ten times as long.
    if isinstance(function, FunctionType):
        return bool(function.__code__.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(function)
