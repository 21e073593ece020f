"""When the objects of a component that is not ready are examined. Pure.

The first examination is 15 seconds after the component stopped being ready: most rollouts are ready before. Each later
one doubles that time, up to an hour: a pod can fail long after the last change of its workload, and no event of a pod
reaches the owner. Other reconciles of a late component examine an object again if the last examination is ten seconds
old.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

__all__ = ["ExaminationCache", "ExaminationSchedule"]

_FIRST = timedelta(seconds=15)
_LONGEST = timedelta(hours=1)
_SHORTEST = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class ExaminationSchedule:
    """The times of the examinations of one component.

    Args:
        since: The time since which the component is not ready.
    """

    since: datetime

    def is_late(self, now: datetime) -> bool:
        """Return True if the component has been not ready for long enough to examine its objects."""
        return now >= self.since + _FIRST

    def find_next_time(self, now: datetime) -> datetime:
        """Return the time of the next examination."""
        age = max(now - self.since, timedelta(0))
        interval = _FIRST
        while interval <= age:
            if interval >= _LONGEST:
                return now + _LONGEST
            interval *= 2
        return self.since + interval


class ExaminationCache:
    """The causes that examinations have found, by the UID of the object. Share one between all reconciles.

    Args:
        limit: The maximum number of objects; the oldest examination is dropped first.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._examined: OrderedDict[str, tuple[datetime, tuple[str, ...]]] = OrderedDict()

    def store(self, uid: str, causes: tuple[str, ...], now: datetime) -> None:
        """Keep the causes of an object."""
        self._examined.pop(uid, None)
        self._examined[uid] = now, causes
        if len(self._examined) > self._limit:
            self._examined.popitem(last=False)

    def find(self, uid: str, now: datetime) -> tuple[str, ...] | None:
        """Return the causes of an object that was examined less than ten seconds ago; None for any other."""
        examined_at, causes = self._examined.get(uid, (None, ()))
        return causes if examined_at is not None and examined_at <= now < examined_at + _SHORTEST else None
