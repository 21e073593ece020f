"""Step 3: what has to hold of a custom resource; all that does not, at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from konverge.kube import Object
from konverge_box.expressions import (
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
from konverge_box.expressions.functions.choices import is_empty
from konverge_box.expressions.values import describe_value_type, format_scalar, is_number
from konverge_box.file import ValidationRule
from konverge_box.steps.entry_conditions import compile_entry_conditions
from konverge_box.steps.errors import StepError
from konverge_box.steps.scope import Scope

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
"""What each operator asks for, in the words of messages."""
_OPPOSITES = {"exists": "notExists", "notExists": "exists", "unique": "notUnique"}


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """A rule that does not hold.

    Args:
        field: What the rule looks at, as the file says it.
        message: The rule's own message, or else what was expected and what was found.
        where: The rule, as a path in the file.
    """

    field: str
    message: str
    where: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


@dataclass(frozen=True, slots=True)
class RuleViolations:
    """All rules that do not hold, in the order of the file."""

    denied: tuple[RuleViolation, ...] = ()
    warned: tuple[RuleViolation, ...] = ()


class RuleEvaluationError(StepError):
    """Rules that cannot be asked: the box's mistakes, not the custom resource's. No such rule counts as passed.

    Args:
        where: The rules, as a path in the file.
        problems: What is wrong, rule by rule.
        violations: Of the rules that could be asked.
    """

    def __init__(self, where: str, problems: tuple[ExpressionError, ...], violations: RuleViolations) -> None:
        super().__init__(where, summarize_violations(problems))
        self.problems = problems
        self.violations = violations


def summarize_violations(found: Iterable[RuleViolation | ExpressionError]) -> str:
    """All of them in one text that fits into a condition: of many the first 20, and how many more there are."""
    texts = [_shorten_text(str(each), 2 * _MAX_MESSAGE_LENGTH) for each in found]
    more = len(texts) - _MAX_VIOLATIONS
    return "; ".join([*texts[:_MAX_VIOLATIONS], *([f"and {more} more"] if more > 0 else [])])


class Validation:
    """``validation``, compiled.

    Args:
        declared: The rules.
        where: Their path in the file, for example ``spec.crds.website.validation``.

    Raises:
        konverge_box.expressions.ExpressionSyntaxError: What loading would have refused.
    """

    def __init__(self, declared: tuple[ValidationRule, ...], where: str) -> None:
        self._where = where
        self._rules = [_CompiledRule(rule, f"{where}[{number}]") for number, rule in enumerate(declared)]
        self.unique_fields = frozenset(rule.path for rule in self._rules if rule.is_unique)
        """The paths for which the environment of a pass must know ``is_unique``."""

    def check_rules(self, scope: Scope) -> RuleViolations:
        """Ask every rule.

        What is absent, null or empty is unique: nobody else can have it.

        Raises:
            RuleEvaluationError: Some cannot be asked: an expression has no value, or a rule compares with something
            that
                its operator cannot compare with. All others were asked, too.
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
        violations = RuleViolations(tuple(denied), tuple(warned))
        if problems:
            raise RuleEvaluationError(self._where, tuple(problems), violations)
        return violations

    def find_next_change(self, now: datetime) -> datetime | None:
        """When a rule may apply, or no longer, although nothing else changes."""
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
        self.is_unique = self._check.operator == "unique"
        self._message = compile_expression(declared.message, where=f"{where}.message") if declared.message else None
        operator = self._check.name
        value = written.get(operator)
        if value is False:  # of exists and its like, which have no value to compare with
            operator = _OPPOSITES.get(operator, operator)
        self._expected = _EXPECTED[operator]
        self._compared = compile_structure(value, where=f"{where}.{self._check.name}")

    def find_violation(self, scope: Scope) -> RuleViolation | None:
        """What is wrong, or None.

        Raises:
            ExpressionError: That cannot be told.
        """
        if not scope.holds(self.conditions):
            return None
        found = scope.find(self._field)
        if found is OMIT:
            found = Absent(self.path, self.path, None)
        if self.is_unique and is_empty(found):
            return None
        if self._check.accepts(found, scope.names, path=self.path, environment=scope.environment):
            return None
        return RuleViolation(
            _shorten_text(self.path, _MAX_VALUE_LENGTH), self._format_message(scope, found), self._where
        )

    def _format_message(self, scope: Scope, found: Any) -> str:
        said = f"expected {self._format_expected(scope)}, found {_format_value(found)}"
        if self._message is None:
            return said
        try:
            own = scope.render(self._message)
            return _shorten_text(MASK if isinstance(own, Sensitive) else format_scalar(own), _MAX_MESSAGE_LENGTH)
        except (ExpressionError, ValueError) as error:
            return _shorten_text(f"{said} (the rule's own message has no text: {error})", _MAX_MESSAGE_LENGTH)

    def _format_expected(self, scope: Scope) -> str:
        value = scope.render(self._compared)
        if not isinstance(value, list) or has_sensitive(value):
            return (
                self._expected.format(_format_value(value), "")
                if self._expected.count("{}") < 2
                else _format_value(value)
            )
        shown = [_format_value(each) for each in value]
        if self._expected.count("{}") == len(shown) == 2:
            return self._expected.format(*shown)
        return _shorten_text(self._expected.format(", ".join(shown)), _MAX_MESSAGE_LENGTH // 2)


def _format_value(value: Any) -> str:
    """A value as messages show it; nothing of what is sensitive."""
    if has_sensitive(value):
        return "a value that comes from a Secret (not shown)"
    match value:
        case Absent():
            return "nothing"
        case "":
            return "empty text"
        case str():
            return repr(_shorten_text(value, _MAX_VALUE_LENGTH))
        case bool():
            return format_scalar(value)
        case list():
            return f"a list of {len(value)}"
    return _shorten_text(format_scalar(value), _MAX_VALUE_LENGTH) if is_number(value) else describe_value_type(value)


def _shorten_text(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
