"""The permit to write: it keeps a process that may have lost its Lease from changing anything.

A Lease does not block writes: the server accepts a write from any replica. So the client checks the permit before each
attempt to write (every method except GET), and limits the attempt to the guaranteed remaining time of the permit. The
transport checks it again immediately before it sends: otherwise a process that was frozen between the two would send a
write long after it lost its Lease.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from konverge.errors import NoPermitError

__all__ = ["WritePermit", "current_permit", "no_permit_error"]


class WritePermit(Protocol):
    """The permission of this process to write at this moment."""

    def seconds_left(self) -> float:
        """Return the guaranteed remaining time; 0 or less if writes are forbidden, infinite without other replicas."""


current_permit: ContextVar[WritePermit | None] = ContextVar("current_permit", default=None)
"""The permit of the request that is being sent; None if it needs none.

A transport sends bytes and cannot recognize a write. The variable reaches it through any wrapper around it.
"""


def no_permit_error(method: str, path: str) -> NoPermitError:
    """Build the error for a write whose permit ended before it was sent."""
    return NoPermitError(f"{method} {path} was not sent: this process may have lost its lease")
