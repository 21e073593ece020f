"""Resource quantities: the numbers with suffixes of requests, limits and capacities (``resource.Quantity``).

The API server stores each in its own spelling: ``1000m`` becomes ``1``, ``0.5Gi`` becomes ``512Mi``. That spelling is
canonical but for one thing, which we must do too: a text that reads as if it were canonical is kept (``1.896M``).
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

_MAX_INT64 = 2**63 - 1  # Of a binary quantity; the server cuts off there.
_NANO, _MILLI = -9, -3
_MAX_LENGTH = 256  # Characters; arithmetic on a longer number would be an attack, not a quantity.


class _ParsedQuantity(NamedTuple):
    number: Fraction
    family: Family
    scale: int  # The power of ten of the last digit that was written.
    is_canonical: bool  # Reads as canonical.


def _parse(text: str) -> _ParsedQuantity:
    found = _FORM.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if found is None:
        raise ValueError(f"a quantity is a number with a suffix such as 500m, 1.5 or 2Gi: found {text[:40]!r}")
    sign, whole, fraction, decimal, binary, exponent = found.groups()
    whole, fraction = whole or "0", fraction or ""
    digits = whole + fraction
    number = Fraction(int(digits), 10 ** len(fraction)) * (-1 if sign == "-" else 1)
    if binary:
        power = _BINARY[binary]
        # The server keeps the text of a number it can hold exactly in 64 bits and whose last bits are not all zero.
        short = not fraction and 14 - len(whole) - power * 3 // 10 >= 0
        number *= 1 << power
        return _ParsedQuantity(min(number, Fraction(_MAX_INT64)), "binary", 0, short and int(whole) & 7 != 0)
    # Beyond this bound every number is as good as zero, or as absurd as any other.
    power = max(-400, min(400, int(exponent))) if exponent else _DECIMAL[decimal or ""]
    scale = power - len(fraction)
    kept = (
        len(digits) <= 18
        and scale >= _NANO
        and scale % 3 == 0
        and not digits.endswith("000")
        and not digits.startswith("0")
    )
    return _ParsedQuantity(number * Fraction(10) ** power, "exponent" if exponent else "decimal", scale, kept)


def canonicalize_quantity(quantity: str | float, *, milli: bool = False) -> str:
    """The spelling in which the API server stores the quantity.

    Args:
        quantity: As an object has it: usually text, but a bare number is good too.
        milli: Round up to thousandths, as in every resource list (requests, limits, capacity); else to billionths.

    Raises:
        ValueError: It is not a quantity.
    """
    if isinstance(quantity, bool):
        raise ValueError("a quantity is a number with a suffix: found a boolean")
    return _canonicalize(quantity if isinstance(quantity, str) else str(quantity), milli)


def quantity_to_fraction(quantity: str | float) -> Fraction:
    """The number that a quantity stands for, exactly: ``500m`` is a half, ``1Ki`` is 1024.

    Raises:
        ValueError: It is not a quantity.
    """
    if isinstance(quantity, bool):
        raise ValueError("a quantity is a number with a suffix: found a boolean")
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
        # Written without a suffix it is a decimal number when the server reads it from its storage: 1104k, not 1104000.
    power = finest
    while units % 1000 == 0:
        units //= 1000
        power += 3
    if parsed.family == "exponent":
        return f"{sign}{units}e{power}" if power else f"{sign}{units}"
    return f"{sign}{units}{_DECIMAL_SUFFIX.get(power, '')}"


def _round_up(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)
