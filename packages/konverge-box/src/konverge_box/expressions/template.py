"""Texts with expressions, compiled: ``{{ spec.replicas | default(2) }}``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from konverge.errors import ConfigurationError
from konverge_box.expressions.errors import ExpressionError, ExpressionSyntaxError
from konverge_box.expressions.evaluation import (
    DEFAULT_LIMITS,
    Evaluation,
    EvaluationEnvironment,
    EvaluationError,
    EvaluationLimits,
)
from konverge_box.expressions.functions import LIBRARY
from konverge_box.expressions.values import Absent

__all__ = ["MAX_LENGTH", "Template", "compile_expression", "is_expression"]

MAX_LENGTH = 1 << 16
"""Letters that a text with expressions may have."""

_MAX_PROBLEM_LENGTH = 1000
_NO_ENVIRONMENT = EvaluationEnvironment()


def is_expression(text: str) -> bool:
    """Tell whether a text has expressions in it. Any other text is what it is, whatever its braces."""
    return "{{" in text or "{%" in text


def compile_expression(text: str, *, where: str) -> Template:
    """Compile a text; what can be wrong with it without any data is found here.

    Args:
        text: With or without expressions; at most `MAX_LENGTH` letters.
        where: Whose text it is, for messages.

    Raises:
        ExpressionSyntaxError: It cannot be compiled.
        ConfigurationError: Jinja2, which reads it, is not installed.
    """
    if len(text) > MAX_LENGTH:
        problem = f"expected at most {MAX_LENGTH} letters in a text with expressions, found {len(text)}"
        raise ExpressionSyntaxError(where, 0, 0, problem)
    compiler, grammar = _load_engine()
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        program = compiler.Compiler(LIBRARY).compile(grammar.parse_expression(plain))
    except grammar.GrammarError as error:
        raise ExpressionSyntaxError(where, *_find_position(plain, error.at), error.problem) from None
    return Template(plain, where, program.evaluate, program.read_paths, program.needs, program.at)


class Template:
    """A compiled text. It keeps nothing from one evaluation to the next, so any number of threads may share it.

    Made by `compile_expression`.
    """

    __slots__ = ("_at", "_evaluate", "_names", "_needs", "text", "where")

    def __init__(
        self,
        text: str,
        where: str,
        evaluate: Callable[[Evaluation], Any],
        names: frozenset[tuple[str, ...]],
        needs: frozenset[str],
        at: int,
    ) -> None:
        self.text = text
        self.where = where
        self._evaluate = evaluate
        self._names = names
        self._needs = needs
        self._at = at

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """The paths that it may read, as far as they are known beforehand: ``("cross", "db", "status")``."""
        return self._names

    def list_needs(self) -> frozenset[str]:
        """What its functions need: ``time``, ``randomness``. Empty: the same scope always gives the same result."""
        return self._needs

    def render(
        self,
        scope: Mapping[str, Any],
        *,
        environment: EvaluationEnvironment = _NO_ENVIRONMENT,
        limits: EvaluationLimits = DEFAULT_LIMITS,
    ) -> Any:
        """Come to the value.

        Args:
            scope: The names and their values; it is not changed, and the result shares nothing with it.
            environment: The time and the randomness, for functions that need them.
            limits: How much may be done for it.

        Returns:
            Of one expression alone (blanks around it do not count) its value, whatever its type; `OMIT` when the field
            is to be left out. Of everything else a text. It is `Sensitive` if a secret was looked at.

        Raises:
            ExpressionError: There is no value; a path that is absent, a function that cannot do with what it got, a
                limit.
        """
        return self._run_evaluation(scope, environment, limits, may_be_absent=False)

    def find(
        self,
        scope: Mapping[str, Any],
        *,
        environment: EvaluationEnvironment = _NO_ENVIRONMENT,
        limits: EvaluationLimits = DEFAULT_LIMITS,
    ) -> Any:
        """As `render`, but for a path that is absent the answer is an `Absent`: for who asks whether it is there."""
        return self._run_evaluation(scope, environment, limits, may_be_absent=True)

    def _run_evaluation(
        self,
        scope: Mapping[str, Any],
        environment: EvaluationEnvironment,
        limits: EvaluationLimits,
        *,
        may_be_absent: bool,
    ) -> Any:
        run = Evaluation(scope, environment, limits)
        try:
            value = self._evaluate(run)
            return value if may_be_absent and type(value) is Absent else run.finish_result(value, self._at)
        except EvaluationError as failure:
            problem = failure.problem
            if failure.shows and run.is_tainted:
                problem = f"{problem.partition(':')[0]}: it cannot do with a value that comes from a Secret (not shown)"
            raise ExpressionError(
                self.where, *_find_position(self.text, failure.at), problem[:_MAX_PROBLEM_LENGTH]
            ) from None
        except RecursionError:
            raise ExpressionError(self.where, 0, 0, "nests too deeply") from None


def _find_position(text: str, at: int) -> tuple[int, int]:
    """Line and column of an offset."""
    before = text[:at]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


@cache
def _load_engine() -> tuple[ModuleType, ModuleType]:
    """What compiles, loaded when it is needed: it takes some milliseconds, and an extra."""
    try:
        from konverge_box.expressions import compiler, grammar
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("jinja2", "markupsafe"):
            raise
        raise ConfigurationError(
            "expressions need Jinja2, which is not installed: pip install 'konverge[box]'"
        ) from error
    return compiler, grammar
