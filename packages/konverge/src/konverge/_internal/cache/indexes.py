"""Indexes over cached objects: a function computes values of an object, and the index maps them to keys. Pure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.selectors import LabelSelector

__all__ = ["Index", "IndexFunction", "find_by_label_index", "label_index"]

_logger = logging.getLogger("konverge.cache")

IndexFunction: TypeAlias = Callable[[Object], Iterable[str]]
"""A function that receives an object (its own copy) and returns the values to index it by, possibly none."""


def label_index(label: str) -> tuple[str, IndexFunction]:
    """Return the name and the function of a label index: a list by that label then inspects no other objects."""

    def get_values(obj: Object) -> list[str]:
        value = (obj["metadata"].get("labels") or {}).get(label)
        return [] if value is None else [value]

    return f"label {label}", get_values


def find_by_label_index(indexes: Mapping[str, Index], labels: LabelSelector) -> list[ObjectKey] | None:
    """Return the keys of objects that may match a selector, from the first of its labels with an index.

    Return None if none of its labels has an index.
    """
    for requirement in labels.requirements:
        if requirement.operator == "in" and len(requirement.values) == 1:
            index = indexes.get(f"label {requirement.key}")
            if index is not None:
                (value,) = requirement.values
                return index.find_keys(value)
    return None


class Index:
    """One index over the objects of one kind; the stores of the kind keep it up to date.

    Args:
        gvk: The kind, for messages.
        name: The name of the index.
        values_of: The function that returns the values of an object. If it raises, the object has no values.
    """

    def __init__(self, gvk: GroupVersionKind, name: str, values_of: IndexFunction) -> None:
        self._gvk = gvk
        self._name = name
        self._values_of = values_of
        self._keys: dict[str, set[ObjectKey]] = {}
        self._values: dict[ObjectKey, tuple[str, ...]] = {}
        self._has_failed = False

    def upsert(self, key: ObjectKey, obj: Object) -> None:
        """Add the object, or replace its values."""
        self.remove(key)
        values = self._compute_values(key, obj)
        if values:
            self._values[key] = values
        for value in values:
            self._keys.setdefault(value, set()).add(key)

    def remove(self, key: ObjectKey) -> None:
        """Remove the object from the index."""
        for value in self._values.pop(key, ()):
            keys = self._keys[value]
            keys.discard(key)
            if not keys:
                del self._keys[value]

    def find_keys(self, value: str) -> list[ObjectKey]:
        """Return the keys of the objects with that value, sorted."""
        return sorted(self._keys.get(value, ()))

    def _compute_values(self, key: ObjectKey, obj: Object) -> tuple[str, ...]:
        try:
            values = tuple(dict.fromkeys(self._values_of(obj)))
            if not all(isinstance(value, str) for value in values):
                raise TypeError("expected strings as index values")
        except Exception as error:  # noqa: BLE001  # an error in an author's function must not end a watch
            # A warning only once: a function that fails does so for every object and every event.
            level = logging.DEBUG if self._has_failed else logging.WARNING
            self._has_failed = True
            # The text of the error may contain values of the object.
            reason = type(error).__name__ if self._gvk.is_secret else f"{type(error).__name__}: {error}"
            _logger.log(level, "%s %s: cannot index the object: index %r: %s", self._gvk, key, self._name, reason)
            return ()
        return values
