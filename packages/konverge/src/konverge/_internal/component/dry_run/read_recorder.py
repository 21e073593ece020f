"""A recorder of the fields that a function reads: the function gets a wrapped object.

The wrapper consists of real ``dict`` and ``list`` objects, so that author functions can use it like any object. Reads
that bypass Python, such as those of an encoder in C, are not recorded.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from konverge._internal.apply import HIDDEN
from konverge._internal.component.dry_run.report import FieldRead, truncate_value
from konverge._internal.kube import Object
from konverge._internal.kube.secret_redaction import SECRET_FIELDS
from konverge._internal.kube.secret_values import SecretValues

__all__ = ["FieldReadRecorder"]

_Path: TypeAlias = tuple[str, ...]

_MAX_READS = 50
_NOTHING: Any = object()


class FieldReadRecorder:
    """The reads of one object.

    Args:
        is_secret: True for a Secret, whose values are hidden.
        secrets: The values that are hidden in any object, because controllers copy them into a status.
    """

    def __init__(self, *, is_secret: bool, secrets: SecretValues) -> None:
        self._is_secret = is_secret
        self._secrets = secrets
        self._reads: dict[_Path, Any] = {}

    def wrap_object(self, obj: Object) -> Object:
        """Wrap the object. A write to the top level of the wrapper does not change the object."""
        return _RecordingDict(obj, self, ())

    def record_read(self, path: _Path, value: Any) -> Any:
        """Record the read of a field, and wrap its value."""
        self._reads.setdefault(path, value)
        if isinstance(value, dict):
            return _RecordingDict(value, self, path)
        if isinstance(value, list):
            return _RecordingList(value, self, path)
        return value

    def list_reads(self) -> tuple[FieldRead, ...]:
        """List the reads in order: values, and lists and mappings without reads below them."""
        parents = {path[:length] for path in self._reads for length in range(1, len(path))}
        leaves = [(path, value) for path, value in self._reads.items() if path not in parents]
        return tuple(self._build_read(path, value) for path, value in leaves[:_MAX_READS])

    def _build_read(self, path: _Path, value: Any) -> FieldRead:
        name = path[0] + "".join(part if part.startswith("[") else f".{part}" for part in path[1:])
        if value is _NOTHING:
            return FieldRead(name, None, is_present=False)
        if isinstance(value, dict):
            return FieldRead(name, f"{len(value)} fields")
        if isinstance(value, list):
            labels = ", ".join(_format_item_label(value, position) for position in range(min(len(value), 10)))
            return FieldRead(name, f"[{self._secrets.hide(labels)}]")
        if self._is_secret and path[0] in SECRET_FIELDS:
            return FieldRead(name, HIDDEN)
        return FieldRead(name, truncate_value(self._secrets.hide(value) if isinstance(value, str) else value))


class _RecordingDict(dict[str, Any]):
    """A mapping that records its reads."""

    __slots__ = ("_named_by", "_path", "_readings")

    def __init__(self, fields: Mapping[str, Any], readings: FieldReadRecorder, path: _Path, named_by: str = "") -> None:
        super().__init__(fields)
        self._readings = readings
        self._path = path
        self._named_by = named_by

    def _record_field(self, name: str, value: Any) -> Any:
        # The path of a list item already contains the field that identifies the item.
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
        """Return the field, or the default."""
        value = super().get(name, _NOTHING)
        wrapped = self._record_field(name, value)
        return default if value is _NOTHING else wrapped

    def values(self) -> Any:
        """Return the values of all fields."""
        return [self[name] for name in self]

    def items(self) -> Any:
        """Return the names and values of all fields."""
        return [(name, self[name]) for name in self]

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(super().items()), memo)


class _RecordingList(list[Any]):
    """A list that records its reads."""

    __slots__ = ("_path", "_readings")

    def __init__(self, items: list[Any], readings: FieldReadRecorder, path: _Path) -> None:
        super().__init__(items)
        self._readings = readings
        self._path = path

    def _record_item(self, position: int) -> Any:
        value = super().__getitem__(position)
        path = (*self._path, f"[{_format_item_label(self, position)}]")
        if isinstance(value, dict):
            return _RecordingDict(value, self._readings, path, _find_name_field(value))
        return self._readings.record_read(path, value)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self._record_item(index) for index in range(*position.indices(len(self)))]
        return self._record_item(range(len(self))[position])

    def __iter__(self) -> Iterator[Any]:
        return (self._record_item(position) for position in range(len(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return copy.deepcopy([super(_RecordingList, self).__getitem__(position) for position in range(len(self))], memo)


def _find_name_field(item: Mapping[str, Any]) -> str:
    """Return the field that names an item, such as the type of a condition; empty without such a field."""
    return next((name for name in ("type", "name") if isinstance(item.get(name), str)), "")


def _format_item_label(items: list[Any], position: int) -> str:
    item = list.__getitem__(items, position)  # without a recorded read
    name = _find_name_field(item) if isinstance(item, dict) else ""
    return str(item[name]) if name else str(position)
