"""Fixtures: a spec that is rendered at every version, with the mutations that must and must not fire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from konverge._internal.suggestions import did_you_mean
from konverge_cluster._internal.testing.version_matrix.regimes import Firing, list_firing_names

__all__ = ["Expectation", "Fixture", "find_failures_at", "find_failures_everywhere", "parse_expectations"]

S = TypeVar("S")

Expectation: TypeAlias = str | tuple[str, str]
"""The name of a mutation, or a name and the version to which the expectation applies."""


# Without slots: Python before 3.12 cannot instantiate a frozen generic class with slots as Fixture[...](...).
@dataclass(frozen=True)
class Fixture(Generic[S]):
    """A spec that is rendered at every version.

    Args:
        name: The name of the fixture and of its folder of golden files.
        spec: The argument for the matrix' `build`; any value.
        requires: Mutations that must fire: at the given version, or without one at least at one version.
        forbids: Mutations that must not fire: at the given version, or without one at any version.
    """

    name: str
    spec: S
    requires: Sequence[Expectation] = ()
    forbids: Sequence[Expectation] = ()


def parse_expectations(expectations: Sequence[Expectation]) -> list[tuple[str, str | None]]:
    """Return each expectation as a mutation name and a version; None without a version."""
    return [(item, None) if isinstance(item, str) else item for item in expectations]


def find_failures_at(fixture: Fixture[Any], version: str, firing: Firing) -> Iterator[str]:
    """Yield the mutations that are required at this version and do not fire, or are forbidden and fire."""
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
    """Yield the mutations that are required without a version and fire at none."""
    fire = frozenset[str]().union(*map(list_firing_names, firings.values()))
    for name, where in parse_expectations(fixture.requires):
        if where is None and name not in fire:
            yield (
                f"fixture {fixture.name}: mutation {name!r} is required and fires at no version; "
                f"{_format_names(fire)}{did_you_mean(name, fire)}"
            )


def _format_names(fire: frozenset[str]) -> str:
    return f"firing mutations: {', '.join(sorted(fire))}" if fire else "no mutation fires"
