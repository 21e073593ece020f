"""Permission to write: what keeps a process that may have lost its lease from changing anything.

A lease is no fence: the server takes a write from whoever sends it. So the client asks before each attempt to write
(each that is not GET), and gives the attempt no more time than the permit is sure to last.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["WritePermit"]


class WritePermit(Protocol):
    """Says whether this process may write at this moment."""

    def seconds_left(self) -> float:
        """For how long it may, at least; 0 or less when it may not. Infinite where nobody else could."""
