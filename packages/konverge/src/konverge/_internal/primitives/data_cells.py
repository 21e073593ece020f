"""Data cells: typed values that one resource of a component passes to later ones.

One resource fills a cell from its live object (``extract=``); others require it (``requires=``) or use it if it is set
(``optional_data=``). When a component is built, it checks that a resource that fills a cell comes before each resource
that reads it. A resource is blocked while a cell that it requires is empty.

The cell itself does not store the value. Values are in the context of the running task (`contextvars`), in a mapping
that is replaced and never changed. Concurrent reconciles therefore cannot see each other's values, even if they share
a cell that was created once for all owners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, overload
from weakref import WeakKeyDictionary

from konverge._internal.kube import Object
from konverge.errors import NotExtractedError

__all__ = ["Data", "Extraction", "clear_cells"]

T = TypeVar("T")
D = TypeVar("D")

# Weak: a long-running task uses new cells in each reconcile.
_values: ContextVar[Mapping[Data[Any], Any] | None] = ContextVar("konverge_data", default=None)


class Data(Generic[T]):
    """A named value that may be empty; the identity of a cell is the object, never its name.

    ::

        endpoint: Data[str] = Data("endpoint")
        ConfigMap(settings, extract=endpoint.fill_with(lambda live: live["data"]["endpoint"]))
        Deployment(pages, requires=endpoint, mutations=Mutation("endpoint", lambda pods: ...endpoint.require()...))

    Each reconcile of a component starts with empty cells. After it, they have the extracted values in the same task.

    Args:
        name: The name in conditions and errors; unique within a component.

    Attributes:
        holds_secret: True if a Secret fills the cell, so that errors of its readers may quote the Secret. The primitive
            that fills it sets this.
    """

    __slots__ = ("__weakref__", "holds_secret", "name")

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.holds_secret: bool = False

    def __repr__(self) -> str:
        return f"Data({self.name!r})"  # without the value, which may belong to a Secret

    @property
    def is_set(self) -> bool:
        """True if the cell has a value."""
        return self in (_values.get() or ())

    @overload
    def get(self) -> T | None: ...

    @overload
    def get(self, default: D) -> T | D: ...

    def get(self, default: object = None) -> object:
        """Return the value, or the default if the cell is empty."""
        return (_values.get() or {}).get(self, default)

    def require(self) -> T:
        """Return the value of the cell.

        Raises:
            konverge.errors.NotExtractedError: The cell is empty.
        """
        values = _values.get()
        if values is None or self not in values:
            raise NotExtractedError(self.name)
        value: T = values[self]
        return value

    def set(self, value: T) -> None:
        """Set the value for the running task."""
        values = _copy_values()
        values[self] = value
        _values.set(values)

    def clear(self) -> None:
        """Remove the value for the running task."""
        if self.is_set:
            clear_cells((self,))

    def fill_with(self, extractor: Callable[[Object], T | None]) -> Extraction[T]:
        """Return an extractor for ``extract=`` that fills the cell with the result of this function.

        If several resources fill one cell, the last value wins.

        Args:
            extractor: Gets a private copy of the live object. A result of None means that there is no value yet, and
                does not change the cell.
        """
        return Extraction(self, extractor)


class Extraction(Generic[T]):
    """An extractor that fills a cell; made by `Data.fill_with`.

    Attributes:
        cell: The cell to fill.
        extractor: The author's function.
    """

    __slots__ = ("cell", "extractor")

    def __init__(self, cell: Data[T], extractor: Callable[[Object], T | None]) -> None:
        self.cell: Data[T] = cell
        self.extractor: Callable[[Object], T | None] = extractor

    def __call__(self, live: Object) -> None:
        """Fill the cell from the live object."""
        value = self.extractor(live)
        if value is not None:
            self.cell.set(value)


def clear_cells(cells: Iterable[Data[Any]]) -> None:
    """Remove the values of these cells for the running task."""
    values = _copy_values()
    for cell in cells:
        values.pop(cell, None)
    _values.set(values)


def _copy_values() -> WeakKeyDictionary[Data[Any], Any]:
    return WeakKeyDictionary(_values.get() or {})
