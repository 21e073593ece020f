"""Which fields of an object a function reads: the object is handed to it in a disguise that takes note.

The disguise is made of real ``dict`` and ``list`` objects, so that an author's function can do with it what it does
with any object. What reads past Python (an encoder in C) is not noticed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from konverge.apply import HIDDEN
from konverge.component.dry_run.report import FieldRead, truncate_value
from konverge.kube import Object
from konverge.kube.secret_redaction import SECRET_FIELDS
from konverge.kube.secret_values import SecretValues

__all__ = ["FieldReadRecorder"]

_Path: TypeAlias = tuple[str, ...]

_MAX_READS = 50
_NOTHING: Any = object()


class FieldReadRecorder:
    """What is read of one object.

    Args:
        is_secret: The object is a Secret, whose values are hidden.
        secrets: What is not shown of any object: controllers repeat it in a status.
    """

    def __init__(self, *, is_secret: bool, secrets: SecretValues) -> None:
        self._is_secret = is_secret
        self._secrets = secrets
        self._found: dict[_Path, Any] = {}

    def wrap_object(self, obj: Object) -> Object:
        """The object in disguise. What is written to it does not reach the object's own top level."""
        return _RecordingDict(obj, self, ())

    def record_read(self, path: _Path, value: Any) -> Any:
        """Take note of a field, and disguise what is in it."""
        self._found.setdefault(path, value)
        if isinstance(value, dict):
            return _RecordingDict(value, self, path)
        if isinstance(value, list):
            return _RecordingList(value, self, path)
        return value

    def list_reads(self) -> tuple[FieldRead, ...]:
        """What was read, in order: values, and of lists and mappings those of which nothing else was read."""
        parents = {path[:length] for path in self._found for length in range(1, len(path))}
        told = [(path, value) for path, value in self._found.items() if path not in parents]
        return tuple(self._build_read(path, value) for path, value in told[:_MAX_READS])

    def _build_read(self, path: _Path, value: Any) -> FieldRead:
        name = path[0] + "".join(part if part.startswith("[") else f".{part}" for part in path[1:])
        if value is _NOTHING:
            return FieldRead(name, None, is_present=False)
        if isinstance(value, dict):
            return FieldRead(name, f"{len(value)} fields")
        if isinstance(value, list):
            labels = ", ".join(_format_item_label(value, place) for place in range(min(len(value), 10)))
            return FieldRead(name, f"[{self._secrets.hide(labels)}]")
        if self._is_secret and path[0] in SECRET_FIELDS:
            return FieldRead(name, HIDDEN)
        return FieldRead(name, truncate_value(self._secrets.hide(value) if isinstance(value, str) else value))


class _RecordingDict(dict[str, Any]):
    """A mapping whose readers are noted."""

    __slots__ = ("_named_by", "_path", "_readings")

    def __init__(self, fields: Mapping[str, Any], readings: FieldReadRecorder, path: _Path, named_by: str = "") -> None:
        super().__init__(fields)
        self._readings = readings
        self._path = path
        self._named_by = named_by

    def _record_field(self, name: str, value: Any) -> Any:
        # By which field an item of a list is told from others is in its path already.
        if name == self._named_by or not isinstance(name, str):
            return value
        return self._readings.record_read((*self._path, name), value)

    def __getitem__(self, name: str) -> Any:
        return self._record_field(name, super().__getitem__(name))

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        self._record_field(str(name), _NOTHING)
        return False

    def get(self, name: str, default: Any = None) -> Any:
        """The field, or the default."""
        value = super().get(name, _NOTHING)
        found = self._record_field(name, value)
        return default if value is _NOTHING else found

    def values(self) -> Any:
        """The values of all fields."""
        return [self[name] for name in self]

    def items(self) -> Any:
        """All fields."""
        return [(name, self[name]) for name in self]

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(super().items()), memo)


class _RecordingList(list[Any]):
    """A list whose readers are noted."""

    __slots__ = ("_path", "_readings")

    def __init__(self, items: list[Any], readings: FieldReadRecorder, path: _Path) -> None:
        super().__init__(items)
        self._readings = readings
        self._path = path

    def _record_item(self, place: int) -> Any:
        value = super().__getitem__(place)
        path = (*self._path, f"[{_format_item_label(self, place)}]")
        if isinstance(value, dict):
            return _RecordingDict(value, self._readings, path, _find_name_field(value))
        return self._readings.record_read(path, value)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self._record_item(each) for each in range(*place.indices(len(self)))]
        return self._record_item(range(len(self))[place])

    def __iter__(self) -> Iterator[Any]:
        return (self._record_item(place) for place in range(len(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return copy.deepcopy([super(_RecordingList, self).__getitem__(place) for place in range(len(self))], memo)


def _find_name_field(item: Mapping[str, Any]) -> str:
    """The field that names an item: the type of a condition, the name of a container; empty when it has none."""
    return next((name for name in ("type", "name") if isinstance(item.get(name), str)), "")


def _format_item_label(items: list[Any], place: int) -> str:
    item = list.__getitem__(items, place)  # as it is, without a note
    name = _find_name_field(item) if isinstance(item, dict) else ""
    return str(item[name]) if name else str(place)
