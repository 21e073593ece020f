"""Label and field selectors: read from their text or from a ``LabelSelector``, and matched.

The text forms are those of the API's query parameters (``app=web,tier in (a, b),!legacy`` and
``metadata.name=web,status.phase!=Running``); what is refused, and the sentence that says why, is the API server's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from konverge.kube.name_validation import validate_label_key, validate_label_value

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
    """The selector cannot be read; the message says what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """What one label must be.

    Attributes:
        key: The label.
        operator: ``in`` (also ``=``), ``notin`` (also ``!=``), ``exists``, ``!`` (does not exist), ``gt``, ``lt``.
        values: The values that the operator takes.
    """

    key: str
    operator: LabelOperator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels meet it. A label that is missing is ``notin`` anything and neither ``gt`` nor ``lt``."""
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
    """Requirements that labels must meet, all of them. Without any it matches everything."""

    requirements: tuple[LabelRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read the text form; empty text matches everything.

        Raises:
            SelectorSyntaxError: It has another form.
        """
        return cls(tuple(_LabelSelectorParser(text).parse_requirements()))

    @classmethod
    def from_object(cls, selector: Mapping[str, Any] | None) -> LabelSelector | None:
        """Read a ``LabelSelector`` as objects carry it, in ``spec.selector`` for example.

        None for None, which matches nothing; an empty one matches everything.

        Raises:
            SelectorSyntaxError: An expression has an operator that does not exist.
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
        """The selector that asks for exactly these values, as a Service's ``spec.selector`` does."""
        return cls(tuple(LabelRequirement(key, "in", frozenset({labels[key]})) for key in sorted(labels)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels meet all requirements."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        """The text form, as the ``status.selector`` of a scale subresource shows it."""
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
    """Reads requirements from left to right, one token ahead; the empty token is the end."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def parse_requirements(self) -> list[LabelRequirement]:
        found: list[LabelRequirement] = []
        if not self._peek():
            return found
        while True:
            token = self._peek()
            if token != "!" and not _is_word(token):
                raise SelectorSyntaxError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._parse_requirement())
            except SelectorSyntaxError as mistake:
                raise SelectorSyntaxError(f"unable to parse requirement: {mistake}") from None
            token = self._take()
            if not token:
                return found
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
        written = self._take()
        operator = _OPERATORS.get(written)
        if operator is None:
            raise SelectorSyntaxError(f"found '{written}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._parse_value_set() if written in ("in", "notin") else [self._parse_exact_value()]
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
                # Nothing before a comma, or before the closing bracket, stands for the empty value.
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


def _raise_on_errors(mistakes: Sequence[str], subject: str) -> None:
    if mistakes:
        raise SelectorSyntaxError(f"{subject}: {mistakes[0]}")


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """What one field must be, or with `equal` off must not be."""

    field: str
    value: str
    equal: bool = True


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Requirements on fields, all of which must be met. Which fields a resource offers is for its server to say."""

    requirements: tuple[FieldRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        r"""Read the text form. In a value ``\``, ``,`` and ``=`` are escaped with a backslash.

        Raises:
            SelectorSyntaxError: It has another form.
        """
        found = []
        for part in re.findall(r"(?:\\.|[^,\\])+", text, re.DOTALL):
            written = re.fullmatch(r"((?:\\.|[^=!\\])*)(!=|==|=)(.*)", part, re.DOTALL)
            if written is None:
                raise SelectorSyntaxError(f"invalid selector: '{text}'; can't understand '{part}'")
            field, operator, value = written.groups()
            found.append(FieldRequirement(field, _unescape(value), operator != "!="))
        return cls(tuple(found))

    def matches(self, read: Callable[[str], str]) -> bool:
        """Tell whether an object meets all requirements.

        Args:
            read: Gives the text of a field of the object, empty when it is unset.
        """
        return all((read(found.field) == found.value) is found.equal for found in self.requirements)


def _unescape(value: str) -> str:
    plain = re.sub(r"\\([\\,=])", "\0", value)
    for character in plain:
        if character in "=,\\":
            raise SelectorSyntaxError(f"invalid field selector: unescaped character in value: {ord(character)}")
    return re.sub(r"\\([\\,=])", r"\1", value)
