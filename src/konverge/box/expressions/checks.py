"""Operators: what a value has to be, as conditions and rules of validation declare it.

Values are compared as texts, as YAML shows them: ``replicas: 3`` equals ``"3"``. Absent, null and empty text are one
and the same here, empty text; as a number they are 0. Numbers may be quantities: ``500m``, ``2Gi``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from konverge.box.expressions.errors import ExpressionError, ExpressionSyntaxError
from konverge.box.expressions.functions.choices import is_empty, type_name
from konverge.box.expressions.functions.texts import found_in, pattern
from konverge.box.expressions.run import DEFAULT_LIMITS, Environment, Limits
from konverge.box.expressions.sensitive import has_sensitive, revealed
from konverge.box.expressions.structure import Structure, compile_structure
from konverge.box.expressions.template import is_expression
from konverge.box.expressions.values import OMIT, Absent, hint, is_number, kind_of, text_of
from konverge.kube.quantities import quantity_value

__all__ = ["OPERATOR_KEYS", "Check", "compile_check"]

_NO_ENVIRONMENT = Environment()
_TYPES = ("map", "list", "string", "number", "bool", "null")


class _Operator(NamedTuple):
    """One operator.

    Args:
        prepare: Makes of what is declared what the test compares with; a `ValueError` says why it cannot.
        holds: The test, of what was found and what was prepared.
    """

    prepare: Callable[[Any], Any]
    holds: Callable[[Any, Any], bool]


def _text(declared: Any) -> str:
    if declared is None:
        return ""
    try:
        return text_of(declared)
    except ValueError:
        raise ValueError(f"expected text, a number or a boolean, found {kind_of(declared)}") from None


def _number(declared: Any) -> Fraction:
    number = _number_of(declared)
    if number is None:
        raise ValueError(f"expected a number or a quantity, found {_shown(declared)}")
    return number


def _range(declared: Any) -> tuple[Fraction, Fraction]:
    bounds = declared.split(",") if isinstance(declared, str) else declared
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise ValueError(f"expected two numbers such as '1,10', found {_shown(declared)}")
    least, most = _number(bounds[0]), _number(bounds[1])
    if least > most:
        raise ValueError(f"expected the smaller number first, found {_shown(declared)}")
    return least, most


def _choices(declared: Any) -> frozenset[str]:
    if isinstance(declared, list):
        return frozenset(_text(each).strip() for each in declared)
    return frozenset(each.strip() for each in _text(declared).split(","))


def _pattern(declared: Any) -> Any:
    if not isinstance(declared, str):
        raise ValueError(f"expected a regular expression (RE2), found {kind_of(declared)}")
    return pattern(declared)


def _type(declared: Any) -> str:
    if declared not in _TYPES:
        word = declared if isinstance(declared, str) else ""
        raise ValueError(f"expected one of {', '.join(_TYPES)}, found {_shown(declared)}{hint(word, _TYPES)}")
    return str(declared)


def _nothing(declared: Any) -> None:
    if declared is not None and declared is not True:
        raise ValueError(f"expected true, found {_shown(declared)}")


def _shown(declared: Any) -> str:
    return repr(declared[:60]) if isinstance(declared, str) else repr(declared)[:60]


def _plain(found: object) -> str | None:
    """The text of what was found; None for what has none."""
    if found is None or isinstance(found, Absent):
        return ""
    return None if isinstance(found, list | Mapping) else text_of(found)


def _number_of(found: object) -> Fraction | None:
    if isinstance(found, str):
        try:
            return quantity_value(found) if found.strip() else None
        except ValueError:
            return None
    return Fraction(found) if is_number(found) else None


def _compared(found: object, test: Callable[[Fraction], bool]) -> bool:
    number = Fraction(0) if found is None or found == "" or isinstance(found, Absent) else _number_of(found)
    return number is not None and test(number)


def _equals(found: Any, expected: str) -> bool:
    return _plain(found) == expected


def _contains(found: Any, expected: str) -> bool:
    if isinstance(found, list | Mapping):
        return any(_plain(item) == expected for item in found)
    return expected in (_plain(found) or "")


def _prefix(found: Any, expected: str) -> bool:
    return (_plain(found) or "").startswith(expected)


def _suffix(found: Any, expected: str) -> bool:
    return (_plain(found) or "").endswith(expected)


def _regex(found: Any, expected: Any) -> bool:
    text = _plain(found)
    return text is not None and found_in(expected, text)


def _exists(found: Any, expected: None) -> bool:
    return not is_empty(found)


_OPERATORS = {
    "equals": _Operator(_text, _equals),
    "contains": _Operator(_text, _contains),
    "prefix": _Operator(_text, _prefix),
    "suffix": _Operator(_text, _suffix),
    "regex": _Operator(_pattern, _regex),
    "exists": _Operator(_nothing, _exists),
    "gt": _Operator(_number, lambda found, bound: _compared(found, lambda number: number > bound)),
    "gte": _Operator(_number, lambda found, bound: _compared(found, lambda number: number >= bound)),
    "lt": _Operator(_number, lambda found, bound: _compared(found, lambda number: number < bound)),
    "lte": _Operator(_number, lambda found, bound: _compared(found, lambda number: number <= bound)),
    "between": _Operator(_range, lambda found, two: _compared(found, lambda number: two[0] <= number <= two[1])),
    "in": _Operator(_choices, lambda found, choices: _plain(found) in choices),
    "typeOf": _Operator(_type, lambda found, expected: type_name(found) == expected),
    "unique": _Operator(_nothing, lambda found, expected: True),  # whoever knows the other objects tells
}
# The other names of operators: which one it is, whether its opposite, and of which type.
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
_WITHOUT_VALUE = frozenset({"exists", "notExists", "unique"} | {name for name, (_, _, kind) in _NAMES.items() if kind})

OPERATOR_KEYS = frozenset(_NAMES) | {"operator", "value"}
"""The keys of a condition or a rule that say what the value has to be."""


class Check:
    """One operator with what it compares with; made by `compile_check`."""

    __slots__ = ("_declared", "_expected", "_negates", "name", "operator", "where")

    def __init__(
        self, name: str, operator: str, negates: bool, declared: Structure | None, expected: Any, where: str
    ) -> None:
        self.name = name
        """As it was written: ``notEquals``, ``min``."""
        self.operator = operator
        """Which one it is, without a not: ``equals``, ``gte``."""
        self.where = where
        self._negates = negates
        self._declared = declared
        self._expected = expected

    def names(self) -> frozenset[tuple[str, ...]]:
        """The paths that its value may read."""
        return self._declared.names() if self._declared is not None else frozenset()

    def holds(
        self,
        found: Any,
        scope: Mapping[str, Any],
        *,
        path: str = "",
        environment: Environment = _NO_ENVIRONMENT,
        limits: Limits = DEFAULT_LIMITS,
    ) -> bool:
        """Tell whether what was found is as it has to be.

        Args:
            found: The value; it may be `Absent`, and `Sensitive`.
            scope: For the expressions in what it is compared with.
            path: The field, for ``unique``.
            environment: For the same, and who tells what is unique.
            limits: Of each expression.

        Raises:
            ExpressionError: What it is compared with has no value, or is none that the operator can compare with.
        """
        found = revealed(found)
        if self.operator == "unique":
            return self._is_unique(found, path, environment) is not self._negates
        expected = self._expected
        try:
            if self._declared is not None:
                declared = self._declared.render(scope, environment=environment, limits=limits)
                if has_sensitive(declared):
                    return self._secretly(found, revealed(declared))
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
        environment: Environment = _NO_ENVIRONMENT,
        limits: Limits = DEFAULT_LIMITS,
    ) -> bool:
        """As `holds`, for validation: what is absent is only ever right where it must not be, or not be equal."""
        if isinstance(found, Absent) and self.operator != "unique":
            return self._negates and self.operator in ("equals", "exists")
        return self.holds(found, scope, path=path, environment=environment, limits=limits)

    def _secretly(self, found: Any, declared: Any) -> bool:
        try:
            expected = _OPERATORS[self.operator].prepare(declared)
            return _OPERATORS[self.operator].holds(found, expected) is not self._negates
        except ValueError:
            problem = f"{self.name} cannot compare with a value that comes from a Secret (not shown)"
            raise ExpressionError(self.where, 0, 0, problem) from None

    def _is_unique(self, found: Any, path: str, environment: Environment) -> bool:
        if environment.is_unique is None:
            raise ExpressionError(self.where, 0, 0, "unique needs the other objects, which nobody knows here")
        return environment.is_unique(path, None if isinstance(found, Absent) else found)


def compile_check(declared: Mapping[str, Any], *, where: str) -> Check:
    """Compile the operator of a condition or a rule; other keys of it are somebody else's.

    A value without an operator has to be equal; nothing at all means that it has to exist. ``exists: false`` means that
    it must not. A value that is empty text is a value.

    Raises:
        ExpressionSyntaxError: Two operators, an unknown one, or a value that it cannot compare with.
    """
    given = sorted(key for key in declared if key in _NAMES)
    if "operator" in declared:
        given.append("operator")
    if len(given) > 1 or (given and given != ["operator"] and "value" in declared):
        found = " and ".join(given if len(given) > 1 else [*given, "value"])
        raise ExpressionSyntaxError(where, 0, 0, f"expected one operator, found {found}; write a condition for each")
    key = given[0] if given else "value" if "value" in declared else "exists"
    value = declared.get("value") if key == "operator" else declared.get(key)
    name = declared["operator"] if key == "operator" else "equals" if key == "value" else key
    if not isinstance(name, str) or name not in _NAMES:
        known = hint(name, _NAMES) if isinstance(name, str) else ""
        raise ExpressionSyntaxError(f"{where}.operator", 0, 0, f"expected an operator, found {_shown(name)}{known}")
    operator, negates, kind = _NAMES[name]
    if name in _WITHOUT_VALUE:
        if isinstance(value, bool):
            negates = negates is value
        elif value is not None:
            problem = f"expected true or false, found {_shown(value)}"
            raise ExpressionSyntaxError(f"{where}.{key}", 0, 0, problem)
        value = kind or None
    elif key == "operator" and "value" not in declared:
        raise ExpressionSyntaxError(where, 0, 0, f"expected a value beside the operator {name}")
    place = f"{where}.{'value' if key == 'operator' else key}"
    if _has_expression(value):
        return Check(name, operator, negates, compile_structure(value, where=place), None, place)
    try:
        expected = _OPERATORS[operator].prepare(value)
    except ValueError as error:
        raise ExpressionSyntaxError(place, 0, 0, str(error)) from None
    return Check(name, operator, negates, None, expected, place)


def _has_expression(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, str) and is_expression(item) for item in items)
