"""What can be wrong with what an author gives a primitive, found without a cluster.

Each mistake is a sentence; none quotes a value of the object beyond its kind, name and namespace.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any

from konverge.kube import GroupVersionKind, ObjectKey
from konverge.kube.secret_redaction import SECRET_FIELDS
from konverge.mutation import Mutation
from konverge.primitives.data_cells import Data
from konverge.primitives.field_access import read_entries, read_text

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
    """The object's fields, or what is wrong with it as a whole."""
    if obj is None:
        return {}, ["the object is missing (None)"]
    to_dict = getattr(obj, "to_dict", None)
    found: object = to_dict() if callable(to_dict) else obj
    if not isinstance(found, Mapping):
        return {}, [f"expected a mapping or something with to_dict(), found {type(obj).__name__}"]
    if "api_version" in found:
        return {}, [
            "its fields are in Python's spelling (api_version), expected the API's (apiVersion): with the kubernetes "
            "client, pass ApiClient().sanitize_for_serialization(obj)"
        ]
    return found, []


def read_kind(fields: Mapping[str, Any]) -> GroupVersionKind:
    """The kind that the object says it is of, all empty when it does not say."""
    try:
        return GroupVersionKind.of(fields)
    except ValueError:
        return GroupVersionKind("", "", "")


def read_key(fields: Mapping[str, Any]) -> ObjectKey:
    """The object's namespace and name; a part that is missing or no text is empty."""
    return ObjectKey(read_text(fields, "metadata", "namespace"), read_text(fields, "metadata", "name"))


def validate_identity(
    fields: Mapping[str, Any], gvk: GroupVersionKind, key: ObjectKey, *, is_cluster_scoped: bool, is_scope_given: bool
) -> Iterator[str]:
    """Whether the object is of the kind, and named as the kind's scope wants it.

    Args:
        fields: The object.
        gvk: The kind.
        key: The object's namespace and name.
        is_cluster_scoped: The kind has no namespaces.
        is_scope_given: The author says so with ``cluster_scoped``; nobody knows whether it is true of the kind.
    """
    if not gvk.kind:
        yield "apiVersion and kind are missing: expected both, as text"
    else:
        for field, expected in (("apiVersion", gvk.api_version), ("kind", gvk.kind)):
            found = fields.get(field)
            if found is not None and found != expected:
                yield f"{field} is {found!r}, expected {expected!r}"
    kind = gvk.kind or "object"
    if not key.name:
        yield "metadata.name is empty: expected the object's name"
    if is_cluster_scoped and key.namespace:
        yield f"metadata.namespace is {key.namespace!r}: a cluster-scoped {kind} has none"
    if not is_cluster_scoped and not key.namespace:
        wanted = f"a {kind} lives in a namespace"
        if is_scope_given:
            wanted = f"expected a namespace, or cluster_scoped=True if the kind {kind} has none"
        yield f"metadata.namespace is empty: {wanted}"


def validate_secret_values(obj: Mapping[str, Any]) -> Iterator[str]:
    """What of a Secret's values is of the wrong type, by key: the API server's own refusal would quote the value."""
    for field in SECRET_FIELDS:
        found = obj.get(field)
        if not isinstance(found, Mapping | None):
            yield f"{field}: expected a mapping, found {type(found).__name__}"
        for key, value in read_entries(obj, field):
            if not isinstance(value, str | None):
                yield f"{field}[{key!r}]: expected text, found {type(value).__name__}"


def validate_mutations(mutations: Iterable[object]) -> Iterator[str]:
    """Whether they are mutations, each with a name of its own, a function and a gate."""
    names: set[str] = set()
    for mutation in mutations:
        if not isinstance(mutation, Mutation):
            yield f"mutations: expected a Mutation, found {type(mutation).__name__}"
            continue
        if not mutation.name:
            yield "a mutation has no name: golden files and errors refer to it"
        elif mutation.name in names:
            yield f"two mutations are named {mutation.name!r}: golden files and errors refer to the name"
        names.add(mutation.name)
        yield from validate_function(f"mutation {mutation.name!r}: mutate", mutation.mutate)
        if mutation.gate is not None and not callable(getattr(mutation.gate, "enabled", None)):
            yield f"mutation {mutation.name!r}: its gate has no enabled(), found {type(mutation.gate).__name__}"


def read_cells(name: str, given: object) -> tuple[tuple[Data[Any], ...], list[str]]:
    """The data cells given under that name, one or many, each once; and what is none."""
    listed = [*given] if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    cells = dict.fromkeys(found for found in listed if isinstance(found, Data))
    mistakes = [
        f"{name}: expected Data, found {type(found).__name__}" for found in listed if not isinstance(found, Data)
    ]
    return tuple(cells), mistakes


def validate_options(recreate: object, metrics_identifier: object) -> Iterator[str]:
    """Whether the options that are no functions are of their type."""
    if not isinstance(recreate, bool):
        yield f"recreate: expected a bool, found {type(recreate).__name__}"
    if metrics_identifier is not None and not (isinstance(metrics_identifier, str) and metrics_identifier.strip()):
        yield f"metrics_identifier is {metrics_identifier!r}: expected a name that is the same for all owners"


def validate_function(name: str, function: object) -> Iterator[str]:
    """Whether it is a plain function: one that has to be awaited would answer a coroutine, which reads as true."""
    if not callable(function):
        yield f"{name}: expected a function, found {type(function).__name__}"
    elif _is_coroutine_function(function):
        yield f"{name} is a coroutine function: it runs inside a pass and cannot wait; expected a plain one"


def _is_coroutine_function(function: object) -> bool:
    # Nearly every one is written with def; of those the flags say it, and asking `inspect` costs ten times as much.
    if isinstance(function, FunctionType):
        return bool(function.__code__.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(function)
