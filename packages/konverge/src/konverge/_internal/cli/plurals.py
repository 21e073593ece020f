"""Counts with the singular or plural of a noun."""

from __future__ import annotations

__all__ = ["format_count"]


def format_count(number: int, one: str, many: str = "") -> str:
    """Return for example ``1 file``, ``2 files`` or, with an irregular plural, ``0 entries``."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
