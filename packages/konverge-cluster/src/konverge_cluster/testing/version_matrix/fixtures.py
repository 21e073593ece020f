"""Fixtures: a spec that is rendered at every version, and what must and must not fire then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from konverge.suggestions import did_you_mean
from konverge_cluster.testing.version_matrix.regimes import Firing, list_firing_names

__all__ = ["Expectation", "Fixture", "find_failures_at", "find_failures_everywhere", "parse_expectations"]

S = TypeVar("S")

Expectation: TypeAlias = str | tuple[str, str]
"""The name of a mutation, or a name and the version at which it is meant."""


# Without slots: a frozen generic class with slots cannot be made as Fixture[...](...) before Python 3.12.
@dataclass(frozen=True)
class Fixture(Generic[S]):
    """A spec that is rendered at every version.

    Args:
        name: The folder of its golden files.
        spec: What the matrix' `build` gets, whatever it is.
        requires: Mutations that must fire: at the version given with the name, or else at one of the versions at least.
        forbids: Mutations that must not fire: at the version given with the name, or else at any version.
    """

    name: str
    spec: S
    requires: Sequence[Expectation] = ()
    forbids: Sequence[Expectation] = ()


def parse_expectations(expectations: Sequence[Expectation]) -> list[tuple[str, str | None]]:
    """Each expectation as the mutation's name and the version, None where none is given."""
    return [(found, None) if isinstance(found, str) else found for found in expectations]


def find_failures_at(fixture: Fixture[Any], version: str, firing: Firing) -> Iterator[str]:
    """What is required at this version and does not fire, or is forbidden and does."""
    fire = list_firing_names(firing)
    for name, where in parse_expectations(fixture.requires):
        if where == version and name not in fire:
            yield (
                f"fixture {fixture.name}: mutation {name!r} is required and does not fire at {version}; "
                f"{_format_names(fire)}{did_you_mean(name, fire)}"
            )
    for name, where in parse_expectations(fixture.forbids):
        if where in (version, None) and name in fire:
            on = ", ".join(identity for identity, names in firing if name in names)
            yield f"fixture {fixture.name}: mutation {name!r} is forbidden and fires at {version}, on {on}"


def find_failures_everywhere(fixture: Fixture[Any], firings: Mapping[str, Firing]) -> Iterator[str]:
    """What is required at any version and fires at none."""
    fire = frozenset[str]().union(*map(list_firing_names, firings.values()))
    for name, where in parse_expectations(fixture.requires):
        if where is None and name not in fire:
            yield (
                f"fixture {fixture.name}: mutation {name!r} is required and fires at no version; "
                f"{_format_names(fire)}{did_you_mean(name, fire)}"
            )


def _format_names(fire: frozenset[str]) -> str:
    return f"those fire: {', '.join(sorted(fire))}" if fire else "none fires"
