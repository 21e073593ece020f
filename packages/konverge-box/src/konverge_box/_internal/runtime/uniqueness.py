"""Unique field values: the oldest custom resource keeps a value.

The index contains canonical objects, so that values that `normalize` makes equal are equal here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from konverge._internal.kube import Object
from konverge.errors import KonvergeError
from konverge_box._internal.expressions import Absent, EvaluationEnvironment, Sensitive
from konverge_box._internal.expressions.functions.choices import is_empty
from konverge_box._internal.runtime.pipeline import Pipeline
from konverge_box._internal.steps import ObjectReader, build_scope
from konverge_box._internal.steps.object_paths import get_value, split_path

__all__ = [
    "build_cluster_uniqueness_check",
    "build_index_function",
    "format_index_key",
    "format_index_name",
    "is_oldest",
]

_MAX_KEY_LENGTH = 200


def format_index_name(path: str) -> str:
    """Return the name of the index over the values of a field."""
    return f"konverge.dev/unique/{path}"


def format_index_key(value: Any) -> str:
    """Return the key of a value in an index."""
    text = json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= _MAX_KEY_LENGTH else hashlib.sha256(text.encode()).hexdigest()


def build_index_function(pipeline: Callable[[], Pipeline], path: str) -> Callable[[Object], list[str]]:
    """Return the function of an index over a field's values.

    An object whose canonical form cannot be computed, or depends on the time, is indexed under its stored value.
    """
    keys = split_path(path)

    def list_values(obj: Object) -> list[str]:
        with suppress(KonvergeError):  # the reconcile of the object reports it
            obj = pipeline().build_canonical(build_scope(obj, EvaluationEnvironment()), obj)
        value = get_value(obj, keys)
        return [] if isinstance(value, Absent | Sensitive) or is_empty(value) else [format_index_key(value)]

    return list_values


def is_oldest(owner: Object, others: Iterable[Object]) -> bool:
    """Tell whether none of the others is older. Within the same second, the UID decides."""
    return all(
        _get_age(owner) <= _get_age(other) for other in others if other["metadata"]["uid"] != owner["metadata"]["uid"]
    )


async def build_cluster_uniqueness_check(
    cluster: ObjectReader, pipeline: Pipeline, owner: Object
) -> Callable[[str, Any], bool]:
    """Return the uniqueness check of a dry run, where no process has an index: it lists the objects once.

    Args:
        cluster: The cluster that is read.
        pipeline: The steps of the custom resource.
        owner: The custom resource that is checked.
    """
    paths = pipeline.validation.unique_fields
    others = await cluster.list(pipeline.gvk) if paths else []

    def check(path: str, value: Any) -> bool:
        values_of = build_index_function(lambda: pipeline, path)
        return is_oldest(owner, [other for other in others if format_index_key(value) in values_of(other)])

    return check


def _get_age(obj: Object) -> tuple[str, str]:
    return str(obj["metadata"].get("creationTimestamp") or ""), str(obj["metadata"]["uid"])
