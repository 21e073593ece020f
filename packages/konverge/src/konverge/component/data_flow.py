"""How data cells run through a component: who fills them, who reads them, and whether that can work.

Pure, but for `fill`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from konverge.component.component_spec import RegisteredResource
from konverge.component.resource_options import ResourceMode
from konverge.errors import ConfigurationError
from konverge.primitives.data_cells import Data

__all__ = ["DataEdge", "build_data_topology", "fill_cells", "list_cells", "validate_data_flow"]

# What is removed or released is not read, so it fills nothing.
_SEEN = (ResourceMode.MANAGED, ResourceMode.READ_ONLY)


@dataclass(frozen=True, slots=True)
class DataEdge:
    """How one data cell is used; resources are told by identity, in order of registration.

    Attributes:
        name: The cell's name.
        producers: Who fills it; the last one that finds something wins.
        guarded_readers: Who is blocked while it is empty.
        optional_readers: Who reads it if it holds something.
    """

    name: str
    producers: tuple[str, ...]
    guarded_readers: tuple[str, ...]
    optional_readers: tuple[str, ...]


def list_cells(entries: Sequence[RegisteredResource]) -> tuple[Data[Any], ...]:
    """Every cell that a resource declares, each once: first those that are filled, in order of their producers."""
    produced = [cell for entry in entries for cell in entry.resource.produces]
    read = [cell for entry in entries for cell in (*entry.resource.requires, *entry.resource.optional_data)]
    return tuple(dict.fromkeys((*produced, *read)))


def build_data_topology(entries: Sequence[RegisteredResource]) -> tuple[DataEdge, ...]:
    """How each cell is used, in order of its first producer; a resource that is removed or released still counts."""
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
    """Set all cells of these names for the running task; who wants them back as they were copies its context before.

    Raises:
        konverge.errors.ConfigurationError: A name is no cell's; then none is set.
    """
    named: dict[str, list[Data[Any]]] = {}
    for cell in dict.fromkeys(cells):
        named.setdefault(cell.name, []).append(cell)
    if unknown := [name for name in data if name not in named]:
        known = ", ".join(f'"{name}"' for name in named) or "none, no resource declares any"
        told = ", ".join(f'"{name}"' for name in unknown)
        raise ConfigurationError(f"expected the names of data cells ({known}), found {told}")
    for name, value in data.items():
        for cell in named[name]:
            cell.set(value)


def validate_data_flow(entries: Sequence[RegisteredResource]) -> Iterator[str]:
    """What cannot work: cells of one name, and readers before whom nobody fills the cell."""
    names = [cell.name for cell in list_cells(entries)]
    if not all(name.strip() for name in names):
        yield "a data cell has no name: conditions and errors refer to it"
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f'two data cells are named "{name}": conditions and errors refer to the name'
    for place, entry in enumerate(entries):
        if entry.treatment.mode not in _SEEN:
            continue
        for cell in entry.resource.requires:
            found = [other for other in entries[:place] if cell in other.resource.produces]
            if not any(other.treatment.mode in _SEEN for other in found):
                yield (
                    f'{entry.identity}: it requires data "{cell.name}", '
                    f"{_describe_missing_producer(cell, found, entries)}"
                )
        for cell in entry.resource.optional_data:
            # One that is removed today leaves the cell empty, which is what "optional" allows for.
            if not any(cell in other.resource.produces for other in entries[:place]):
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
