"""The record of what was asked: one entry a request, the oldest forgotten first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

__all__ = ["AuditEntry", "AuditLog"]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request, written when its answer begins.

    Attributes:
        time: When it came in.
        user_agent: Who asked.
        verb: The API verb (``get``, ``list``, ``watch``, ...), or the method in lower case where there is none.
        path: The path, without the query.
        code: The HTTP status code.
    """

    time: datetime
    user_agent: str
    verb: str
    path: str
    code: int


class AuditLog:
    """The last requests, in order.

    Args:
        limit: How many are remembered.
    """

    def __init__(self, *, limit: int = 100_000) -> None:
        self._entries: deque[AuditEntry] = deque(maxlen=limit)

    def __iter__(self) -> Iterator[AuditEntry]:
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def record(self, entry: AuditEntry) -> None:
        """Remember a request."""
        self._entries.append(entry)
