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
_MAX_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ExaminationSchedule:
    """The times of the examinations of one component.

    Args:
        since: The time since which the component is not ready.
    """

    since: datetime

    def is_late(self, now: datetime) -> bool:
        """Return True if the component has been not ready for long enough to examine its objects."""
        return self._compute_age(now) >= _FIRST

    def find_next_time(self, now: datetime) -> datetime:
        """Return the time of the next examination, at most an hour from now."""
        age, interval = self._compute_age(now), _FIRST
        while interval <= age:
            if interval >= _LONGEST:
                return now + _LONGEST
            interval *= 2
        return now + (interval - age)

    def _compute_age(self, now: datetime) -> timedelta:
        """Return the time for which the component is not ready.

        Any client can write the transition time of a condition. A time in the near future comes from another clock; any
        other one counts as long ago, because the component would never be late.
        """
        age = now - self.since
        if age < -_MAX_SKEW:
            return 2 * _LONGEST
        return max(age, timedelta(0))


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

    def find_last(self, uid: str) -> tuple[str, ...]:
        """Return the causes that the last examination of an object has found."""
        return self._examined.get(uid, (None, ()))[1]
