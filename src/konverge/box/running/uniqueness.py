"""Whether another custom resource has a value: who came first keeps it.

The index is over canonical objects, so that what `normalize` makes equal is equal here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from konverge.box.expressions import Absent, Environment, Sensitive
from konverge.box.expressions.functions.choices import is_empty
from konverge.box.running.pipeline import Pipeline
from konverge.box.steps import Reader, scope_of
from konverge.box.steps.paths import keys_of, value_at
from konverge.errors import KonvergeError
from konverge.kube import Object

__all__ = ["index_name", "index_values", "is_first", "uniqueness_in", "value_key"]

_LONGEST = 200


def index_name(path: str) -> str:
    """The index of the values of a field."""
    return f"konverge.dev/unique/{path}"


def value_key(value: Any) -> str:
    """A value as an index has it."""
    text = json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= _LONGEST else hashlib.sha256(text.encode()).hexdigest()


def index_values(pipeline: Callable[[], Pipeline], path: str) -> Callable[[Object], list[str]]:
    """The function of an index: under which value a custom resource is found.

    One whose canonical form cannot be made, or depends on the time, is found under the value that it has as it is.
    """
    keys = keys_of(path)

    def values_of(obj: Object) -> list[str]:
        with suppress(KonvergeError):  # its own pass says so
            obj = pipeline().canonical(scope_of(obj, Environment()), obj)
        value = value_at(obj, keys)
        return [] if isinstance(value, Absent | Sensitive) or is_empty(value) else [value_key(value)]

    return values_of


def is_first(owner: Object, others: Iterable[Object]) -> bool:
    """Tell whether none of the others is older: of the same second, the UID decides."""
    return all(_age(owner) <= _age(other) for other in others if other["metadata"]["uid"] != owner["metadata"]["uid"])


async def uniqueness_in(cluster: Reader, pipeline: Pipeline, owner: Object) -> Callable[[str, Any], bool]:
    """As `BoxRun.is_unique`, where no process has an index.

    Args:
        cluster: Read once.
        pipeline: The steps of the custom resource.
        owner: Who asks.
    """
    paths = pipeline.validation.unique_fields
    others = await cluster.list(pipeline.gvk) if paths else []

    def check(path: str, value: Any) -> bool:
        values_of = index_values(lambda: pipeline, path)
        return is_first(owner, [each for each in others if value_key(value) in values_of(each)])

    return check


def _age(obj: Object) -> tuple[str, str]:
    return str(obj["metadata"].get("creationTimestamp") or ""), str(obj["metadata"]["uid"])
