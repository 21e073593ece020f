"""The data flow of a component: the producers and readers of its data cells, and the validation of their order.

Pure, except `fill_cells`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from konverge._internal.component.component_spec import RegisteredResource
from konverge._internal.component.resource_options import ResourceMode
from konverge._internal.primitives.data_cells import Data
from konverge.errors import ConfigurationError

__all__ = ["DataEdge", "build_data_topology", "fill_cells", "list_cells", "validate_data_flow"]

# Resources that are deleted or released are not read, so they fill no cell.
_SEEN = (ResourceMode.MANAGED, ResourceMode.READ_ONLY)


@dataclass(frozen=True, slots=True)
class DataEdge:
    """The use of one data cell; resources are listed by identity, in order of registration.

    Attributes:
        name: The name of the cell.
        producers: The resources that fill it; the last one with a value wins.
        guarded_readers: The resources that are blocked while it is empty.
        optional_readers: The resources that read it if it has a value.
    """

    name: str
    producers: tuple[str, ...]
    guarded_readers: tuple[str, ...]
    optional_readers: tuple[str, ...]


def list_cells(entries: Sequence[RegisteredResource]) -> tuple[Data[Any], ...]:
    """Return each declared cell once: first the cells with a producer, in order of the producers."""
    produced = [cell for entry in entries for cell in entry.resource.produces]
    read = [cell for entry in entries for cell in (*entry.resource.requires, *entry.resource.optional_data)]
    return tuple(dict.fromkeys((*produced, *read)))


def build_data_topology(entries: Sequence[RegisteredResource]) -> tuple[DataEdge, ...]:
    """Return the use of each cell, in order of its first producer; deleted and released resources count too."""
    return tuple(
        DataEdge(
            cell.name,
            producers=tuple(entry.identity for entry in entries if cell in entry.resource.produces),
            guarded_readers=tuple(entry.identity for entry in entries if cell in entry.resource.requires),
            optional_readers=tuple(entry.identity for entry in entries if cell in entry.resource.optional_data),
        )
        for cell in list_cells(entries)
    )


def fill_cells(cells: Iterable[Data[Any]], data: Mapping[str, Any]) -> None:
    """Set all cells with these names in the current context; to restore them, the caller copies the context before.

    Raises:
        konverge.errors.ConfigurationError: No cell has one of the names; no cell is set.
    """
    named: dict[str, list[Data[Any]]] = {}
    for cell in dict.fromkeys(cells):
        named.setdefault(cell.name, []).append(cell)
    if unknown := [name for name in data if name not in named]:
        declared = ", ".join(f'"{name}"' for name in named) or "none, no resource declares any"
        names = ", ".join(f'"{name}"' for name in unknown)
        raise ConfigurationError(f"expected the names of data cells ({declared}), found {names}")
    for name, value in data.items():
        for cell in named[name]:
            cell.set(value)


def validate_data_flow(entries: Sequence[RegisteredResource]) -> Iterator[str]:
    """Find errors: cells with the same name, and readers of a cell without an earlier producer."""
    names = [cell.name for cell in list_cells(entries)]
    if not all(name.strip() for name in names):
        yield "a data cell has no name: conditions and errors refer to it"
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f'two data cells are named "{name}": conditions and errors refer to the name'
    for index, entry in enumerate(entries):
        if entry.treatment.mode not in _SEEN:
            continue
        for cell in entry.resource.requires:
            producers = [other for other in entries[:index] if cell in other.resource.produces]
            if not any(other.treatment.mode in _SEEN for other in producers):
                yield (
                    f'{entry.identity}: it requires data "{cell.name}", '
                    f"{_describe_missing_producer(cell, producers, entries)}"
                )
        for cell in entry.resource.optional_data:
            # A producer that is deleted leaves the cell empty, which "optional" permits.
            if not any(cell in other.resource.produces for other in entries[:index]):
                yield f'{entry.identity}: it reads data "{cell.name}", {_describe_missing_producer(cell, (), entries)}'


def _describe_missing_producer(
    cell: Data[Any], earlier: Sequence[RegisteredResource], entries: Sequence[RegisteredResource]
) -> str:
    if earlier:
        producer = earlier[0]
        return f"which {producer.identity} would fill, but that one is not applied ({producer.treatment.mode.value})"
    later = next((entry for entry in entries if cell in entry.resource.produces), None)
    if later is None:
        return "which no resource fills: expected extract=cell.fill_with(...) on an earlier one"
    return f"which only {later.identity} fills: expected that one to be registered before"
