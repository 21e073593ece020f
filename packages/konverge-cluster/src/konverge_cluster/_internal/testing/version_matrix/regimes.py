"""Regimes: the versions at which the same mutations fire on the same objects.

A regime is finer than the component's `firing_set`: it compares the managed objects and the mutations that fire on
each, in order. Two versions can have the same names and different output: two objects can have mutations of the same
name behind different gates, and a version can add or remove a whole object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from konverge._internal.component import Component
from konverge._internal.component.resource_options import ResourceMode
from konverge._internal.primitives.resource_protocol import Resource

__all__ = ["Firing", "Regime", "describe_differences", "find_firing", "group_regimes", "list_firing_names"]

Firing: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""For each managed object, in apply order, its identity and the names of the mutations that fire on it."""


@dataclass(frozen=True, slots=True)
class Regime:
    """Versions with the same firing mutations; the first in the order of the list names the regime."""

    versions: tuple[str, ...]
    firing: Firing

    @property
    def first(self) -> str:
        """The first version, which names the regime."""
        return self.versions[0]


def find_firing(built: Component | Resource) -> Firing:
    """Return the firing mutations of each object.

    Raises:
        konverge.errors.KonvergeError: A gate failed.
    """
    if isinstance(built, Component):
        managed = [entry.resource for entry in built.entries if entry.treatment.mode is ResourceMode.MANAGED]
    else:
        managed = [built]
    return tuple((resource.identity, resource.firing_set()) for resource in managed)


def list_firing_names(firing: Firing) -> frozenset[str]:
    """Return the names of all firing mutations."""
    return frozenset(name for _, names in firing for name in names)


def group_regimes(firings: Mapping[str, Firing]) -> list[Regime]:
    """Group versions with the same firing mutations, in the order of the first version of each group.

    The versions of one group need not be adjacent.
    """
    versions: dict[Firing, list[str]] = {}
    for version, firing in firings.items():
        versions.setdefault(firing, []).append(version)
    return [Regime(tuple(members), firing) for firing, members in versions.items()]


def describe_differences(firing: Firing, other: Firing) -> str:
    """Return a sentence with the differences between two firings; empty if they are equal."""
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
