"""Which fields of an object a function reads: the object is handed to it in a disguise that takes note.

The disguise is made of real ``dict`` and ``list`` objects, so that an author's function can do with it what it does
with any object. What reads past Python (an encoder in C) is not noticed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from konverge.apply import HIDDEN
from konverge.component.rehearsal.values import Reading, shortened
from konverge.kube import Object
from konverge.kube.secret_values import SecretValues
from konverge.kube.secrets import SECRET_FIELDS

__all__ = ["FieldReadings"]

_Path: TypeAlias = tuple[str, ...]

_MOST = 50
_NOTHING: Any = object()


class FieldReadings:
    """What is read of one object.

    Args:
        is_secret: The object is a Secret, whose values are hidden.
        secrets: What is not shown of any object: controllers repeat it in a status.
    """

    def __init__(self, *, is_secret: bool, secrets: SecretValues) -> None:
        self._is_secret = is_secret
        self._secrets = secrets
        self._found: dict[_Path, Any] = {}

    def of(self, obj: Object) -> Object:
        """The object in disguise. What is written to it does not reach the object's own top level."""
        return _Fields(obj, self, ())

    def note(self, path: _Path, value: Any) -> Any:
        """Take note of a field, and disguise what is in it."""
        self._found.setdefault(path, value)
        if isinstance(value, dict):
            return _Fields(value, self, path)
        if isinstance(value, list):
            return _Items(value, self, path)
        return value

    def all(self) -> tuple[Reading, ...]:
        """What was read, in order: values, and of lists and mappings those of which nothing else was read."""
        parents = {path[:length] for path in self._found for length in range(1, len(path))}
        told = [(path, value) for path, value in self._found.items() if path not in parents]
        return tuple(self._reading(path, value) for path, value in told[:_MOST])

    def _reading(self, path: _Path, value: Any) -> Reading:
        name = path[0] + "".join(part if part.startswith("[") else f".{part}" for part in path[1:])
        if value is _NOTHING:
            return Reading(name, None, is_present=False)
        if isinstance(value, dict):
            return Reading(name, f"{len(value)} fields")
        if isinstance(value, list):
            labels = ", ".join(_label(value, place) for place in range(min(len(value), 10)))
            return Reading(name, f"[{self._secrets.hide(labels)}]")
        if self._is_secret and path[0] in SECRET_FIELDS:
            return Reading(name, HIDDEN)
        return Reading(name, shortened(self._secrets.hide(value) if isinstance(value, str) else value))


class _Fields(dict[str, Any]):
    """A mapping whose readers are noted."""

    __slots__ = ("_named_by", "_path", "_readings")

    def __init__(self, fields: Mapping[str, Any], readings: FieldReadings, path: _Path, named_by: str = "") -> None:
        super().__init__(fields)
        self._readings = readings
        self._path = path
        self._named_by = named_by

    def _noted(self, name: str, value: Any) -> Any:
        # By which field an item of a list is told from others is in its path already.
        if name == self._named_by or not isinstance(name, str):
            return value
        return self._readings.note((*self._path, name), value)

    def __getitem__(self, name: str) -> Any:
        return self._noted(name, super().__getitem__(name))

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        self._noted(str(name), _NOTHING)
        return False

    def get(self, name: str, default: Any = None) -> Any:
        """The field, or the default."""
        value = super().get(name, _NOTHING)
        found = self._noted(name, value)
        return default if value is _NOTHING else found

    def values(self) -> Any:
        """The values of all fields."""
        return [self[name] for name in self]

    def items(self) -> Any:
        """All fields."""
        return [(name, self[name]) for name in self]

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(super().items()), memo)


class _Items(list[Any]):
    """A list whose readers are noted."""

    __slots__ = ("_path", "_readings")

    def __init__(self, items: list[Any], readings: FieldReadings, path: _Path) -> None:
        super().__init__(items)
        self._readings = readings
        self._path = path

    def _disguised(self, place: int) -> Any:
        value = super().__getitem__(place)
        path = (*self._path, f"[{_label(self, place)}]")
        if isinstance(value, dict):
            return _Fields(value, self._readings, path, _named_by(value))
        return self._readings.note(path, value)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self._disguised(each) for each in range(*place.indices(len(self)))]
        return self._disguised(range(len(self))[place])

    def __iter__(self) -> Iterator[Any]:
        return (self._disguised(place) for place in range(len(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return copy.deepcopy([super(_Items, self).__getitem__(place) for place in range(len(self))], memo)


def _named_by(item: Mapping[str, Any]) -> str:
    """The field that names an item: the type of a condition, the name of a container; empty when it has none."""
    return next((name for name in ("type", "name") if isinstance(item.get(name), str)), "")


def _label(items: list[Any], place: int) -> str:
    item = list.__getitem__(items, place)  # as it is, without a note
    name = _named_by(item) if isinstance(item, dict) else ""
    return str(item[name]) if name else str(place)
