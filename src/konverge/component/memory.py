"""What earlier passes found out about the objects that they applied, so that later ones need not find it out again.

A server may default values inside an atomic list or write a value in another form than ours (a quantity, for one). Such
a difference stays after the apply. Without a memory it would be applied again on each pass, forever; with it, once
after a restart.

Where what stays is not our value in another form but another value, a webhook or a policy overrides it on its way into
the storage. It may cease to at any time, without an event: such an object is applied again at intervals that grow.

And most passes find an object as the one before left it. What was compared once, and needed no apply, needs none as
long as both sides are what they were.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from konverge.apply import Difference
from konverge.kube import Object

__all__ = ["AppliedMemory", "Wish"]

_encode = msgspec.json.Encoder(order="deterministic").encode
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Wish:
    """Who wants an object to be how.

    Args:
        field_manager: Who applies.
        digest: Stands for the desired object; it may be a Secret, of which nothing else is to be kept.
    """

    field_manager: str
    digest: bytes

    @classmethod
    def of(cls, desired: Object, field_manager: str) -> Wish:
        """The wish of a manager that desires this object."""
        return cls(field_manager, hashlib.blake2b(_encode(desired), digest_size=_DIGEST_BYTES).digest())


# After which time an object is applied again that somebody overrides: the first, and the last.
_FIRST_INTERVAL = timedelta(seconds=30)
_LAST_INTERVAL = timedelta(minutes=32)


@dataclass(frozen=True, slots=True)
class _Left:
    desired: bytes
    differences: tuple[Difference, ...]
    interval: timedelta = timedelta(0)
    again_at: datetime | None = None  # None: nothing is overridden, and to apply again cannot help

    @property
    def overridden(self) -> tuple[str, ...]:
        return tuple(each.path for each in self.differences if each.is_override)


class AppliedMemory:
    """Remembers, by object, which wish it fulfils; by object and manager, what the last apply left different.

    Beside that, what was said once and is not to be said each pass.

    Args:
        limit: How many objects at most of each; the longest unused is forgotten first, which costs one comparison, or
            one apply that changes nothing.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._left: OrderedDict[tuple[str, str], _Left] = OrderedDict()
        # One of its wishes an object, in one digest with the version that fulfils it: there may be many.
        self._fulfilled: dict[str, bytes] = {}
        self._notes: OrderedDict[tuple[str, ...], str] = OrderedDict()

    def settle(self, live: Object, wish: Wish) -> None:
        """Note that applying would change nothing of this live object."""
        uid, version = _version(live)
        if not (uid and version):
            return
        self._fulfilled.pop(uid, None)
        self._fulfilled[uid] = _fulfilment(version, wish)
        if len(self._fulfilled) > self._limit:
            del self._fulfilled[next(iter(self._fulfilled))]

    def note(self, text: str, *about: str) -> None:
        """Keep what was said about something, so that a later pass need not find it out or say it again."""
        self._notes.pop(about, None)
        self._notes[about] = text
        if len(self._notes) > self._limit:
            self._notes.popitem(last=False)

    def recall(self, *about: str) -> str | None:
        """What was noted about it; None for nothing, or if it was forgotten."""
        text = self._notes.get(about)
        if text is not None:
            self._notes.move_to_end(about)
        return text

    def is_settled(self, live: Object, wish: Wish) -> bool:
        """Tell whether just this version of the object is known to fulfil just this wish."""
        uid, version = _version(live)
        known = self._fulfilled.get(uid)
        return known is not None and known == _fulfilment(version, wish)

    def remember(self, uid: str, wish: Wish, left: Sequence[Difference], now: datetime) -> bool:
        """Note what still differed right after an apply; nothing left is nothing to remember.

        Args:
            uid: The object.
            wish: What was applied.
            left: What differs.
            now: The present time.

        Returns:
            Whether somebody overrides fields of it and did not override these the last time: that is to be said.
        """
        key = (uid, wish.field_manager)
        before = self._left.pop(key, None)
        if not left:
            return False
        now_left = _Left(wish.digest, tuple(left))
        if now_left.overridden:
            is_known = before is not None and before.overridden == now_left.overridden
            interval = _FIRST_INTERVAL if before is None or not is_known else min(2 * before.interval, _LAST_INTERVAL)
            now_left = replace(now_left, interval=interval, again_at=now + interval)
        self._left[key] = now_left
        if len(self._left) > self._limit:
            self._left.popitem(last=False)
        return now_left.interval == _FIRST_INTERVAL

    def explains(self, uid: str, wish: Wish, found: Sequence[Difference], now: datetime) -> bool:
        """Tell whether just these differences were left by applying just this object: applying again cannot help now.

        Args:
            uid: The object.
            wish: What is wanted of it.
            found: What differs.
            now: The present time; what somebody overrides is worth another try after a while.
        """
        key = (uid, wish.field_manager)
        left = self._left.get(key)
        if left is None or left.differences != tuple(found) or left.desired != wish.digest:
            return False
        if left.again_at is not None and now >= left.again_at:
            return False
        self._left.move_to_end(key)
        return True

    def again_at(self, uid: str, wish: Wish) -> datetime | None:
        """When the object is worth another apply although nothing has changed; None for never."""
        left = self._left.get((uid, wish.field_manager))
        return None if left is None else left.again_at


def _version(live: Object) -> tuple[str, str]:
    metadata = live["metadata"]
    return metadata.get("uid", ""), metadata.get("resourceVersion", "")


def _fulfilment(version: str, wish: Wish) -> bytes:
    found = hashlib.blake2b(wish.digest, digest_size=_DIGEST_BYTES)
    found.update(f"{version} {wish.field_manager}".encode())
    return found.digest()
