"""Step 3: the validation rules of a custom resource. All broken rules are reported together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from konverge._internal.kube import Object
from konverge._internal.message_text import shorten
from konverge_box._internal.expressions import (
    MASK,
    OMIT,
    Absent,
    ExpressionError,
    Sensitive,
    compile_check,
    compile_expression,
    compile_field,
    compile_structure,
    find_earliest_change,
    has_sensitive,
)
from konverge_box._internal.expressions.functions.choices import is_empty
from konverge_box._internal.expressions.values import describe_value_type, format_scalar, is_number
from konverge_box._internal.expressions.wake_ups import evaluate_until_change
from konverge_box._internal.file import ValidationRule
from konverge_box._internal.steps.entry_conditions import compile_entry_conditions
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.scope import Scope

__all__ = ["RuleEvaluationError", "RuleViolation", "RuleViolations", "Validation", "summarize_violations"]

_MAX_MESSAGE_LENGTH = 500
_MAX_VALUE_LENGTH = 60
_MAX_VIOLATIONS = 20

_EXPECTED = {
    "equals": "{}",
    "notEquals": "anything but {}",
    "contains": "something that contains {}",
    "notContains": "something that does not contain {}",
    "prefix": "something that begins with {}",
    "notPrefix": "something that does not begin with {}",
    "suffix": "something that ends with {}",
    "notSuffix": "something that does not end with {}",
    "in": "one of {}",
    "notIn": "none of {}",
    "regex": "a match of {}",
    "exists": "a value",
    "notExists": "no value",
    "greaterThan": "more than {}",
    "lessThan": "less than {}",
    "min": "at least {}",
    "max": "at most {}",
    "between": "a number from {} to {}",
    "notBetween": "a number that is not from {} to {}",
    "typeOf": "the type {}",
    "unique": "a value that no other object has",
    "notUnique": "a value that another object has",
}
"""The requirement of each operator, in words for messages."""
_OPPOSITES = {"exists": "notExists", "notExists": "exists", "unique": "notUnique"}


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """A broken rule.

    Args:
        field: The field of the rule, as written in the file.
        message: The rule's own message, or else the expected value and the value that was found.
        where: The rule, as a path in the file.
    """

    field: str
    message: str
    where: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


@dataclass(frozen=True, slots=True)
class RuleViolations:
    """All broken rules, in the order of the file.

    Args:
        denied: The broken rules that deny the custom resource.
        warned: The broken rules that only warn.
        problems: The errors of rules that cannot be evaluated.
    """

    denied: tuple[RuleViolation, ...] = ()
    warned: tuple[RuleViolation, ...] = ()
    problems: tuple[ExpressionError, ...] = ()

    def summarize_denial(self) -> str:
        """Return the text for a denied custom resource: the broken rules, then those that cannot be evaluated."""
        return summarize_violations((*self.denied, *self.problems))


class RuleEvaluationError(StepError):
    """An error of rules that cannot be evaluated. The box is wrong, not the custom resource. No such rule has passed.

    Args:
        where: The rules, as a path in the file.
        problems: The errors, rule by rule.
        violations: The broken rules among those that could be evaluated.
    """

    def __init__(self, where: str, problems: tuple[ExpressionError, ...], violations: RuleViolations) -> None:
        super().__init__(where, summarize_violations(problems))
        self.problems = problems
        self.violations = violations


def summarize_violations(problems: Iterable[RuleViolation | ExpressionError]) -> str:
    """Return one text that fits into a condition: the first 20 problems, and the number of further ones."""
    texts = [shorten(str(problem), 2 * _MAX_MESSAGE_LENGTH) for problem in problems]
    more = len(texts) - _MAX_VIOLATIONS
    return "; ".join([*texts[:_MAX_VIOLATIONS], *([f"and {more} more"] if more > 0 else [])])


class Validation:
    """The compiled ``validation`` rules.

    Args:
        declared: The rules.
        where: Their path in the file, for example ``spec.crds.website.validation``.

    Raises:
        konverge_box.expressions.ExpressionSyntaxError: A rule is invalid. Loading the file reports that earlier.
    """

    def __init__(self, declared: tuple[ValidationRule, ...], where: str) -> None:
        self._where = where
        self._rules = [_CompiledRule(rule, f"{where}[{number}]") for number, rule in enumerate(declared)]
        self.unique_fields = frozenset(rule.path for rule in self._rules if rule.is_unique)
        """The paths for which the environment of a reconcile needs ``is_unique``."""

    def check_rules(self, scope: Scope) -> RuleViolations:
        """Evaluate every rule.

        A value that is absent, null or empty always counts as unique. A rule that cannot be evaluated does not hide the
        denial of another one: the user can change the custom resource.

        Raises:
            RuleEvaluationError: No rule denies the custom resource, and rules cannot be evaluated: an expression has no
                value, or an operator does not support the value. All other rules were evaluated.
        """
        denied: list[RuleViolation] = []
        warned: list[RuleViolation] = []
        problems: list[ExpressionError] = []
        for rule in self._rules:
            try:
                violation = rule.find_violation(scope)
            except ExpressionError as error:
                problems.append(error)
                continue
            if violation is not None:
                (denied if rule.action == "deny" else warned).append(violation)
        violations = RuleViolations(tuple(denied), tuple(warned), tuple(problems))
        if problems and not denied:
            raise RuleEvaluationError(self._where, tuple(problems), violations)
        return violations

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the next time at which the conditions of a rule can change by themselves; None without one."""
        return find_earliest_change((rule.conditions for rule in self._rules), now)


