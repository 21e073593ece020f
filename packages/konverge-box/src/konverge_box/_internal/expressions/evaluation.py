"""One evaluation of an expression: the data that it can read, its remaining steps, and whether it is tainted.

A value is read when a decision or a computation uses it; passing it on is not a read. An evaluation that reads a secret
returns a sensitive result, whatever it computes: the hash, the length and the emptiness of a secret are hidden like the
secret itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from konverge.clock import Entropy
from konverge_box._internal.expressions.sensitive import Sensitive, has_sensitive, reveal_sensitive
from konverge_box._internal.expressions.values import MAX_INTEGER, OMIT, Absent, Omit, describe_value_type

__all__ = ["DEFAULT_LIMITS", "Evaluation", "EvaluationEnvironment", "EvaluationError", "EvaluationLimits", "WakeUps"]


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """Limits of one evaluation. The same expression and data give the same result on every machine.

    Args:
        steps: Calls, loop iterations, and the data that they process: 256 characters, or 4 items, are one step. 100,000
            steps take some tenths of a second, two seconds with the worst regular expressions.
        size: Characters and items of the result, and characters of each intermediate string.
        depth: Maximum nesting of lists and mappings in the result.
    """

    steps: int = 100_000
    size: int = 1 << 20
    depth: int = 50


DEFAULT_LIMITS = EvaluationLimits()


class WakeUps:
    """The earliest of the times that are added; None without one."""

    __slots__ = ("earliest",)

    def __init__(self) -> None:
        self.earliest: datetime | None = None

    def add(self, moment: datetime | None) -> None:
        """Add a time; None adds nothing."""
        if moment is not None and (self.earliest is None or moment < self.earliest):
            self.earliest = moment


@dataclass(frozen=True, slots=True)
class EvaluationEnvironment:
    """Inputs of an expression besides its scope; functions that need a missing input fail.

    Args:
        now: The time of the reconcile, with a time zone; all its expressions get the same time.
        entropy: The source of random values.
        is_unique: Tells whether no other object has this value in the field at this path.
        wake_ups: Gets the times at which the results of conditions can change; None records nothing.
        function_changes: Gets the times at which the results of functions change; None records nothing.
    """

    now: datetime | None = None
    entropy: Entropy | None = None
    is_unique: Callable[[str, Any], bool] | None = None
    wake_ups: WakeUps | None = None
    function_changes: WakeUps | None = None


class EvaluationError(Exception):
    """The failure of an evaluation.

    Args:
        at: The offset in the string.
        problem: What was expected and what was found.
        shows: Whether the problem contains values.
        absent_path: The path that is absent, if that is the problem; otherwise empty.
    """

    def __init__(self, at: int, problem: str, *, shows: bool = False, absent_path: str = "") -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem
        self.shows = shows
        self.absent_path = absent_path


_SCALARS = frozenset({str, int, float, bool, type(None)})


class Evaluation:
    """The state of one evaluation.

    Args:
        scope: The names and their values; it is not changed.
        environment: The time and the randomness.
        limits: The limits of the evaluation.
    """

    __slots__ = ("environment", "is_tainted", "left", "limits", "locals", "scope")

    def __init__(self, scope: Mapping[str, Any], environment: EvaluationEnvironment, limits: EvaluationLimits) -> None:
        self.scope = scope
        self.environment = environment
        self.limits = limits
        self.left = limits.steps
        self.is_tainted = False
        self.locals: dict[str, Any] = {}

    def consume_step(self, at: int, size: int = 0) -> None:
        """Count one step and the size of the data that it processes."""
        self.left -= 1 + (size >> 8)
        if self.left < 0:
            raise EvaluationError(
                at, f"takes more than {self.limits.steps} steps; loop over fewer items, or use shorter strings"
            )

    def unwrap_value(self, value: Any, at: int) -> Any:
        """Return a value for use in a computation: present, plain and unmasked."""
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is Sensitive:
            self.is_tainted = True
            return value.reveal()
        if kind is Absent:
            raise self._build_absence_error(value, at)
        if isinstance(value, Mapping | list | tuple):
            self._count_value(value, at, self.limits.depth)
            if has_sensitive(value):
                self.is_tainted = True
                return reveal_sensitive(value)
            return value if kind is dict or kind is list else reveal_sensitive(value)
        if kind is Omit:
            raise EvaluationError(at, "omit can only be the result of an expression, not an operand")
        raise EvaluationError(
            at, f"expected a string, a number, a boolean, null, a list or a mapping, found {describe_value_type(value)}"
        )

    def count_value(self, value: Any, at: int) -> None:
        """Count the steps for everything in a value that stays in memory; passing it on is not a read."""
        self._count_value(value, at, self.limits.depth)

    def _count_value(self, value: Any, at: int, depth: int) -> None:
        if isinstance(value, Mapping | list | tuple):
            if depth == 0:
                raise EvaluationError(at, f"nested deeper than {self.limits.depth} levels")
            self.consume_step(at, len(value) << 6)
            for item in value.values() if isinstance(value, Mapping) else value:
                self._count_value(item, at, depth - 1)
        elif isinstance(value, str):
            self.consume_step(at, len(value))
        elif type(value) not in _SCALARS:
            self.unwrap_value(value, at)

    def check_result(self, value: Any, at: int) -> Any:
        """Return the result of an operator or a function if it is within the limits."""
        kind = type(value)
        if kind is int:
            if not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
                raise EvaluationError(at, "expected a number of 64 bits, found a larger one")
        elif kind is float:
            if not math.isfinite(value):
                raise EvaluationError(at, "expected a finite number, found an infinite one")
        elif kind is str and len(value) > self.limits.size:
            raise self.build_size_error(at)
        return value

    def build_size_error(self, at: int) -> EvaluationError:
        """Build the error for a value that is larger than a result may be."""
        return EvaluationError(at, f"expected at most {self.limits.size} characters and items, found more")

    def _build_absence_error(self, value: Absent, at: int) -> EvaluationError:
        problem = value.describe_problem(shows_words=not self.is_tainted)
        return EvaluationError(at, problem, absent_path="" if self.is_tainted else value.path)

    def finish_result(self, value: Any, at: int) -> Any:
        """Return the final result: a copy that shares nothing with the scope, sensitive if a secret was read."""
        if type(value) is Absent:
            raise self._build_absence_error(value, at)
        if value is OMIT:
            return value
        room = [self.limits.size]
        result = self._copy_value(value, at, room, self.limits.depth)
        return Sensitive(result) if self.is_tainted else result

    def _copy_value(self, value: Any, at: int, room: list[int], depth: int) -> Any:
        kind = type(value)
        room[0] -= len(value) + 1 if kind is str else 1
        if room[0] < 0:
            raise self.build_size_error(at)
        if kind in _SCALARS or kind is Sensitive:
            return value
        if depth == 0:
            raise EvaluationError(at, f"nested deeper than {self.limits.depth} levels")
        if isinstance(value, Mapping):
            copied: dict[str, Any] = {}
            for key, item in value.items():
                if item is not OMIT:
                    room[0] -= len(key) if isinstance(key, str) else 1
                    copied[key] = self._copy_value(item, at, room, depth - 1)
            return copied
        if isinstance(value, list | tuple):
            return [self._copy_value(item, at, room, depth - 1) for item in value if item is not OMIT]
        if kind is Absent:
            raise self._build_absence_error(value, at)
        raise EvaluationError(
            at, f"expected a string, a number, a boolean, null, a list or a mapping, found {describe_value_type(value)}"
        )
