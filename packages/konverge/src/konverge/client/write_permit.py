"""Permission to write: what keeps a process that may have lost its lease from changing anything.

A lease is no fence: the server takes a write from whoever sends it. So the client asks before each attempt to write
(each that is not GET), and gives the attempt no more time than the permit is sure to last. The transport asks again
immediately before it sends: a process that was frozen between the two would send a write of a lease long lost.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from konverge.errors import NoPermitError

__all__ = ["WritePermit", "current_permit", "no_permit_error"]


class WritePermit(Protocol):
    """Says whether this process may write at this moment."""

    def seconds_left(self) -> float:
        """For how long it may, at least; 0 or less when it may not. Infinite where nobody else could."""


current_permit: ContextVar[WritePermit | None] = ContextVar("current_permit", default=None)
"""The permit of the request that is being sent; None where it needs none.

A transport carries bytes and does not know what a write is. The variable reaches it through any wrapper around it.
"""


def no_permit_error(method: str, path: str) -> NoPermitError:
    """The error for a write whose permit has ended before it was sent."""
    return NoPermitError(f"{method} {path} was not sent: this process may have lost its lease")
