"""One evaluation of an expression: what it may look at, what it has used up, whether it has seen a secret.

A value counts as seen when something is decided or computed with it; to hand it on is not to see it. An evaluation that
has seen a secret has a sensitive result, whatever became of the secret: its hash, its length, and whether it is empty
are hidden like itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from konverge.clock import Entropy
from konverge_box.expressions.sensitive import Sensitive, has_sensitive, reveal_sensitive
from konverge_box.expressions.values import MAX_INTEGER, OMIT, Absent, Omit, describe_value_type

__all__ = ["DEFAULT_LIMITS", "Evaluation", "EvaluationEnvironment", "EvaluationError", "EvaluationLimits"]


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """How much one evaluation may do. The same expression and data always come to the same end, on any machine.

    Args:
        steps: Calls, turns of loops, and what they work on: 256 letters, or 4 items, are one step. 100,000 steps take
            some tenths of a second, two seconds with the worst regular expressions.
        size: Letters and items of the result, and letters of each text on the way to it.
        depth: How deep lists and mappings of the result may nest.
    """

    steps: int = 100_000
    size: int = 1 << 20
    depth: int = 50


DEFAULT_LIMITS = EvaluationLimits()


@dataclass(frozen=True, slots=True)
class EvaluationEnvironment:
    """What an expression can get that is not in its scope; without it the functions that need it fail.

    Args:
        now: The time of the pass, aware of its zone: one moment for all expressions of it.
        entropy: Where random values come from.
        is_unique: Tells whether no other object has this value in the field of this path.
    """

    now: datetime | None = None
    entropy: Entropy | None = None
    is_unique: Callable[[str, Any], bool] | None = None


class EvaluationError(Exception):
    """What ends an evaluation.

    Args:
        at: The offset in the text.
        problem: What was expected and what was found.
        shows: Whether the problem shows values.
    """

    def __init__(self, at: int, problem: str, *, shows: bool = False) -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem
        self.shows = shows


_SCALARS = frozenset({str, int, float, bool, type(None)})


class Evaluation:
    """One evaluation.

    Args:
        scope: The names and their values; it is not changed.
        environment: The time and the randomness.
        limits: What it may use up.
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
        """Take one step, on something of that size."""
        self.left -= 1 + (size >> 8)
        if self.left < 0:
            raise EvaluationError(
                at, f"takes more than {self.limits.steps} steps: loop over less, or call less on long texts"
            )

    def unwrap_value(self, value: Any, at: int) -> Any:
        """A value that is to be worked with: there, plain, and without masks."""
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is Sensitive:
            self.is_tainted = True
            return value.reveal()
        if kind is Absent:
            raise EvaluationError(at, value.describe_problem(shows_words=not self.is_tainted))
        if isinstance(value, Mapping | list | tuple):
            self._count_value(value, at, self.limits.depth)
            if has_sensitive(value):
                self.is_tainted = True
                return reveal_sensitive(value)
            return value if kind is dict or kind is list else reveal_sensitive(value)
        if kind is Omit:
            raise EvaluationError(at, "omit is no value to work with: it can only be the result")
        raise EvaluationError(
            at, f"found {describe_value_type(value)}; expected text, a number, a boolean, null, a list or a mapping"
        )

    def _count_value(self, value: Any, at: int, depth: int) -> None:
        """Count what is in a value."""
        if isinstance(value, Mapping | list | tuple):
            if depth == 0:
                raise EvaluationError(at, f"nests deeper than {self.limits.depth} levels")
            self.consume_step(at, len(value) << 6)
            for item in value.values() if isinstance(value, Mapping) else value:
                self._count_value(item, at, depth - 1)
        elif isinstance(value, str):
            self.consume_step(at, len(value))
        elif type(value) not in _SCALARS:
            self.unwrap_value(value, at)

    def check_result(self, value: Any, at: int) -> Any:
        """What an operator or a function has made, if it is not too large."""
        kind = type(value)
        if kind is int:
            if not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
                raise EvaluationError(at, "the number does not fit into 64 bits")
        elif kind is float:
            if not math.isfinite(value):
                raise EvaluationError(at, "the number is not finite")
        elif kind is str and len(value) > self.limits.size:
            raise self.build_size_error(at)
        return value

    def build_size_error(self, at: int) -> EvaluationError:
        """The failure of what is larger than a result may be."""
        return EvaluationError(at, f"comes to more than {self.limits.size} letters and items")

    def finish_result(self, value: Any, at: int) -> Any:
        """The result as it leaves: a copy that shares nothing with the scope, sensitive if a secret was seen."""
        if type(value) is Absent:
            raise EvaluationError(at, value.describe_problem(shows_words=not self.is_tainted))
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
            raise EvaluationError(at, f"nests deeper than {self.limits.depth} levels")
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
            raise EvaluationError(at, value.describe_problem(shows_words=not self.is_tainted))
        raise EvaluationError(
            at, f"found {describe_value_type(value)}; expected text, a number, a boolean, null, a list or a mapping"
        )
