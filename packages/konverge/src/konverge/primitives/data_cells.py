"""Data cells: what one resource tells the later ones of its component, by name and with a type.

A cell is made beside the resources that use it. One resource fills it from its live object (``extract=``), others need
it (``requires=``) or take it if it is there (``optional_data=``). A component checks when it is built that whoever
reads a cell comes after somebody who fills it, and blocks a resource for as long as a cell that it requires is empty.

A cell holds nothing itself. Values live in the context of the running task (`contextvars`), in a mapping that is
replaced and never changed, so passes that run at the same time cannot see each other's, even where they share a cell
that was made once for all owners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, overload
from weakref import WeakKeyDictionary

from konverge.errors import NotExtractedError
from konverge.kube import Object

__all__ = ["Data", "Extraction", "clear_cells"]

T = TypeVar("T")
D = TypeVar("D")

# Weak: a task that lives long meets new cells in each pass.
_values: ContextVar[Mapping[Data[Any], Any] | None] = ContextVar("konverge_data", default=None)


class Data(Generic[T]):
    """A named value that is there or not; cells are told apart by identity, never by name.

    ::

        endpoint: Data[str] = Data("endpoint")
        ConfigMap(settings, extract=endpoint.fill_with(lambda live: live["data"]["endpoint"]))
        Deployment(pages, requires=endpoint, mutations=Mutation("endpoint", lambda pods: ...endpoint.require()...))

    Each reconcile of a component begins with its cells empty. After it, in the same task, they hold what was extracted.

    Args:
        name: What conditions and errors call it; unique within a component.

    Attributes:
        holds_secret: Tell whether a Secret fills it, so that errors of those who read it may quote the Secret; the
            primitive that fills it says so.
    """

    __slots__ = ("__weakref__", "holds_secret", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.holds_secret = False

    def __repr__(self) -> str:
        return f"Data({self.name!r})"  # without its value, which may be a Secret's

    @property
    def is_set(self) -> bool:
        """Tell whether it holds a value."""
        return self in (_values.get() or ())

    @overload
    def get(self) -> T | None: ...

    @overload
    def get(self, default: D) -> T | D: ...

    def get(self, default: object = None) -> object:
        """The value, or the default while it is empty."""
        return (_values.get() or {}).get(self, default)

    def require(self) -> T:
        """The value.

        Raises:
            konverge.errors.NotExtractedError: It is empty.
        """
        values = _values.get()
        if values is None or self not in values:
            raise NotExtractedError(self.name)
        value: T = values[self]
        return value

    def set(self, value: T) -> None:
        """Hold that value from now on."""
        values = _copy_values()
        values[self] = value
        _values.set(values)

    def clear(self) -> None:
        """Hold nothing."""
        if self.is_set:
            clear_cells((self,))

    def fill_with(self, extractor: Callable[[Object], T | None]) -> Extraction[T]:
        """For ``extract=``: fill the cell with what this function finds in the live object.

        Several resources may fill one cell; the last one that finds something wins.

        Args:
            extractor: Gets a private copy of the live object; None says that it is not there yet, and changes nothing.
        """
        return Extraction(self, extractor)


class Extraction(Generic[T]):
    """An extractor that fills a cell; made by `Data.fill_with`.

    Attributes:
        cell: What it fills.
        extractor: The author's function.
    """

    __slots__ = ("cell", "extractor")

    def __init__(self, cell: Data[T], extractor: Callable[[Object], T | None]) -> None:
        self.cell = cell
        self.extractor = extractor

    def __call__(self, live: Object) -> None:
        """Fill the cell from the live object."""
        value = self.extractor(live)
        if value is not None:
            self.cell.set(value)


def clear_cells(cells: Iterable[Data[Any]]) -> None:
    """Empty these cells for the running task."""
    values = _copy_values()
    for cell in cells:
        values.pop(cell, None)
    _values.set(values)


def _copy_values() -> WeakKeyDictionary[Data[Any], Any]:
    return WeakKeyDictionary(_values.get() or {})
