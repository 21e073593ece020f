"""Compiled strings with expressions: ``{{ spec.replicas | default(2) }}``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from konverge.errors import ConfigurationError
from konverge_box._internal.expressions.errors import ExpressionError, ExpressionSyntaxError
from konverge_box._internal.expressions.evaluation import (
    DEFAULT_LIMITS,
    Evaluation,
    EvaluationEnvironment,
    EvaluationError,
    EvaluationLimits,
)
from konverge_box._internal.expressions.functions import LIBRARY
from konverge_box._internal.expressions.values import Absent

__all__ = ["MAX_LENGTH", "Template", "compile_expression", "is_expression"]

MAX_LENGTH = 1 << 16
"""The maximum length of a string with expressions, in characters."""

_MAX_PROBLEM_LENGTH = 1000
_NO_ENVIRONMENT = EvaluationEnvironment()


def is_expression(text: str) -> bool:
    """Tell whether a string contains expressions. Single braces do not count."""
    return "{{" in text or "{%" in text


def compile_expression(text: str, *, where: str) -> Template:
    """Compile a string; every error that needs no data is found here.

    Args:
        text: The string, with or without expressions; at most `MAX_LENGTH` characters.
        where: The path of the string for messages.

    Raises:
        ExpressionSyntaxError: The string does not compile.
        ConfigurationError: Jinja2, which parses it, is not installed.
    """
    if len(text) > MAX_LENGTH:
        problem = f"expected at most {MAX_LENGTH} characters in a string with expressions, found {len(text)}"
        raise ExpressionSyntaxError(where, 0, 0, problem)
    compiler, grammar = _load_engine()
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        program = compiler.Compiler(LIBRARY).compile(grammar.parse_expression(plain))
    except grammar.GrammarError as error:
        raise ExpressionSyntaxError(where, *_find_position(plain, error.at), error.problem) from None
    return Template(plain, where, program.evaluate, program.read_paths, program.needs, program.at)


class Template:
    """A compiled string, created by `compile_expression`.

    It keeps no state between evaluations, so any number of threads may share it.
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
        self.text: str = text
        self.where: str = where
        self._evaluate = evaluate
        self._names = names
        self._needs = needs
        self._at = at

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that it may read, as far as they are constant: ``("cross", "db", "status")``."""
        return self._names

    def list_needs(self) -> frozenset[str]:
        """Return the inputs that its functions need: ``time``, ``randomness``; without any, it is deterministic."""
        return self._needs

    def render(
        self,
        scope: Mapping[str, Any],
        *,
        environment: EvaluationEnvironment = _NO_ENVIRONMENT,
        limits: EvaluationLimits = DEFAULT_LIMITS,
    ) -> Any:
        """Compute the value.

        Args:
            scope: The names and their values; it is not changed, and the result shares nothing with it.
            environment: The time and the randomness, for functions that need them.
            limits: The limits of the evaluation.

        Returns:
            The value of a single expression (surrounding whitespace is ignored), of any type; `OMIT` if the field is
            left out.
            For all other strings, a string. The result is `Sensitive` if the evaluation read a secret.

        Raises:
            ExpressionError: There is no value: a path is absent, a function rejects an argument, or a limit is
                exceeded.
        """
        return self._run_evaluation(scope, environment, limits, may_be_absent=False)

    def find(
        self,
        scope: Mapping[str, Any],
        *,
        environment: EvaluationEnvironment = _NO_ENVIRONMENT,
        limits: EvaluationLimits = DEFAULT_LIMITS,
    ) -> Any:
        """Compute the value as `render` does, but return an `Absent` for an absent path."""
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
                problem = f"{problem.partition(':')[0]}: the value from a Secret is invalid (not shown)"
            error = ExpressionError(self.where, *_find_position(self.text, failure.at), problem[:_MAX_PROBLEM_LENGTH])
            error.absent_path = failure.absent_path[:_MAX_PROBLEM_LENGTH]
            raise error from None
        except RecursionError:
            raise ExpressionError(self.where, 0, 0, "nested too deeply") from None


def _find_position(text: str, at: int) -> tuple[int, int]:
    """Return line and column of an offset."""
    before = text[:at]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


@cache
def _load_engine() -> tuple[ModuleType, ModuleType]:
    """Load the compiler on first use: it takes some milliseconds, and an extra."""
    try:
        from konverge_box._internal.expressions import compiler, grammar
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("jinja2", "markupsafe"):
            raise
        raise ConfigurationError(
            "expressions need Jinja2, which is not installed: pip install 'konverge[box]'"
        ) from error
    return compiler, grammar
