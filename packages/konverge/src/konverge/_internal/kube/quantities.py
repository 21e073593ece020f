"""Resource quantities: the numbers with suffixes of requests, limits and capacities (``resource.Quantity``).

The API server stores each in a canonical form: ``1000m`` becomes ``1``, ``0.5Gi`` becomes ``512Mi``. There is one
exception, which this module repeats: a text that looks canonical is stored unchanged (``1.896M``).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

__all__ = ["canonicalize_quantity", "quantity_to_fraction"]

Family: TypeAlias = Literal["decimal", "binary", "exponent"]

_FORM = re.compile(r"([+-]?)(?=\.?\d)0*(\d*)(?:\.(\d*))?(?:([numkMGTPE])|([KMGTPE]i)|[eE]([+-]?\d{1,9}))?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}

_MAX_INT64 = 2**63 - 1  # The server limits a binary quantity to this value.
_NANO, _MILLI = -9, -3
_MAX_LENGTH = 256  # Characters. A longer text is an attack, not a quantity: arithmetic on it is slow.


class _ParsedQuantity(NamedTuple):
    number: Fraction
    family: Family
    scale: int  # The power of ten of the last digit in the text.
    is_canonical: bool  # The text looks canonical.


def _parse(text: str) -> _ParsedQuantity:
    match = _FORM.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(f"expected a quantity such as 500m, 1.5 or 2Gi, found {text[:40]!r}")
    sign, whole, fraction, decimal, binary, exponent = match.groups()
    whole, fraction = whole or "0", fraction or ""
    digits = whole + fraction
    number = Fraction(int(digits), 10 ** len(fraction)) * (-1 if sign == "-" else 1)
    if binary:
        power = _BINARY[binary]
        # The server keeps the text if the number fits exactly into 64 bits and its last bits are not all zero.
        is_short = not fraction and 14 - len(whole) - power * 3 // 10 >= 0
        number *= 1 << power
        return _ParsedQuantity(min(number, Fraction(_MAX_INT64)), "binary", 0, is_short and int(whole) & 7 != 0)
    # Beyond this limit, each number is practically zero or too large for any use.
    power = max(-400, min(400, int(exponent))) if exponent else _DECIMAL[decimal or ""]
    scale = power - len(fraction)
    is_canonical = (
        len(digits) <= 18
        and scale >= _NANO
        and scale % 3 == 0
        and not digits.endswith("000")
        and not digits.startswith("0")
    )
    return _ParsedQuantity(number * Fraction(10) ** power, "exponent" if exponent else "decimal", scale, is_canonical)


def canonicalize_quantity(quantity: str | float, *, milli: bool = False) -> str:
    """Return the form in which the API server stores the quantity.

    Args:
        quantity: The value in an object: usually text; a number is valid too.
        milli: Whether to round up to thousandths, as in every resource list (requests, limits, capacity), instead of
            billionths.

    Raises:
        ValueError: The value is not a quantity.
    """
    if isinstance(quantity, bool):
        raise ValueError("expected a quantity such as 500m, 1.5 or 2Gi, found a boolean")
    return _canonicalize(quantity if isinstance(quantity, str) else str(quantity), milli)


def quantity_to_fraction(quantity: str | float) -> Fraction:
    """Return the exact number of a quantity: ``500m`` is a half, ``1Ki`` is 1024.

    Raises:
        ValueError: The value is not a quantity.
    """
    if isinstance(quantity, bool):
        raise ValueError("expected a quantity such as 500m, 1.5 or 2Gi, found a boolean")
    return _parse(quantity.strip() if isinstance(quantity, str) else str(quantity)).number


@lru_cache(maxsize=4096)
def _canonicalize(text: str, milli: bool) -> str:
    text = text.strip()
    parsed = _parse(text)
    finest = _MILLI if milli else _NANO
    if parsed.is_canonical and parsed.scale >= finest:
        return text
    units = _round_up(abs(parsed.number) / Fraction(10) ** finest)
    if units == 0:
        return "0"
    sign = "-" if parsed.number < 0 else ""
    whole, rest = divmod(units, 10**-finest)
    if parsed.family == "binary" and rest == 0 and whole >= 1024:
        power = 0
        while whole % 1024 == 0:
            whole //= 1024
            power += 10
        if power:
            return f"{sign}{whole}{_BINARY_SUFFIX[power]}"
        # Without a suffix, the server reads a decimal number back from its storage: 1104k, not 1104000.
    power = finest
    while units % 1000 == 0:
        units //= 1000
        power += 3
    if parsed.family == "exponent":
        return f"{sign}{units}e{power}" if power else f"{sign}{units}"
    return f"{sign}{units}{_DECIMAL_SUFFIX.get(power, '')}"


def _round_up(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)
