"""The ``waitFor`` and ``readyWhen`` conditions of a resource, and their description in words."""

from __future__ import annotations

import json
from typing import Any

from konverge._internal.kube import Object
from konverge_box._internal.expressions import ExpressionError, compile_condition
from konverge_box._internal.file import ConditionSpec
from konverge_box._internal.steps.children import to_expression_value
from konverge_box._internal.steps.scope import Scope

__all__ = ["WaitConditions", "describe_condition"]

_MAX_LENGTH = 200
_WORDS = {
    "equals": "equals",
    "notEquals": "does not equal",
    "contains": "contains",
    "notContains": "does not contain",
    "prefix": "begins with",
    "notPrefix": "does not begin with",
    "suffix": "ends with",
    "notSuffix": "does not end with",
    "in": "is in",
    "notIn": "is not in",
    "regex": "matches",
    "greaterThan": "is greater than",
    "lessThan": "is less than",
    "min": "is at least",
    "max": "is at most",
    "between": "is between",
    "notBetween": "is not between",
    "typeOf": "has the type",
}
_NO_OPERATORS = frozenset({"field", "negate", "time", "dayOfWeek", "cron", "duration"})


class WaitConditions:
    """Compiled conditions that a resource waits for: it is applied, or it is ready, when all hold.

    Args:
        declared: The conditions.
        where: Their path in the file.
    """

    def __init__(self, declared: tuple[ConditionSpec, ...], where: str) -> None:
        self.conditions = tuple(
            compile_condition(each.to_mapping(), where=f"{where}[{index}]") for index, each in enumerate(declared)
        )
        self._descriptions = tuple(describe_condition(each) for each in declared)

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that the conditions may read."""
        return frozenset[tuple[str, ...]]().union(*(each.list_read_paths() for each in self.conditions))

    def find_unmet(self, scope: Scope) -> str:
        """Describe the first condition that does not hold; return an empty text when all hold.

        Raises:
            konverge_box.expressions.ExpressionError: A condition cannot be evaluated.
        """
        for condition, words in zip(self.conditions, self._descriptions, strict=True):
            if not condition.holds(scope.names, environment=scope.environment):
                return f"waiting for {words}"
        return ""

    def find_unready(self, scope: Scope, live: Object) -> str:
        """Describe the first condition that does not hold for the live object; return an empty text when all hold.

        A field that the object does not have yet is awaited, and is not an error.

        Raises:
            konverge_box.expressions.ExpressionError: A condition cannot be evaluated for another reason.
        """
        try:
            return self.find_unmet(scope.with_names(self=to_expression_value(live)))
        except ExpressionError as error:
            if not error.absent_path or error.absent_name in scope.names:
                raise
            return f"waiting for {error.absent_path}"


def describe_condition(condition: ConditionSpec) -> str:
    """Describe a condition in words, with the values of the file and without values of the cluster."""
    declared = condition.to_mapping()
    parts = []
    if condition.field:
        parts.append(f"{condition.field} {_describe_operator(declared)}")
    if condition.time is not None:
        parts.append(f"the time of {_format_value(declared['time'])}")
    if "dayOfWeek" in declared:
        parts.append(f"the day of the week {_format_value(declared['dayOfWeek'])}")
    if condition.cron:
        parts.append(f"the schedule {condition.cron}")
    words = " and ".join(parts)
    words = f"not ({words})" if condition.negate else words
    return words if len(words) <= _MAX_LENGTH else f"{words[: _MAX_LENGTH - 1]}…"


def _describe_operator(declared: dict[str, Any]) -> str:
    for key, value in declared.items():
        if key in _NO_OPERATORS:
            continue
        if key in ("exists", "notExists"):
            return "exists" if (key == "exists") is bool(value) else "does not exist"
        return f"{_WORDS[key]} {_format_value(value)}"
    return "exists"


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
