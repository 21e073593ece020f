"""Parser of the HTTP header ``Retry-After``. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["parse_retry_after"]


def parse_retry_after(header: str, now: datetime) -> float | None:
    """Return the seconds of ``Retry-After``, a number or a date; None if it cannot be parsed.

    Args:
        header: The value of the header; empty without one.
        now: The current time, for a date.
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
