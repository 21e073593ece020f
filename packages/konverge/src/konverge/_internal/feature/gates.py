"""The gate protocol and its two implementations."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from konverge._internal.feature.version_ranges import VersionRange

__all__ = ["BooleanGate", "Gate", "VersionConstraint", "VersionGate", "is_enabled"]


class Gate(Protocol):
    """A feature gate, which is on or off."""

    def enabled(self) -> bool:
        """Return True if the gate is on. An exception fails the component or resource of the gate."""


class VersionConstraint(Protocol):
    """A set of versions, for example ">=8.5"; `konverge.feature.VersionRange` implements it for semantic versions."""

    def enabled(self, version: str) -> bool:
        """Return True if the version is in the set. It may raise, for example for an unsupported version."""


@dataclass(frozen=True, slots=True)
class BooleanGate:
    """A gate with a fixed value."""

    value: bool

    def when(self, value: bool) -> BooleanGate:
        """Return a gate that is on only if this one is on and `value` is true."""
        return BooleanGate(self.value and value)

    def enabled(self) -> bool:
        """Return True if the gate is on."""
        return self.value


class VersionGate:
    """A gate that is on if every constraint contains the current version and every value passed to `when` is true.

    It is immutable: `when` returns another gate.

    Args:
        current: The current version.
        constraints: The constraints in the order of evaluation. None is ignored, so that one can be conditional.
    """

    __slots__ = ("_constraints", "_current", "_value")

    def __init__(self, current: str, constraints: Iterable[VersionConstraint | None] = ()) -> None:
        self._current = current
        self._constraints = tuple(constraint for constraint in constraints if constraint is not None)
        self._value = True

    @classmethod
    def for_range(cls, current: str, text: str) -> VersionGate:
        """Return a gate for one range of versions, for example ``VersionGate.for_range("8.5.1", ">=8.5 <9")``.

        Args:
            current: The current version. It is parsed when the gate is evaluated.
            text: The range (`konverge.feature.VersionRange`).

        Raises:
            KonvergeError: The text is not a range.
        """
        return cls(current, [VersionRange(text)])

    def __repr__(self) -> str:
        return f"VersionGate({self._current!r}, {list(self._constraints)!r}).when({self._value})"

    def when(self, value: bool) -> VersionGate:
        """Return a gate that is on only if this one is on and `value` is true."""
        narrowed = VersionGate(self._current, self._constraints)
        narrowed._value = self._value and value
        return narrowed

    def enabled(self) -> bool:
        """Return True if the gate is on.

        The values are checked first, so that an unsupported version does not affect a feature that is off. The first
        constraint that does not contain the version ends the evaluation. An error of a constraint is the gate's error.
        """
        return self._value and all(
            _require_bool(constraint, constraint.enabled(self._current)) for constraint in self._constraints
        )


def is_enabled(gate: Gate | None) -> bool:
    """Evaluate a gate; None is on.

    Raises:
        TypeError: The result is not a boolean. Otherwise an ``async def enabled`` would always count as on.
        Exception: The exception of the gate.
    """
    return gate is None or _require_bool(gate, gate.enabled())


def _require_bool(gate: Gate | VersionConstraint, answer: object) -> bool:
    if isinstance(answer, bool):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()
    raise TypeError(f"{type(gate).__name__}.enabled() returned {type(answer).__name__}: expected bool")
