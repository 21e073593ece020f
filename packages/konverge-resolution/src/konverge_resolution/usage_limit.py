"""What several hold together, of memory or of disk: when it is too much, the one that holds most gives up. Pure.

Nothing is set aside for anybody: whoever waits for a server that hangs holds next to nothing, and takes no place of
those who are served. Whoever fills up what is there for all is the one who holds most of it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["SharedUsage"]

H = TypeVar("H", bound=Hashable)


class SharedUsage(Generic[H]):
    """How much each of several held when it was last looked at."""

    def __init__(self) -> None:
        self._usage: dict[H, int] = {}

    def record_and_check(self, holder: H, held_bytes: int, *, max_bytes: int) -> bool:
        """Note what somebody holds now, and tell whether they have to give up.

        Args:
            holder: Who.
            held_bytes: How much that is.
            max_bytes: How much all may hold together.
        """
        self._usage[holder] = held_bytes
        return sum(self._usage.values()) > max_bytes and held_bytes == max(self._usage.values())

    def release(self, holder: H) -> None:
        """Note that somebody holds nothing any more."""
        self._usage.pop(holder, None)