class _CompiledRule:
    def __init__(self, declared: ValidationRule, where: str) -> None:
        written: Object = declared.to_mapping()
        self._where = where
        self.action: Literal["deny", "warn"] = declared.action
        self.conditions = compile_entry_conditions(declared, where)
        self.path = declared.field.strip().removeprefix(".")
        self._field = compile_field(declared.field, where=f"{where}.field")
        self._check = compile_check(written, where=where)
        self._reads_time = "time" in self._field.list_needs() | self._check.list_needs()
        self.is_unique = self._check.operator == "unique"
        self._message = compile_expression(declared.message, where=f"{where}.message") if declared.message else None
        operator = self._check.name
        value = written.get(operator)
        if value is False:  # exists and unique with false require the opposite
            operator = _OPPOSITES.get(operator, operator)
        self._expected = _EXPECTED[operator]
        self._compared = compile_structure(value, where=f"{where}.{self._check.name}")

    def find_violation(self, scope: Scope) -> RuleViolation | None:
        """Return the violation of the rule; None when it holds.

        Raises:
            ExpressionError: The rule cannot be evaluated.
        """
        if not scope.holds(self.conditions):
            return None
        environment = scope.environment
        if self._reads_time:
            is_accepted = evaluate_until_change(lambda each: self._accepts(Scope(scope.names, each))[0], environment)
            value = self._accepts(scope)[1]
        else:
            is_accepted, value = self._accepts(scope)
        if is_accepted:
            return None
        return RuleViolation(shorten(self.path, _MAX_VALUE_LENGTH), self._format_message(scope, value), self._where)

    def _accepts(self, scope: Scope) -> tuple[bool, Any]:
        """Return whether the value is accepted, and the value."""
        value = scope.find(self._field)
        if value is OMIT:
            value = Absent(self.path, self.path, None)
        if self.is_unique and is_empty(value):
            return True, value
        return self._check.accepts(value, scope.names, path=self.path, environment=scope.environment), value

    def _format_message(self, scope: Scope, value: Any) -> str:
        default = f"expected {self._format_expected(scope)}, found {_format_value(value)}"
        if self._message is None:
            return default
        try:
            own = scope.render(self._message)
            return shorten(MASK if isinstance(own, Sensitive) else format_scalar(own), _MAX_MESSAGE_LENGTH)
        except (ExpressionError, ValueError) as error:
            return shorten(f"{default} (the rule's own message cannot be evaluated: {error})", _MAX_MESSAGE_LENGTH)

    def _format_expected(self, scope: Scope) -> str:
        value = scope.render(self._compared)
        if not isinstance(value, list) or has_sensitive(value):
            return (
                self._expected.format(_format_value(value), "")
                if self._expected.count("{}") < 2
                else _format_value(value)
            )
        texts = [_format_value(item) for item in value]
        if self._expected.count("{}") == len(texts) == 2:
            return self._expected.format(*texts)
        return shorten(self._expected.format(", ".join(texts)), _MAX_MESSAGE_LENGTH // 2)


def _format_value(value: Any) -> str:
    """Format a value for messages, without sensitive values."""
    if has_sensitive(value):
        return "a value that comes from a Secret (not shown)"
    match value:
        case Absent():
            return "nothing"
        case "":
            return "empty text"
        case str():
            return repr(shorten(value, _MAX_VALUE_LENGTH))
        case bool():
            return format_scalar(value)
        case list():
            return f"a list of {len(value)} items"
    return shorten(format_scalar(value), _MAX_VALUE_LENGTH) if is_number(value) else describe_value_type(value)
