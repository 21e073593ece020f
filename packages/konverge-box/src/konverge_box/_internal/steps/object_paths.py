"""Reading, setting and removing fields by their dotted path, without changing the given object.

Only the parents of a field are copied. The old and the new object share all other parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from konverge._internal.kube import Object
from konverge_box._internal.expressions import Absent
from konverge_box._internal.expressions.values import describe_value_type
from konverge_box._internal.steps.errors import StepError

__all__ = ["Keys", "get_value", "remove_value", "split_path", "with_value"]

Keys: TypeAlias = tuple[str, ...]

_PATH = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
# Keys of labels and annotations contain dots and slashes, and have no fields below them.
_FLAT = re.compile(r"metadata\.(labels|annotations)\.([A-Za-z0-9][\w./-]*)")
_MAX_PATH_LENGTH = 80


def split_path(path: str) -> Keys:
    """Split a path into its keys. Everything after ``metadata.labels.`` or ``metadata.annotations.`` is one key.

    Raises:
        ValueError: The path is invalid. The message describes the expected form.
    """
    plain = path.strip().removeprefix(".")
    flat = _FLAT.fullmatch(plain)
    if flat is not None:
        return "metadata", flat[1], flat[2]
    if _PATH.fullmatch(plain) is None:
        raise ValueError(f"expected a path of field names such as spec.schedule, found {path[:_MAX_PATH_LENGTH]!r}")
    return tuple(plain.split("."))


def get_value(obj: Mapping[str, Any], keys: Keys) -> Any:
    """Return the value of a field; an `Absent` for an absent one."""
    value: Any = obj
    for number, key in enumerate(keys):
        if not isinstance(value, Mapping) or key not in value:
            return Absent(".".join(keys), ".".join(keys[: number + 1]), value)
        value = value[key]
    return value


def with_value(obj: Mapping[str, Any], keys: Keys, value: Any, where: str) -> Object:
    """Return the object with this value in that field. Parents that are absent or null are created.

    Args:
        obj: The object, which is not changed.
        keys: The path of the field.
        value: The new value.
        where: The path of the declaration in the file.

    Raises:
        StepError: A parent of the field is not a mapping.
    """
    changed = dict(obj)
    inner = changed
    for number, key in enumerate(keys[:-1]):
        below = inner.get(key)
        if below is not None and not isinstance(below, Mapping):
            path, at = ".".join(keys), ".".join(keys[: number + 1])
            raise StepError(
                where, f"{path} cannot be set: expected a mapping at {at}, found {describe_value_type(below)}"
            )
        inner[key] = dict(below or {})
        inner = inner[key]
    inner[keys[-1]] = value
    return changed


def remove_value(obj: Mapping[str, Any], keys: Keys) -> Object:
    """Return the object without that field. Its parents stay, also if they become empty."""
    changed = dict(obj)
    if isinstance(get_value(obj, keys), Absent):
        return changed
    inner = changed
    for key in keys[:-1]:
        inner[key] = dict(inner[key])
        inner = inner[key]
    del inner[keys[-1]]
    return changed
