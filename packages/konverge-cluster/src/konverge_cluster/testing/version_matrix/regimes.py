"""Regimes: the versions at which the same mutations fire on the same objects.

What counts is finer than the component's `firing_set`: which objects are managed, and which mutations fire on each, in
their order. Two versions can agree on the names and differ in what is rendered: one mutation's name may stand on two
objects behind two gates, and a whole object may come and go with the version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from konverge.component import Component
from konverge.component.resource_options import ResourceMode
from konverge.primitives.resource_protocol import Resource

__all__ = ["Firing", "Regime", "describe_differences", "find_firing", "group_regimes", "list_firing_names"]

Firing: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""For each managed object, in apply order, its identity and the names of the mutations that fire on it."""


@dataclass(frozen=True, slots=True)
class Regime:
    """Versions that fire alike; the first of them, in the order of the list, gives it its name."""

    versions: tuple[str, ...]
    firing: Firing

    @property
    def first(self) -> str:
        """Its name."""
        return self.versions[0]


def find_firing(built: Component | Resource) -> Firing:
    """What fires on which object.

    Raises:
        konverge.errors.KonvergeError: A gate failed.
    """
    if isinstance(built, Component):
        managed = [entry.resource for entry in built.entries if entry.treatment.mode is ResourceMode.MANAGED]
    else:
        managed = [built]
    return tuple((resource.identity, resource.firing_set()) for resource in managed)


def list_firing_names(firing: Firing) -> frozenset[str]:
    """The names of all mutations that fire."""
    return frozenset(name for _, names in firing for name in names)


def group_regimes(firings: Mapping[str, Firing]) -> list[Regime]:
    """The regimes of these versions, in the order of their first ones; equal versions need not be neighbours."""
    versions: dict[Firing, list[str]] = {}
    for version, firing in firings.items():
        versions.setdefault(firing, []).append(version)
    return [Regime(tuple(found), firing) for firing, found in versions.items()]


def describe_differences(firing: Firing, other: Firing) -> str:
    """How one firing differs from another, as a sentence; empty if it does not."""
    return "; ".join(_iter_differences(firing, other))


def _iter_differences(firing: Firing, other: Firing) -> Iterator[str]:
    here, there = dict(firing), dict(other)
    for identity in {**here, **there}:
        if identity not in here or identity not in there:
            yield f"{identity} is {'managed' if identity in here else 'not managed'}"
            continue
        gained = [name for name in here[identity] if name not in there[identity]]
        lost = [name for name in there[identity] if name not in here[identity]]
        changes = [
            *([f"{_join_names(gained)} {'fires' if len(gained) == 1 else 'fire'}"] if gained else []),
            *([f"{_join_names(lost)} {'does' if len(lost) == 1 else 'do'} not fire"] if lost else []),
        ]
        if changes:
            yield f"on {identity}, {', '.join(changes)}"
        elif here[identity] != there[identity]:
            yield f"on {identity}, the mutations fire in another order"
    if firing != other and here == there:
        yield "the objects come in another order"


def _join_names(names: list[str]) -> str:
    return " and ".join(map(repr, names))
