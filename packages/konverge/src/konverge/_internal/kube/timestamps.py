"""Timestamps of Kubernetes: RFC 3339 in UTC, with whole seconds (``Time``) or microseconds (``MicroTime``)."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["format_micro_time", "format_time", "parse_time"]


def format_time(moment: datetime) -> str:
    """Format a time as ``2026-01-31T08:00:00Z``; fractions of a second are cut off, as the API server does."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:-6] + "Z"


def format_micro_time(moment: datetime) -> str:
    """Format a time as ``2026-01-31T08:00:00.000000Z``, the form of Lease and Event times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Parse either form, with any offset, into an aware datetime.

    Raises:
        ValueError: The text has neither form.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"expected a time with an offset or Z, found {text!r}")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"expected a time in the years 1 to 9999, found {text!r}") from None
