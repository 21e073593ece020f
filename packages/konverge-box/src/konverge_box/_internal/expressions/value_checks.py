"""Operators that test a value, as conditions and validation rules declare them.

Values are compared as strings in the form of YAML: ``replicas: 3`` equals ``"3"``. Absent, null and the empty string
are all the empty string here; as a number they are 0. Numbers may be quantities: ``500m``, ``2Gi``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from konverge._internal.kube.quantities import quantity_to_fraction
from konverge_box._internal.expressions.errors import ExpressionError, ExpressionSyntaxError
from konverge_box._internal.expressions.evaluation import DEFAULT_LIMITS, EvaluationEnvironment, EvaluationLimits
from konverge_box._internal.expressions.functions.choices import get_type_name, is_empty
from konverge_box._internal.expressions.functions.strings import compile_cached_pattern, has_match
from konverge_box._internal.expressions.sensitive import has_sensitive, reveal_sensitive
from konverge_box._internal.expressions.structure import Structure, compile_structure
from konverge_box._internal.expressions.template import is_expression
from konverge_box._internal.expressions.values import (
    OMIT,
    Absent,
    describe_value_type,
    format_hint,
    format_scalar,
    is_number,
)

__all__ = ["OPERATOR_KEYS", "ValueCheck", "compile_check"]

_NO_ENVIRONMENT = EvaluationEnvironment()
_TYPES = ("map", "list", "string", "number", "bool", "null")


class _OperatorRule(NamedTuple):
    """One operator.

    Args:
        prepare: Converts the declared value to the operand of the test; a `ValueError` describes an invalid value.
        holds: The test, with the actual value and the operand.
    """

    prepare: Callable[[Any], Any]
    holds: Callable[[Any, Any], bool]


def _parse_text(declared: Any) -> str:
    if declared is None:
        return ""
    try:
        return format_scalar(declared)
    except ValueError:
        raise ValueError(f"expected a string, a number or a boolean, found {describe_value_type(declared)}") from None


def _parse_number(declared: Any) -> Fraction:
    number = _to_number(declared)
    if number is None:
        raise ValueError(f"expected a number or a quantity, found {_format_declared(declared)}")
    return number


def _parse_range(declared: Any) -> tuple[Fraction, Fraction]:
    bounds = declared.split(",") if isinstance(declared, str) else declared
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise ValueError(f"expected two numbers such as '1,10', found {_format_declared(declared)}")
    least, most = _parse_number(bounds[0]), _parse_number(bounds[1])
    if least > most:
        raise ValueError(f"expected the smaller number first, found {_format_declared(declared)}")
    return least, most


def _parse_choices(declared: Any) -> frozenset[str]:
    if isinstance(declared, list):
        return frozenset(_parse_text(each).strip() for each in declared)
    return frozenset(each.strip() for each in _parse_text(declared).split(","))


def _parse_pattern(declared: Any) -> Any:
    if not isinstance(declared, str):
        raise ValueError(f"expected a regular expression (RE2), found {describe_value_type(declared)}")
    return compile_cached_pattern(declared)


def _parse_type(declared: Any) -> str:
    if declared not in _TYPES:
        word = declared if isinstance(declared, str) else ""
        raise ValueError(
            f"expected one of {', '.join(_TYPES)}, found {_format_declared(declared)}{format_hint(word, _TYPES)}"
        )
    return str(declared)


def _reject_value(declared: Any) -> None:
    if declared is not None and declared is not True:
        raise ValueError(f"expected true, found {_format_declared(declared)}")


def _format_declared(declared: Any) -> str:
    return repr(declared[:60]) if isinstance(declared, str) else json.dumps(declared, default=str)[:60]


def _to_plain_text(found: object) -> str | None:
    """Convert a value to a string; None for lists and mappings."""
    if found is None or isinstance(found, Absent):
        return ""
    return None if isinstance(found, list | Mapping) else format_scalar(found)


def _to_number(found: object) -> Fraction | None:
    if isinstance(found, str):
        try:
            return quantity_to_fraction(found) if found.strip() else None
        except ValueError:
            return None
    return Fraction(found) if is_number(found) else None


def _test_number(found: object, test: Callable[[Fraction], bool]) -> bool:
    number = Fraction(0) if found is None or found == "" or isinstance(found, Absent) else _to_number(found)
    return number is not None and test(number)


def _equals(found: Any, expected: str) -> bool:
    return _to_plain_text(found) == expected


def _contains(found: Any, expected: str) -> bool:
    if isinstance(found, list | Mapping):
        return any(_to_plain_text(item) == expected for item in found)
    return expected in (_to_plain_text(found) or "")


def _has_prefix(found: Any, expected: str) -> bool:
    return (_to_plain_text(found) or "").startswith(expected)


def _has_suffix(found: Any, expected: str) -> bool:
    return (_to_plain_text(found) or "").endswith(expected)


def _matches_pattern(found: Any, expected: Any) -> bool:
    text = _to_plain_text(found)
    return text is not None and has_match(expected, text)


def _exists(found: Any, expected: None) -> bool:
    return not is_empty(found)


_OPERATORS = {
    "equals": _OperatorRule(_parse_text, _equals),
    "contains": _OperatorRule(_parse_text, _contains),
    "prefix": _OperatorRule(_parse_text, _has_prefix),
    "suffix": _OperatorRule(_parse_text, _has_suffix),
    "regex": _OperatorRule(_parse_pattern, _matches_pattern),
    "exists": _OperatorRule(_reject_value, _exists),
    "gt": _OperatorRule(_parse_number, lambda found, bound: _test_number(found, lambda number: number > bound)),
    "gte": _OperatorRule(_parse_number, lambda found, bound: _test_number(found, lambda number: number >= bound)),
    "lt": _OperatorRule(_parse_number, lambda found, bound: _test_number(found, lambda number: number < bound)),
    "lte": _OperatorRule(_parse_number, lambda found, bound: _test_number(found, lambda number: number <= bound)),
    "between": _OperatorRule(
        _parse_range, lambda found, two: _test_number(found, lambda number: two[0] <= number <= two[1])
    ),
    "in": _OperatorRule(_parse_choices, lambda found, choices: _to_plain_text(found) in choices),
    "typeOf": _OperatorRule(_parse_type, lambda found, expected: get_type_name(found) == expected),
    "unique": _OperatorRule(_reject_value, lambda found, expected: True),  # see `ValueCheck.holds`
}
# The other names of operators: the operator, whether it is negated, and its fixed operand.
_NAMES: dict[str, tuple[str, bool, str]] = {name: (name, False, "") for name in _OPERATORS} | {
    "notEquals": ("equals", True, ""),
    "notContains": ("contains", True, ""),
    "notPrefix": ("prefix", True, ""),
    "notSuffix": ("suffix", True, ""),
    "notExists": ("exists", True, ""),
    "notBetween": ("between", True, ""),
    "notIn": ("in", True, ""),
    "greaterThan": ("gt", False, ""),
    "lessThan": ("lt", False, ""),
    "greaterThanOrEqual": ("gte", False, ""),
    "lessThanOrEqual": ("lte", False, ""),
    "min": ("gte", False, ""),
    "max": ("lte", False, ""),
    "typeMap": ("typeOf", False, "map"),
    "typeList": ("typeOf", False, "list"),
    "typeString": ("typeOf", False, "string"),
    "typeNumber": ("typeOf", False, "number"),
    "typeBool": ("typeOf", False, "bool"),
    "typeNull": ("typeOf", False, "null"),
}
_OPERATORS_WITHOUT_VALUE = frozenset(
    {"exists", "notExists", "unique"} | {name for name, (_, _, kind) in _NAMES.items() if kind}
)

OPERATOR_KEYS = frozenset(_NAMES) | {"operator", "value"}
"""The keys of a condition or a rule that declare its operator."""


class ValueCheck:
    """One operator with its operand; created by `compile_check`."""

    __slots__ = ("_declared", "_expected", "_negates", "name", "operator", "where")

    def __init__(
        self, name: str, operator: str, negates: bool, declared: Structure | None, expected: Any, where: str
    ) -> None:
        self.name: str = name
        """The name in the file: ``notEquals``, ``min``."""
        self.operator: str = operator
        """The operator without negation: ``equals``, ``gte``."""
        self.where: str = where
        self._negates = negates
        self._declared = declared
        self._expected = expected

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that its operand may read."""
        return self._declared.list_read_paths() if self._declared is not None else frozenset()

    def list_needs(self) -> frozenset[str]:
        """Return the inputs that the functions of its operand need: ``time``, ``randomness``."""
        return self._declared.list_needs() if self._declared is not None else frozenset()

    def holds(
        self,
        found: Any,
        scope: Mapping[str, Any],
        *,
        path: str = "",
        environment: EvaluationEnvironment = _NO_ENVIRONMENT,
        limits: EvaluationLimits = DEFAULT_LIMITS,
    ) -> bool:
        """Tell whether the value passes the test.

        Args:
            found: The value; it may be `Absent`, and `Sensitive`.
            scope: The scope for expressions in the operand.
            path: The path of the field, for ``unique``.
            environment: The inputs of these expressions, and the test for ``unique``.
            limits: The limits of each expression.

        Raises:
            ExpressionError: The operand has no value, or one that the operator does not support.
        """
        found = reveal_sensitive(found)
        if self.operator == "unique":
            return self._is_unique(found, path, environment) is not self._negates
        expected = self._expected
        try:
            if self._declared is not None:
                declared = self._declared.render(scope, environment=environment, limits=limits)
                if has_sensitive(declared):
                    return self._holds_for_secret(found, reveal_sensitive(declared))
                expected = _OPERATORS[self.operator].prepare(None if declared is OMIT else declared)
            return _OPERATORS[self.operator].holds(found, expected) is not self._negates
        except ValueError as error:
            raise ExpressionError(self.where, 0, 0, str(error)) from None

    def accepts(
        self,
        found: Any,
        scope: Mapping[str, Any],
        *,
        path: str = "",
        environment: EvaluationEnvironment = _NO_ENVIRONMENT,
        limits: EvaluationLimits = DEFAULT_LIMITS,
    ) -> bool:
        """Test as `holds` does, for validation: an absent value passes only ``notEquals`` and ``notExists``."""
        if isinstance(found, Absent) and self.operator != "unique":
            return self._negates and self.operator in ("equals", "exists")
        return self.holds(found, scope, path=path, environment=environment, limits=limits)

    def _holds_for_secret(self, found: Any, declared: Any) -> bool:
        try:
            expected = _OPERATORS[self.operator].prepare(declared)
            return _OPERATORS[self.operator].holds(found, expected) is not self._negates
        except ValueError:
            problem = f"{self.name} does not support the value from a Secret (not shown)"
            raise ExpressionError(self.where, 0, 0, problem) from None

    def _is_unique(self, found: Any, path: str, environment: EvaluationEnvironment) -> bool:
        if environment.is_unique is None:
            raise ExpressionError(self.where, 0, 0, "unique needs the other objects, which are not available here")
        return environment.is_unique(path, None if isinstance(found, Absent) else found)


