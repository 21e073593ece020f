"""CEL expressions in the dialect of Kubernetes, evaluated by the package ``common-expression-language``.

This module adds parts of the dialect that the package lacks (strings, lists, regular expressions). An expression with
one of `UNSUPPORTED_FUNCTIONS` counts as unsupported.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from konverge._internal.kube.re2 import Pattern, PatternSyntaxError

__all__ = [
    "UNSUPPORTED_FUNCTIONS",
    "CelExpression",
    "CelExpressionError",
    "InvalidCelError",
    "UnsupportedCelError",
    "build_optional",
    "can_evaluate",
]


class CelExpressionError(Exception):
    """The evaluation of the expression failed; the text contains the reason."""


class UnsupportedCelError(Exception):
    """The expression uses an unsupported feature."""


class InvalidCelError(UnsupportedCelError):
    """No API server accepts the expression."""


@cache
def _load_cel() -> Any:
    """Return the CEL package; None if it is not installed."""
    try:
        return importlib.import_module("cel")
    except ImportError:
        return None


def can_evaluate() -> bool:
    """Return True if expressions can be evaluated."""
    return _load_cel() is not None


def build_optional(value: Any, *, is_there: bool) -> Any:
    """Return a value that may be absent, for use in expressions (``hasValue()``, ``value()``)."""
    kind = _load_cel().OptionalValue
    return kind.of(value) if is_there else kind.none()


class CelExpression:
    """A compiled CEL expression.

    Args:
        text: The text of the expression.

    Raises:
        InvalidCelError: The text is no expression, or calls a function that does not exist.
        UnsupportedCelError: The expression cannot be evaluated here.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._program = _load_cel().compile(text)
        except ValueError as error:
            reason = str(error).splitlines()[0].partition("': ")[2] or str(error)
            if "unsupported syntax" in reason:
                raise UnsupportedCelError("optional fields are not supported") from None
            raise InvalidCelError(reason) from None
        references = self._program.references()
        self.variables = frozenset(references["variables"])
        _check_functions(references["functions"], self.variables)
        self._functions = {name: _FUNCTIONS[name] for name in references["functions"] if name in _FUNCTIONS}

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """Evaluate the expression.

        Raises:
            CelExpressionError: The evaluation failed: a key is absent, or types do not fit.
            UnsupportedCelError: The expression calls an unsupported function.
        """
        context = _load_cel().Context(dict(variables))
        for name, function in self._functions.items():
            context.add_function(name, function)
        try:
            return self._program.execute(context)
        except RuntimeError as error:
            raise UnsupportedCelError(str(error)) from None
        except KeyError as error:
            raise CelExpressionError(f"no such key: {error.args[0]}") from None
        except (TypeError, ValueError, ArithmeticError, IndexError) as error:
            raise CelExpressionError(str(error)) from None


def _check_functions(names: Iterable[str], variables: frozenset[str]) -> None:
    for name in names:
        if name.isidentifier() and not name.startswith("_") and name not in _ENGINE_FUNCTIONS | _FUNCTIONS.keys():
            if name not in UNSUPPORTED_FUNCTIONS and not variables & _NAMESPACES:
                raise InvalidCelError(f"undeclared reference to '{name}' (in container '')")
            raise UnsupportedCelError(f"the function {name} is not supported")
    for name in sorted(variables & _NAMESPACES):
        raise UnsupportedCelError(f"the functions {name}.* are not supported")


@cache
def _compile_pattern(text: str) -> re.Pattern[str]:
    try:
        Pattern(text)
        return re.compile(text)
    except (PatternSyntaxError, re.error) as error:
        raise ValueError(f"error parsing regexp: {error}") from None


def _index_of(value: Any, searched: Any, start: int = 0) -> int:
    if isinstance(value, str):
        return value.find(searched, start)
    return next((at for at, item in enumerate(value) if item == searched), -1)


def _last_index_of(value: Any, searched: Any) -> int:
    if isinstance(value, str):
        return value.rfind(searched)
    return next((at for at in range(len(value) - 1, -1, -1) if value[at] == searched), -1)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    parts = text.split(separator) if separator else list(text)
    return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], separator.join(parts[limit - 1 :])]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ValueError(f"index out of range: {start}")
    return text[start:end]


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise ValueError(f"index out of range: {at}")
    return text[at : at + 1]


def _find(text: str, pattern: str) -> str:
    match = _compile_pattern(pattern).search(text)
    return match.group() if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group() for match in _compile_pattern(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _is_sorted(values: list[Any]) -> bool:
    return all(previous <= following for previous, following in pairwise(values))


def _restrict_to_ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(letter) if letter.isascii() else letter for letter in text)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "charAt": _char_at,
    "find": _find,
    "findAll": _find_all,
    "indexOf": _index_of,
    "isSorted": _is_sorted,
    "join": lambda values, separator="": separator.join(values),
    "lastIndexOf": _last_index_of,
    "lowerAscii": _restrict_to_ascii(str.lower),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "sum": sum,
    "trim": lambda text: text.strip(),
    "upperAscii": _restrict_to_ascii(str.upper),
}

# The functions of the package itself.
_ENGINE_FUNCTIONS = frozenset(
    {
        *("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"),
        *("contains", "endsWith", "matches", "size", "startsWith"),
        *("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds"),
        *("getMinutes", "getMonth", "getSeconds", "max", "min"),
        *("hasValue", "none", "of", "ofNonZeroValue", "or", "orValue", "value"),
    }
)
# Functions with these names before a dot are not supported.
_NAMESPACES = frozenset({"format", "ip", "lists", "sets", "strings"})
UNSUPPORTED_FUNCTIONS = frozenset(
    {
        *(
            "add",
            "asApproximateFloat",
            "asInteger",
            "compareTo",
            "isGreaterThan",
            "isInteger",
            "isLessThan",
            "isQuantity",
        ),
        *("quantity", "sign", "sub", "isSemver", "major", "minor", "patch", "semver"),
        *("cidr", "containsCIDR", "containsIP", "family", "ip", "isCIDR", "isGlobalUnicast", "isIP", "masked"),
        *("isLinkLocalMulticast", "isLinkLocalUnicast", "isLoopback", "isUnspecified", "prefixLength"),
        *("getEscapedPath", "getHost", "getHostname", "getPort", "getQuery", "getScheme", "isURL", "url"),
        *("format", "validate", "optFlatMap", "optMap"),
        *("all", "exists", "existsOne", "transformList", "transformMap", "transformMapEntry"),
        *("distinct", "first", "flatten", "last", "reverse", "slice", "sort", "sortBy"),
    }
)
"""The functions of the dialect that are not supported; macros are among them in their form with two variables."""
