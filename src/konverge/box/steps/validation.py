"""Step 3: what has to hold of a custom resource; all that does not, at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from konverge.box.expressions import (
    MASK,
    OMIT,
    Absent,
    ExpressionError,
    Sensitive,
    compile_check,
    compile_expression,
    compile_field,
    compile_structure,
    earliest_change,
    has_sensitive,
)
from konverge.box.expressions.functions.choices import is_empty
from konverge.box.expressions.values import is_number, kind_of, text_of
from konverge.box.file import ValidationRule
from konverge.box.steps.conditional import conditions_of
from konverge.box.steps.errors import StepError
from konverge.box.steps.scope import Scope
from konverge.kube import Object

__all__ = ["BrokenRulesError", "Validation", "Violation", "Violations", "summary"]

_LONGEST_MESSAGE = 500
_LONGEST_VALUE = 60
_MOST_SHOWN = 20

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
class Violation:
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
class Violations:
    """All rules that do not hold, in the order of the file."""

    denied: tuple[Violation, ...] = ()
    warned: tuple[Violation, ...] = ()


class BrokenRulesError(StepError):
    """Rules that cannot be asked: the box's mistakes, not the custom resource's. No such rule counts as passed.

    Args:
        where: The rules, as a path in the file.
        problems: What is wrong, rule by rule.
        violations: Of the rules that could be asked.
    """

    def __init__(self, where: str, problems: tuple[ExpressionError, ...], violations: Violations) -> None:
        super().__init__(where, summary(problems))
        self.problems = problems
        self.violations = violations


def summary(found: Iterable[Violation | ExpressionError]) -> str:
    """All of them in one text that fits into a condition: of many the first 20, and how many more there are."""
    texts = [_shortened(str(each), 2 * _LONGEST_MESSAGE) for each in found]
    more = len(texts) - _MOST_SHOWN
    return "; ".join([*texts[:_MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])])


class Validation:
    """``validation``, compiled.

    Args:
        declared: The rules.
        where: Their path in the file, for example ``spec.crds.website.validation``.

    Raises:
        konverge.box.expressions.ExpressionSyntaxError: What loading would have refused.
    """

    def __init__(self, declared: tuple[ValidationRule, ...], where: str) -> None:
        self._where = where
        self._rules = [_Rule(rule, f"{where}[{number}]") for number, rule in enumerate(declared)]
        self.unique_fields = frozenset(rule.path for rule in self._rules if rule.is_unique)
        """The paths for which the environment of a pass must know ``is_unique``."""

    def check(self, scope: Scope) -> Violations:
        """Ask every rule.

        What is absent, null or empty is unique: nobody else can have it.

        Raises:
            BrokenRulesError: Some cannot be asked: an expression has no value, or a rule compares with something that
                its operator cannot compare with. All others were asked, too.
        """
        denied: list[Violation] = []
        warned: list[Violation] = []
        problems: list[ExpressionError] = []
        for rule in self._rules:
            try:
                violation = rule.violation(scope)
            except ExpressionError as error:
                problems.append(error)
                continue
            if violation is not None:
                (denied if rule.action == "deny" else warned).append(violation)
        violations = Violations(tuple(denied), tuple(warned))
        if problems:
            raise BrokenRulesError(self._where, tuple(problems), violations)
        return violations

    def next_change(self, now: datetime) -> datetime | None:
        """When a rule may apply, or no longer, although nothing else changes."""
        return earliest_change((rule.conditions for rule in self._rules), now)


class _Rule:
    def __init__(self, declared: ValidationRule, where: str) -> None:
        written: Object = declared.declared()
        self._where = where
        self.action: Literal["deny", "warn"] = declared.action
        self.conditions = conditions_of(declared, where)
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

    def violation(self, scope: Scope) -> Violation | None:
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
        return Violation(_shortened(self.path, _LONGEST_VALUE), self._told(scope, found), self._where)

    def _told(self, scope: Scope, found: Any) -> str:
        said = f"expected {self._asked(scope)}, found {_shown(found)}"
        if self._message is None:
            return said
        try:
            own = scope.render(self._message)
            return _shortened(MASK if isinstance(own, Sensitive) else text_of(own), _LONGEST_MESSAGE)
        except (ExpressionError, ValueError) as error:
            return _shortened(f"{said} (the rule's own message has no text: {error})", _LONGEST_MESSAGE)

    def _asked(self, scope: Scope) -> str:
        value = scope.render(self._compared)
        if not isinstance(value, list) or has_sensitive(value):
            return self._expected.format(_shown(value), "") if self._expected.count("{}") < 2 else _shown(value)
        shown = [_shown(each) for each in value]
        if self._expected.count("{}") == len(shown) == 2:
            return self._expected.format(*shown)
        return _shortened(self._expected.format(", ".join(shown)), _LONGEST_MESSAGE // 2)


def _shown(value: Any) -> str:
    """A value as messages show it; nothing of what is sensitive."""
    if has_sensitive(value):
        return "a value that comes from a Secret (not shown)"
    match value:
        case Absent():
            return "nothing"
        case "":
            return "empty text"
        case str():
            return repr(_shortened(value, _LONGEST_VALUE))
        case bool():
            return text_of(value)
        case list():
            return f"a list of {len(value)}"
    return _shortened(text_of(value), _LONGEST_VALUE) if is_number(value) else kind_of(value)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
