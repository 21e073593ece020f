"""Durations in the form of Kubernetes (``5m``, ``1h30m``, ``1.5s``), which is Go's form and not ISO 8601."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache

__all__ = ["CALENDAR_UNITS", "GO_UNITS", "DurationUnits", "format_duration", "parse_duration", "parse_microseconds"]


class DurationUnits:
    """The units of one form of duration.

    Args:
        microseconds: Length of each unit by its name.
        is_signed: Accept a sign before the first number.
        examples: Durations for error messages.
    """

    def __init__(self, microseconds: Mapping[str, Decimal], *, is_signed: bool, examples: str) -> None:
        self.microseconds = microseconds
        self.examples = examples
        names = "|".join(sorted(microseconds, key=len, reverse=True))
        part = rf"(\d+\.?\d*|\.\d+)({names})"
        self.part = re.compile(part, re.ASCII)
        self.whole = re.compile(rf"([+-]?)((?:{part})+)" if is_signed else rf"()((?:{part})+)", re.ASCII)


_SECOND = Decimal(1_000_000)
_DAY = 86_400 * _SECOND
GO_UNITS = DurationUnits(
    {
        "ns": Decimal("0.001"),
        "us": Decimal(1),
        "µs": Decimal(1),
        "ms": Decimal(1_000),
        "s": _SECOND,
        "m": 60 * _SECOND,
        "h": 3600 * _SECOND,
    },
    is_signed=True,
    examples="90s, 5m or 1h30m",
)
"""The units of Go's `time.ParseDuration`, which Kubernetes uses."""
CALENDAR_UNITS = DurationUnits(
    {
        "ms": Decimal(1_000),
        "s": _SECOND,
        "m": 60 * _SECOND,
        "h": 3600 * _SECOND,
        "d": _DAY,
        "w": 7 * _DAY,
        "mo": 30 * _DAY,
        "y": 365 * _DAY,
    },
    is_signed=False,
    examples="90s, 5m, 1h30m or 90d",
)
"""The units of box files; a month has 30 days, a year has 365."""
# A user writes a duration by hand: a longer text is not one, and not worth a regular expression.
_MAX_LENGTH = 64


def parse_duration(text: str, units: DurationUnits = GO_UNITS) -> timedelta:
    """Parse one or more numbers with units, or a bare ``0``; round to whole microseconds.

    Raises:
        ValueError: The text is not a duration, or is too long for a timedelta.
    """
    try:
        return timedelta(microseconds=round(parse_microseconds(text, units)))
    except OverflowError:
        raise ValueError(f"expected a duration of at most {timedelta.max.days} days, found {text!r}") from None


@lru_cache(maxsize=1024)
def parse_microseconds(text: str, units: DurationUnits = GO_UNITS) -> Decimal:
    """Parse a duration without rounding.

    Raises:
        ValueError: The text is not a duration.
    """
    if text in ("0", "+0", "-0"):
        return Decimal(0)
    match = units.whole.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(f"expected a duration such as {units.examples}, found {text[:_MAX_LENGTH]!r}")
    total = sum((Decimal(number) * units.microseconds[unit] for number, unit in units.part.findall(text)), Decimal(0))
    return -total if match[1] == "-" else total


def format_duration(duration: timedelta) -> str:
    """Format hours, minutes and seconds without empty parts: ``5m``, ``1h30m``, ``1.5s``, ``0s``."""
    microseconds = duration // timedelta(microseconds=1)
    sign, microseconds = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    minutes, rest = divmod(microseconds, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{Decimal(rest) / 1_000_000:f}"
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else "", f"{seconds}s" if rest else ""]
    return sign + ("".join(parts) or "0s")
