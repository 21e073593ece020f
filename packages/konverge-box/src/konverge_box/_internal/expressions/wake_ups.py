"""The times at which the passing of time changes the result of an expression, so that a reconcile can be scheduled.

Each function of time tells when its result changes (`Function.next_change`). A change of a function is not always one
of the whole: `evaluate_until_change` therefore evaluates ahead, from change to change, until the result is another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from konverge_box._internal.expressions.errors import ExpressionError
from konverge_box._internal.expressions.evaluation import EvaluationEnvironment, WakeUps

__all__ = ["MAX_LOOKAHEAD", "WakeUps", "evaluate_until_change"]

T = TypeVar("T")

MAX_LOOKAHEAD = 100
"""Maximum number of evaluations ahead. After them, the next reconcile continues the search: it changes nothing."""


def evaluate_until_change(evaluate: Callable[[EvaluationEnvironment], T], environment: EvaluationEnvironment) -> T:
    """Evaluate something that depends on the time, and record when its result can be another one.

    Args:
        evaluate: Computes the result at the time of an environment, without other effects.
        environment: The environment with its time. Its `wake_ups` get the time of the change.

    Raises:
        ExpressionError: The evaluation failed.
    """
    if environment.wake_ups is None or environment.now is None:
        return evaluate(environment)
    result, change = _evaluate_once(evaluate, environment)
    for _ in range(MAX_LOOKAHEAD):
        if change is None:
            return result
        try:
            later, next_change = _evaluate_once(evaluate, replace(environment, now=change))
        except ExpressionError:
            break
        if later != result:
            break
        change = next_change
    environment.wake_ups.add(change)
    return result


def _evaluate_once(
    evaluate: Callable[[EvaluationEnvironment], T], environment: EvaluationEnvironment
) -> tuple[T, datetime | None]:
    changes = WakeUps()
    result = evaluate(replace(environment, wake_ups=None, function_changes=changes))
    return result, changes.earliest
