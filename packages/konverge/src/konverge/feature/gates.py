"""The gate protocol and the two gates that most features need."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from konverge.feature.version_ranges import VersionRange

__all__ = ["BooleanGate", "Gate", "VersionConstraint", "VersionGate", "is_enabled"]


class Gate(Protocol):
    """Something that is on or off."""

    def enabled(self) -> bool:
        """Tell whether it is on; may raise, which fails what it guards."""


class VersionConstraint(Protocol):
    """A set of versions, for example "from 8.5 on"; `konverge.feature.VersionRange` is one for semantic versions."""

    def enabled(self, version: str) -> bool:
        """Tell whether the version is in the set; may raise, for example on a version it cannot read."""


@dataclass(frozen=True, slots=True)
class BooleanGate:
    """A gate that was decided when it was made."""

    value: bool

    def when(self, value: bool) -> BooleanGate:
        """A gate that is on only if this one is and `value` is true."""
        return BooleanGate(self.value and value)

    def enabled(self) -> bool:
        """Tell whether it is on."""
        return self.value


class VersionGate:
    """A gate that is on when every constraint holds for the current version, and every value given to `when` is true.

    Immutable: `when` returns another gate.

    Args:
        current: The version at hand.
        constraints: Asked in this order; a None among them is ignored, for constraints assigned conditionally.
    """

    __slots__ = ("_constraints", "_current", "_value")

    def __init__(self, current: str, constraints: Iterable[VersionConstraint | None] = ()) -> None:
        self._current = current
        self._constraints = tuple(constraint for constraint in constraints if constraint is not None)
        self._value = True

    @classmethod
    def for_range(cls, current: str, text: str) -> VersionGate:
        """A gate that is on for the versions in one range, for example ``VersionGate.for_range("8.5.1", ">=8.5 <9")``.

        Args:
            current: The version at hand. It is read when the gate is asked.
            text: The range, see `konverge.feature.VersionRange`.

        Raises:
            KonvergeError: The text is no range.
        """
        return cls(current, [VersionRange(text)])

    def __repr__(self) -> str:
        return f"VersionGate({self._current!r}, {list(self._constraints)!r}).when({self._value})"

    def when(self, value: bool) -> VersionGate:
        """A gate that is on only if this one is and `value` is true."""
        narrowed = VersionGate(self._current, self._constraints)
        narrowed._value = self._value and value
        return narrowed

    def enabled(self) -> bool:
        """Tell whether it is on.

        The values come first, so that a version that nobody can read does no harm to a feature that is off anyway;
        the first constraint that fails ends the question. A constraint's error is the gate's.
        """
        return self._value and all(_require_bool(found, found.enabled(self._current)) for found in self._constraints)


def is_enabled(gate: Gate | None) -> bool:
    """Ask a gate; no gate is on.

    Raises:
        TypeError: The answer is no boolean. An ``async def enabled`` would otherwise read as "on" for ever.
        Exception: Whatever the gate raises.
    """
    return gate is None or _require_bool(gate, gate.enabled())


def _require_bool(asked: Gate | VersionConstraint, answer: object) -> bool:
    if isinstance(answer, bool):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()
    raise TypeError(f"{type(asked).__name__}.enabled() answered {type(answer).__name__}, expected bool")
