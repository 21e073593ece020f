"""The log of requests: one entry for each request; the oldest entries are dropped first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

__all__ = ["AuditEntry", "AuditLog"]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request, recorded when its response begins.

    Attributes:
        time: The time when the request arrived.
        user_agent: The user agent of the client.
        verb: The API verb (``get``, ``list``, ``watch``, ...), or the lower case method for other paths.
        path: The path, without the query.
        code: The HTTP status code.
    """

    time: datetime
    user_agent: str
    verb: str
    path: str
    code: int


class AuditLog:
    """The last requests in order.

    Args:
        limit: The maximum number of entries.
    """

    def __init__(self, *, limit: int = 100_000) -> None:
        self._entries: deque[AuditEntry] = deque(maxlen=limit)

    def __iter__(self) -> Iterator[AuditEntry]:
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def record(self, entry: AuditEntry) -> None:
        """Add an entry for a request."""
        self._entries.append(entry)
