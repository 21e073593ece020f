"""Functions for numbers and quantities."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from konverge._internal.kube.quantities import canonicalize_quantity, quantity_to_fraction
from konverge_box._internal.expressions.functions.function import build_group
from konverge_box._internal.expressions.values import is_number

__all__ = ["NUMBERS", "QUANTITIES"]

_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIXES = (
    {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
    | {suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)}
    | {suffix: Fraction(1024**power) for power, suffix in enumerate(_BINARY, start=1)}
)


def add(number: float, *others: float) -> float:
    """Return the sum: `add(1, 2, 3)` is 6."""
    return sum(others, number)


def sub(number: float, other: float) -> float:
    """Return the difference: `sub(5, 2)` is 3."""
    return number - other


def mul(number: float, *others: float) -> float:
    """Return the product: `mul(2, 3)` is 6."""
    for other in others:
        number = number * other
        if abs(number) > 1e300:
            raise ValueError("the number is too large")
    return number


def div(number: float, divisor: float) -> float:
    """Divide; two integers give an integer, rounded towards zero: `div(7, 2)` is 3, `div(7.0, 2)` is 3.5."""
    if divisor == 0:
        raise ValueError("division by zero")
    if isinstance(number, int) and isinstance(divisor, int):
        quotient = abs(number) // abs(divisor)
        return quotient if (number < 0) == (divisor < 0) else -quotient
    return number / divisor


def mod(number: float, divisor: float) -> float:
    """Return the remainder of `div`, with the sign of the number: `mod(7, 2)` is 1, `mod(-7, 2)` is -1."""
    if divisor == 0:
        raise ValueError("division by zero")
    if isinstance(number, int) and isinstance(divisor, int):
        return abs(number) % abs(divisor) * (-1 if number < 0 else 1)
    return math.fmod(number, divisor)


def _min(number: float, *others: float) -> float:
    """Return the smallest number: `min(3, 1, 2)` is 1."""
    return min(number, *others) if others else number


def _max(number: float, *others: float) -> float:
    """Return the largest number: `max(3, 1, 2)` is 3."""
    return max(number, *others) if others else number


def clamp(number: float, least: float, most: float) -> float:
    """Limit a number to the range from the second to the third argument: `clamp(12, 1, 10)` is 10."""
    if least > most:
        raise ValueError(f"expected the lower limit first, found {least} and {most}")
    return min(max(number, least), most)


def _abs(number: float) -> float:
    """Return the number without its sign: `abs(-3)` is 3."""
    return abs(number)


def floor(number: float) -> int:
    """Round down to an integer: `floor(2.7)` is 2."""
    return math.floor(number)


def ceil(number: float) -> int:
    """Round up to an integer: `ceil(2.1)` is 3."""
    return math.ceil(number)


def _round(number: float) -> int:
    """Round to the nearest integer, halves away from zero: `round(2.5)` is 3."""
    return math.floor(abs(number) + 0.5) * (-1 if number < 0 else 1)


def parse_quantity(quantity: str | float) -> float:
    """Convert a quantity to a number: `parseQuantity("1Ki")` is 1024, `parseQuantity("500m")` is 0.5."""
    return _to_plain_number(quantity_to_fraction(quantity))


def format_quantity(number: float, suffix: str = "") -> str:
    """Convert a number to the quantity that the API server stores: `formatQuantity(0.5)` is `500m`.

    With a suffix, the number is converted to that unit and rounded up: `formatQuantity(2147483648, "Gi")` is `2Gi`.
    """
    unit = _SUFFIXES.get(suffix)
    if unit is None:
        raise ValueError(f"expected one of the suffixes {', '.join(_SUFFIXES)[2:]}, found {suffix[:20]!r}")
    if not suffix:
        return _format_number(Fraction(number), is_binary=False)
    return f"{math.ceil(Fraction(number) / unit)}{suffix}"


def sum_quantity(quantity: Any, *others: Any) -> str:
    """Add quantities, or a list of them: `sumQuantity("500m", "1")` is `1500m`; binary if all are binary."""
    quantities = quantity if isinstance(quantity, list) and not others else [quantity, *others]
    if not all(isinstance(each, str) or is_number(each) for each in quantities):
        raise ValueError("expected quantities as strings or numbers")
    total = sum((quantity_to_fraction(each) for each in quantities), start=Fraction(0))
    return _format_number(
        total, is_binary=bool(quantities) and all(str(each).strip().endswith("i") for each in quantities)
    )


def compare_quantity(quantity: str | float, other: str | float) -> int:
    """Return -1, 0 or 1 if the first is less, equal or greater: `compareQuantity("1Gi", "1G")` is 1."""
    one, two = quantity_to_fraction(quantity), quantity_to_fraction(other)
    return (one > two) - (one < two)


def is_quantity(value: Any) -> bool:
    """Tell whether it is a quantity: `isQuantity("2Gi")` is true, `isQuantity("2 GB")` is false."""
    if not (isinstance(value, str) or is_number(value)):
        return False
    try:
        quantity_to_fraction(value)
    except ValueError:
        return False
    return True


def _to_plain_number(number: Fraction) -> float:
    return number.numerator if number.denominator == 1 else float(number)


def _format_number(number: Fraction, *, is_binary: bool) -> str:
    if is_binary and number.denominator == 1:
        whole, suffix = number.numerator, ""
        for each in _BINARY:
            if whole % 1024 or not whole:
                break
            whole, suffix = whole // 1024, each
        return f"{whole}{suffix}"
    sign = "-" if number < 0 else ""
    return canonicalize_quantity(f"{sign}{math.ceil(abs(number) * 10**9)}n")


NUMBERS = build_group(
    "Numbers",
    "The operators `+ - * / // %` exist as well; `/` of two integers gives an integer if there is no remainder.",
    add,
    sub,
    mul,
    div,
    mod,
    _min,
    _max,
    clamp,
    _abs,
    floor,
    ceil,
    _round,
)
QUANTITIES = build_group(
    "Quantities",
    "Quantities of resources, such as `500m` and `2Gi`.",
    parse_quantity,
    format_quantity,
    sum_quantity,
    compare_quantity,
    is_quantity,
)
