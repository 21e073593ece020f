"""Finding held objects by what they say: names of an index, values, and the keys under each value. Pure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.selectors import LabelSelector

__all__ = ["Index", "IndexFunction", "find_by_label_index", "label_index"]

_logger = logging.getLogger(__name__)

IndexFunction: TypeAlias = Callable[[Object], Iterable[str]]
"""Gets an object (a copy of its own) and returns the values that it is to be found by; none is fine."""


def label_index(label: str) -> tuple[str, IndexFunction]:
    """The name and the function of an index of a label: with it, a list by that label looks at no other objects."""

    def get_values(obj: Object) -> list[str]:
        value = (obj["metadata"].get("labels") or {}).get(label)
        return [] if value is None else [value]

    return f"label {label}", get_values


def find_by_label_index(indexes: Mapping[str, Index], labels: LabelSelector) -> list[ObjectKey] | None:
    """The objects that may match a selector, by the first of its labels that has an index; None without one."""
    for requirement in labels.requirements:
        if requirement.operator == "in" and len(requirement.values) == 1:
            index = indexes.get(f"label {requirement.key}")
            if index is not None:
                (value,) = requirement.values
                return index.find_keys(value)
    return None


class Index:
    """One index over the objects of one kind; whoever holds the objects keeps it in step.

    Args:
        gvk: The kind, for messages.
        name: What the index is called.
        values_of: Says what an object is found by. An object on which it fails is found by nothing.
    """

    def __init__(self, gvk: GroupVersionKind, name: str, values_of: IndexFunction) -> None:
        self._gvk = gvk
        self._name = name
        self._values_of = values_of
        self._keys: dict[str, set[ObjectKey]] = {}
        self._values: dict[ObjectKey, tuple[str, ...]] = {}
        self._has_failed = False

    def upsert(self, key: ObjectKey, obj: Object) -> None:
        """The object is held from now on, or has changed."""
        self.remove(key)
        values = self._compute_values(key, obj)
        if values:
            self._values[key] = values
        for value in values:
            self._keys.setdefault(value, set()).add(key)

    def remove(self, key: ObjectKey) -> None:
        """The object is held no longer."""
        for value in self._values.pop(key, ()):
            keys = self._keys[value]
            keys.discard(key)
            if not keys:
                del self._keys[value]

    def find_keys(self, value: str) -> list[ObjectKey]:
        """The objects with that value, sorted."""
        return sorted(self._keys.get(value, ()))

    def _compute_values(self, key: ObjectKey, obj: Object) -> tuple[str, ...]:
        try:
            values = tuple(dict.fromkeys(self._values_of(obj)))
            if not all(isinstance(value, str) for value in values):
                raise TypeError("it returned something that is no string")
        except Exception as error:  # noqa: BLE001  # an author's mistake in an index must not end a watch
            # Once at that level: an index that fails fails on every object and every event.
            level = logging.DEBUG if self._has_failed else logging.WARNING
            self._has_failed = True
            # The text could hold what the object holds.
            why = type(error).__name__ if self._gvk.is_secret else f"{type(error).__name__}: {error}"
            _logger.log(level, "%s %s: not in the index %r: %s", self._gvk, key, self._name, why)
            return ()
        return values