def compile_check(declared: Mapping[str, Any], *, where: str) -> ValueCheck:
    """Compile the operator of a condition or a rule; its other keys are ignored.

    A value without an operator means equality; no value at all means that the field must exist. ``exists: false`` means
    that it must not. An empty string is a value.

    Raises:
        ExpressionSyntaxError: There are two operators, an unknown one, or a value that the operator does not support.
    """
    given = sorted(key for key in declared if key in _NAMES)
    if "operator" in declared:
        given.append("operator")
    if len(given) > 1 or (given and given != ["operator"] and "value" in declared):
        found = " and ".join(given if len(given) > 1 else [*given, "value"])
        raise ExpressionSyntaxError(where, 0, 0, f"expected one operator, found {found}; write one condition for each")
    key = given[0] if given else "value" if "value" in declared else "exists"
    value = declared.get("value") if key == "operator" else declared.get(key)
    name = declared["operator"] if key == "operator" else "equals" if key == "value" else key
    if not isinstance(name, str) or name not in _NAMES:
        hint = format_hint(name, _NAMES) if isinstance(name, str) else ""
        raise ExpressionSyntaxError(
            f"{where}.operator", 0, 0, f"expected an operator, found {_format_declared(name)}{hint}"
        )
    operator, negates, kind = _NAMES[name]
    if name in _OPERATORS_WITHOUT_VALUE:
        if isinstance(value, bool):
            negates = negates is value
        elif value is not None:
            problem = f"expected true or false, found {_format_declared(value)}"
            raise ExpressionSyntaxError(f"{where}.{key}", 0, 0, problem)
        value = kind or None
    elif key == "operator" and "value" not in declared:
        raise ExpressionSyntaxError(where, 0, 0, f"expected value together with the operator {name}")
    place = f"{where}.{'value' if key == 'operator' else key}"
    if _has_expression(value):
        return ValueCheck(name, operator, negates, compile_structure(value, where=place), None, place)
    try:
        expected = _OPERATORS[operator].prepare(value)
    except ValueError as error:
        raise ExpressionSyntaxError(place, 0, 0, str(error)) from None
    return ValueCheck(name, operator, negates, None, expected, place)


def _has_expression(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, str) and is_expression(item) for item in items)
