"""Shared limit of memory or disk usage: above the limit, the largest holder must stop. Pure.

Nothing is reserved: a request that waits for a slow server holds little and takes no space from others. A request that
fills the shared space is the largest holder.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["SharedUsage"]

H = TypeVar("H", bound=Hashable)


class SharedUsage(Generic[H]):
    """Last measured usage of each holder."""

    def __init__(self) -> None:
        self._usage: dict[H, int] = {}

    def record_and_check(self, holder: H, held_bytes: int, *, max_bytes: int) -> bool:
        """Record the usage of a holder, and tell whether the holder must stop.

        Args:
            holder: The holder.
            held_bytes: Its usage in bytes.
            max_bytes: The limit for all holders together, in bytes.
        """
        self._usage[holder] = held_bytes
        return sum(self._usage.values()) > max_bytes and held_bytes == max(self._usage.values())

    def release(self, holder: H) -> None:
        """Remove a holder that has ended."""
        self._usage.pop(holder, None)
