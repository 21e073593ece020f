"""Fields by their dotted path: found, set and left out, without ever changing the object that was given.

Only the mappings on the way to a field are copied; what is beside them is shared between the old object and the new.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from konverge.kube import Object
from konverge_box.expressions import Absent
from konverge_box.expressions.values import describe_value_type
from konverge_box.steps.errors import StepError

__all__ = ["Keys", "get_value", "remove_value", "split_path", "with_value"]

Keys: TypeAlias = tuple[str, ...]

_PATH = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
# Their keys have dots and slashes, and nothing is below them.
_FLAT = re.compile(r"metadata\.(labels|annotations)\.([A-Za-z0-9][\w./-]*)")
_MAX_PATH_LENGTH = 80


def split_path(path: str) -> Keys:
    """The keys that a path goes through; all behind ``metadata.labels.`` or ``metadata.annotations.`` is one key.

    Raises:
        ValueError: It is no path, which loading refuses; the message says what was expected.
    """
    plain = path.strip().removeprefix(".")
    flat = _FLAT.fullmatch(plain)
    if flat is not None:
        return "metadata", flat[1], flat[2]
    if _PATH.fullmatch(plain) is None:
        raise ValueError(f"expected a path of field names such as spec.schedule, found {path[:_MAX_PATH_LENGTH]!r}")
    return tuple(plain.split("."))


def get_value(obj: Mapping[str, Any], keys: Keys) -> Any:
    """The value of a field, or an `Absent`."""
    value: Any = obj
    for number, key in enumerate(keys):
        if not isinstance(value, Mapping) or key not in value:
            return Absent(".".join(keys), ".".join(keys[: number + 1]), value)
        value = value[key]
    return value


def with_value(obj: Mapping[str, Any], keys: Keys, value: Any, where: str) -> Object:
    """The object with this value in that field; mappings on the way that are absent or null are made.

    Args:
        obj: It stays as it is.
        keys: The way to the field.
        value: What it shall have.
        where: Who sets it, as a path in the file.

    Raises:
        StepError: Something on the way is no mapping.
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
    """The object without that field; the mappings on the way stay, even empty."""
    changed = dict(obj)
    if isinstance(get_value(obj, keys), Absent):
        return changed
    inner = changed
    for key in keys[:-1]:
        inner[key] = dict(inner[key])
        inner = inner[key]
    del inner[keys[-1]]
    return changed
