"""How many there are of something, in words."""

from __future__ import annotations

__all__ = ["format_count"]


def format_count(number: int, one: str, many: str = "") -> str:
    """For example ``1 file``, ``2 files`` or, with a plural that is no s, ``0 entries``."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
