"""Label and field selectors, parsed from their text or from a ``LabelSelector``.

The text forms are those of the API's query parameters (``app=web,tier in (a, b),!legacy`` and
``metadata.name=web,status.phase!=Running``). The error messages are those of the API server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from konverge._internal.kube.name_validation import validate_label_key, validate_label_value
from konverge._internal.kube.objects import Object

__all__ = ["FieldRequirement", "FieldSelector", "LabelRequirement", "LabelSelector", "SelectorSyntaxError"]

LabelOperator: TypeAlias = Literal["in", "notin", "exists", "!", "gt", "lt"]

_OPERATORS: dict[str, LabelOperator] = {
    "=": "in",
    "==": "in",
    "in": "in",
    "!=": "notin",
    "notin": "notin",
    ">": "gt",
    "<": "lt",
}
_EXPRESSION_OPERATORS: dict[str, LabelOperator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}
# A word ends at white space or at one of these.
_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_WORD = re.compile(r"[^\s=!(),<>]+")
_INTEGER = re.compile(r"[+-]?[0-9]+")


class SelectorSyntaxError(ValueError):
    """A selector cannot be parsed; the message contains the found and the expected text."""


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """A requirement on one label.

    Attributes:
        key: The key of the label.
        operator: ``in`` (also ``=``), ``notin`` (also ``!=``), ``exists``, ``!`` (does not exist), ``gt``, ``lt``.
        values: The values for the operator.
    """

    key: str
    operator: LabelOperator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return True if the labels meet it. A missing label meets each ``notin``, and no ``gt`` or ``lt``."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "gt" | "lt":
                if value is None or not _INTEGER.fullmatch(value):
                    return False
                limit = int(next(iter(self.values)))
                return int(value) > limit if self.operator == "gt" else int(value) < limit


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that labels must all meet. An empty selector matches everything."""

    requirements: tuple[LabelRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Parse the text form; an empty text matches everything.

        Raises:
            SelectorSyntaxError: The text has another form.
        """
        return cls(tuple(_LabelSelectorParser(text).parse_requirements()))

    @classmethod
    def from_object(cls, selector: Mapping[str, Any] | None) -> LabelSelector | None:
        """Read the ``LabelSelector`` of an object, for example in ``spec.selector``.

        Return None for None, which matches nothing; an empty selector matches everything.

        Raises:
            SelectorSyntaxError: An expression has an unknown operator.
        """
        if selector is None:
            return None
        labels = selector.get("matchLabels") or {}
        requirements = [LabelRequirement(key, "in", frozenset({labels[key]})) for key in sorted(labels)]
        for expression in selector.get("matchExpressions") or ():
            operator = _EXPRESSION_OPERATORS.get(expression.get("operator", ""))
            if operator is None:
                raise SelectorSyntaxError(f'"{expression.get("operator", "")}" is not a valid label selector operator')
            values = frozenset(expression.get("values") or ())
            requirements.append(LabelRequirement(expression.get("key", ""), operator, values))
        return cls(tuple(requirements))

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> LabelSelector:
        """Return the selector for exactly these values, as in the ``spec.selector`` of a Service."""
        return cls(tuple(LabelRequirement(key, "in", frozenset({labels[key]})) for key in sorted(labels)))

    def to_object(self) -> Object:
        """Return the ``LabelSelector`` of an object, for example for ``objectSelector``.

        Raises:
            SelectorSyntaxError: A requirement compares numbers, which such a selector cannot express.
        """
        operators = {operator: name for name, operator in _EXPRESSION_OPERATORS.items()}
        expressions = []
        for requirement in self.requirements:
            if requirement.operator not in operators:
                raise SelectorSyntaxError(f'"{self}": expected no comparison of numbers in the selector of an object')
            expression: Object = {"key": requirement.key, "operator": operators[requirement.operator]}
            if requirement.values:
                expression["values"] = sorted(requirement.values)
            expressions.append(expression)
        return {"matchExpressions": expressions}

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return True if the labels meet all requirements."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        """Return the text form, as in the ``status.selector`` of a scale subresource."""
        return ",".join(_format_requirement(requirement) for requirement in self.requirements)


def _format_requirement(requirement: LabelRequirement) -> str:
    values = ",".join(sorted(requirement.values))
    match requirement.operator:
        case "exists":
            return requirement.key
        case "!":
            return f"!{requirement.key}"
        case "in" if len(requirement.values) == 1:
            return f"{requirement.key}={values}"
        case "gt":
            return f"{requirement.key}>{values}"
        case "lt":
            return f"{requirement.key}<{values}"
        case operator:
            return f"{requirement.key} {operator} ({values})"


class _LabelSelectorParser:
    """A parser of requirements from left to right, one token ahead; the empty token is the end."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def parse_requirements(self) -> list[LabelRequirement]:
        requirements: list[LabelRequirement] = []
        if not self._peek():
            return requirements
        while True:
            token = self._peek()
            if token != "!" and not _is_word(token):
                raise SelectorSyntaxError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._parse_requirement())
            except SelectorSyntaxError as error:
                raise SelectorSyntaxError(f"unable to parse requirement: {error}") from None
            token = self._take()
            if not token:
                return requirements
            if token != ",":
                raise SelectorSyntaxError(f"found '{token}', expected: ',' or 'end of string'")
            token = self._peek()
            if token != "!" and not _is_word(token):
                raise SelectorSyntaxError(f"found '{token}', expected: identifier after ','")

    def _parse_requirement(self) -> LabelRequirement:
        is_absent = self._peek() == "!"
        if is_absent:
            self._take()
        key = self._take()
        if not _is_word(key):
            raise SelectorSyntaxError(f"found '{key}', expected: identifier")
        _raise_on_errors(validate_label_key(key), f'<nil>: Invalid value: "{key}"')
        if is_absent:
            return LabelRequirement(key, "!")
        if self._peek() in ("", ","):
            return LabelRequirement(key, "exists")
        token = self._take()
        operator = _OPERATORS.get(token)
        if operator is None:
            raise SelectorSyntaxError(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._parse_value_set() if token in ("in", "notin") else [self._parse_exact_value()]
        if operator in ("gt", "lt"):
            if not _INTEGER.fullmatch(values[0]):
                raise SelectorSyntaxError(
                    f"values[0]: Invalid value: \"{values[0]}\": for 'Gt', 'Lt' operators, the value must be an integer"
                )
        else:
            for index, value in enumerate(values):
                _raise_on_errors(validate_label_value(value), f'values[{index}][{key}]: Invalid value: "{value}"')
        return LabelRequirement(key, operator, frozenset(values))

    def _parse_exact_value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._take()
        if not _is_word(value):
            raise SelectorSyntaxError(f"found '{value}', expected: identifier")
        return value

    def _parse_value_set(self) -> list[str]:
        token = self._take()
        if token != "(":
            raise SelectorSyntaxError(f"found '{token}' expected: '('")
        values: list[str] = []
        has_value = False
        while True:
            token = self._take()
            if _is_word(token):
                if has_value:
                    raise SelectorSyntaxError(f"found '{token}', expected: ',' or ')'")
                values.append(token)
                has_value = True
            elif token in (",", ")"):
                # A missing value before a comma or the closing parenthesis is the empty value.
                if not has_value:
                    values.append("")
                if token == ")":
                    return values
                has_value = False
            else:
                expected = "',' or ')'" if values else "',', ')' or identifier"
                raise SelectorSyntaxError(f"found '{token}', expected: {expected}")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token


def _is_word(token: str) -> bool:
    return _WORD.fullmatch(token) is not None


def _raise_on_errors(errors: Sequence[str], subject: str) -> None:
    if errors:
        raise SelectorSyntaxError(f"{subject}: {errors[0]}")


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """A requirement on one field: the value that it must have, or without `equal` must not have."""

    field: str
    value: str
    equal: bool = True


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Requirements that fields must all meet. The server decides which fields it supports for a resource."""

    requirements: tuple[FieldRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        r"""Parse the text form. In a value ``\``, ``,`` and ``=`` are escaped with a backslash.

        Raises:
            SelectorSyntaxError: The text has another form.
        """
        requirements = []
        for part in re.findall(r"(?:\\.|[^,\\])+", text, re.DOTALL):
            match = re.fullmatch(r"((?:\\.|[^=!\\])*)(!=|==|=)(.*)", part, re.DOTALL)
            if match is None:
                raise SelectorSyntaxError(f"invalid selector: '{text}'; can't understand '{part}'")
            field, operator, value = match.groups()
            requirements.append(FieldRequirement(field, _unescape(value), operator != "!="))
        return cls(tuple(requirements))

    def matches(self, read: Callable[[str], str]) -> bool:
        """Return True if an object meets all requirements.

        Args:
            read: A function that returns the text of a field of the object; empty if it is unset.
        """
        return all((read(each.field) == each.value) is each.equal for each in self.requirements)


def _unescape(value: str) -> str:
    plain = re.sub(r"\\([\\,=])", "\0", value)
    for character in plain:
        if character in "=,\\":
            raise SelectorSyntaxError(f"invalid field selector: unescaped character in value: {ord(character)}")
    return re.sub(r"\\([\\,=])", r"\1", value)
