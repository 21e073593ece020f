"""How long a server wants to be left alone. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["parse_retry_after"]


def parse_retry_after(header: str, now: datetime) -> float | None:
    """What ``Retry-After`` asks for in seconds, which may be a number of them or a date; None if it cannot be read.

    Args:
        header: The header's value; empty when there is none.
        now: The time, for one that is a date.
    """
    text = header.strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
