"""Durations as Kubernetes writes them (``5m``, ``1h30m``, ``1.5s``), which is not the ISO form that msgspec speaks."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

__all__ = ["format_duration", "parse_duration"]

_MICROSECONDS = {
    "ns": Decimal("0.001"),
    "us": Decimal(1),
    "µs": Decimal(1),
    "ms": Decimal(1_000),
    "s": Decimal(1_000_000),
    "m": Decimal(60_000_000),
    "h": Decimal(3_600_000_000),
}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"([+-]?)((?:{_PART.pattern})+)", re.ASCII)
# A duration is written by a user: what is longer than this is no duration, and not worth a regular expression.
_MAX_LENGTH = 64


def parse_duration(text: str) -> timedelta:
    """Read one or more numbers with units, or a bare ``0``; what is below a microsecond is rounded.

    Raises:
        ValueError: It is none, or too long for a timedelta.
    """
    if text in ("0", "+0", "-0"):
        return timedelta(0)
    found = _WHOLE.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if found is None:
        raise ValueError(f"expected a duration such as 90s, 5m or 1h30m, found {text[:_MAX_LENGTH]!r}")
    microseconds = sum(Decimal(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(found[2]))
    try:
        return timedelta(microseconds=round(microseconds) * (-1 if found[1] == "-" else 1))
    except OverflowError:
        raise ValueError(f"the duration {text!r} is too long") from None


def format_duration(duration: timedelta) -> str:
    """Hours, minutes and seconds without empty parts: ``5m``, ``1h30m``, ``1.5s``, ``0s``."""
    microseconds = duration // timedelta(microseconds=1)
    sign, microseconds = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    minutes, rest = divmod(microseconds, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{Decimal(rest) / 1_000_000:f}"
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else "", f"{seconds}s" if rest else ""]
    return sign + ("".join(parts) or "0s")
