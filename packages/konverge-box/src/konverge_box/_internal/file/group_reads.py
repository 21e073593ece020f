"""Checks of groups that read ``children`` and ``providers``: only the content of objects, and only earlier groups.

Names, loops and conditions decide which objects exist. A value that is missing for a moment must not delete any of
them, so they cannot read results that come and go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from konverge_box._internal.file.box_kinds import KINDS, find_child_kind
from konverge_box._internal.file.dependency_cycles import find_cycle
from konverge_box._internal.file.validation_errors import Path

__all__ = ["find_group_read_errors"]

_DECIDING = frozenset(
    {"name", "namespace", "when", "or", "anyOf", "forEach", "toNamespaces", "fromSecret", "fromConfigMap"}
)
_KEYS = (("manifest", "metadata", "name"), ("manifest", "metadata", "namespace"))

_Group = tuple[Path, Mapping[str, Any]]


def find_group_read_errors(
    groups: Sequence[_Group], reads: Sequence[tuple[Path, tuple[str, ...]]]
) -> Iterator[tuple[Path, str]]:
    """Yield the errors of the reads of one custom resource, each with its path and message.

    Args:
        groups: The groups of ``onCreate`` and then of ``onReconcile``, with their paths.
        reads: The paths of ``children`` and ``providers`` that the groups read, with their places in the file.
    """
    edges: dict[str, set[str]] = {_format_group(groups, place): set() for place in range(len(groups))}
    unmet: list[tuple[Path, int, tuple[str, ...], list[int]]] = []
    for path, name in reads:
        place = _find_group(groups, path)
        if place is None:
            continue
        if _decides(path[len(groups[place][0]) :]):
            what = "names, loops and conditions decide which objects exist"
            read = ".".join(name)
            yield path, f"{read} cannot be read here: {what}; read it in the content, in waitFor or in readyWhen"
        elif name[0] == "children":
            kind = find_child_kind(name[1]) if len(name) > 1 else None
            if kind is None:
                if len(name) < 2:
                    yield path, "children: name the kind that is read, as in children.service"
                continue  # an unknown kind is reported elsewhere
            declaring = [number for number, (_, group) in enumerate(groups) if kind.key in group]
            edges[_format_group(groups, place)] |= {_format_group(groups, each) for each in declaring if each != place}
            if declaring and min(declaring) >= place:
                unmet.append((path, place, name, declaring))
    cycle = find_cycle(edges)
    for path, place, name, declaring in unmet:
        shown, kind_key = ".".join(name[:2]), (find_child_kind(name[1]) or KINDS["custom"]).key
        own, other = _format_group(groups, place), _format_group(groups, declaring[-1])
        if own in cycle and any(_format_group(groups, each) in cycle for each in declaring if each != place):
            yield path, f"{shown}: these groups read each other: {' -> '.join(cycle)}"
        elif declaring == [place]:
            yield path, f"{shown}: only this group declares {kind_key}; declare them in an earlier group"
        else:
            yield path, f"{shown}: only {other}, a later group, declares {kind_key}; put it before {own}"


def _find_group(groups: Sequence[_Group], path: Path) -> int | None:
    return next((place for place, (at, _) in enumerate(groups) if path[: len(at)] == at), None)


def _decides(inner: Path) -> bool:
    """Tell whether a place in a group belongs to a name, a loop or a condition."""
    if not inner or inner[0] not in KINDS or len(inner) < 3:
        return True  # the conditions of the group itself
    below = inner[2:]
    return below[0] in _DECIDING or below[:3] in _KEYS


def _format_group(groups: Sequence[_Group], place: int) -> str:
    at, group = groups[place]
    name = group.get("name")
    if isinstance(name, str):
        return name
    step, *index = map(str, at[3:])
    return f"{step}[{index[0]}]" if index else step
