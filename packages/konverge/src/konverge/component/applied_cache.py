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

__all__ = ["AppliedCache", "DesiredFingerprint"]

_encode = msgspec.json.Encoder(order="deterministic").encode
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class DesiredFingerprint:
    """Who wants an object to be how.

    Args:
        field_manager: Who applies.
        digest: Stands for the desired object; it may be a Secret, of which nothing else is to be kept.
    """

    field_manager: str
    digest: bytes

    @classmethod
    def of(cls, desired: Object, field_manager: str) -> DesiredFingerprint:
        """The wish of a manager that desires this object."""
        return cls(field_manager, hashlib.blake2b(_encode(desired), digest_size=_DIGEST_BYTES).digest())


# After which time an object is applied again that somebody overrides: the first, and the last.
_FIRST_INTERVAL = timedelta(seconds=30)
_LAST_INTERVAL = timedelta(minutes=32)


@dataclass(frozen=True, slots=True)
class _RemainingDrift:
    desired: bytes
    differences: tuple[Difference, ...]
    interval: timedelta = timedelta(0)
    retry_at: datetime | None = None  # None: nothing is overridden, and to apply again cannot help

    @property
    def overridden_paths(self) -> tuple[str, ...]:
        return tuple(each.path for each in self.differences if each.is_override)


class AppliedCache:
    """Remembers, by object, which wish it fulfils; by object and manager, what the last apply left different.

    Beside that, what was said once and is not to be said each pass.

    Args:
        limit: How many objects at most of each; the longest unused is forgotten first, which costs one comparison, or
            one apply that changes nothing.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._drift: OrderedDict[tuple[str, str], _RemainingDrift] = OrderedDict()
        # One of its wishes an object, in one digest with the version that fulfils it: there may be many.
        self._steady: dict[str, bytes] = {}
        self._notes: OrderedDict[tuple[str, ...], str] = OrderedDict()

    def mark_steady(self, live: Object, fingerprint: DesiredFingerprint) -> None:
        """Note that applying would change nothing of this live object."""
        uid, version = _read_version(live)
        if not (uid and version):
            return
        self._steady.pop(uid, None)
        self._steady[uid] = _compute_digest(version, fingerprint)
        if len(self._steady) > self._limit:
            del self._steady[next(iter(self._steady))]

    def store_note(self, text: str, *about: str) -> None:
        """Keep what was said about something, so that a later pass need not find it out or say it again."""
        self._notes.pop(about, None)
        self._notes[about] = text
        if len(self._notes) > self._limit:
            self._notes.popitem(last=False)

    def find_note(self, *about: str) -> str | None:
        """What was noted about it; None for nothing, or if it was forgotten."""
        text = self._notes.get(about)
        if text is not None:
            self._notes.move_to_end(about)
        return text

    def is_steady(self, live: Object, fingerprint: DesiredFingerprint) -> bool:
        """Tell whether just this version of the object is known to fulfil just this wish."""
        uid, version = _read_version(live)
        known = self._steady.get(uid)
        return known is not None and known == _compute_digest(version, fingerprint)

    def record_drift(
        self, uid: str, fingerprint: DesiredFingerprint, remaining: Sequence[Difference], now: datetime
    ) -> bool:
        """Note what still differed right after an apply; nothing left is nothing to remember.

        Args:
            uid: The object.
            fingerprint: What was applied.
            remaining: What differs.
            now: The present time.

        Returns:
            Whether somebody overrides fields of it and did not override these the last time: that is to be said.
        """
        key = (uid, fingerprint.field_manager)
        before = self._drift.pop(key, None)
        if not remaining:
            return False
        now_left = _RemainingDrift(fingerprint.digest, tuple(remaining))
        if now_left.overridden_paths:
            is_known = before is not None and before.overridden_paths == now_left.overridden_paths
            interval = _FIRST_INTERVAL if before is None or not is_known else min(2 * before.interval, _LAST_INTERVAL)
            now_left = replace(now_left, interval=interval, retry_at=now + interval)
        self._drift[key] = now_left
        if len(self._drift) > self._limit:
            self._drift.popitem(last=False)
        return now_left.interval == _FIRST_INTERVAL

    def is_known_drift(
        self, uid: str, fingerprint: DesiredFingerprint, differences: Sequence[Difference], now: datetime
    ) -> bool:
        """Tell whether just these differences were left by applying just this object: applying again cannot help now.

        Args:
            uid: The object.
            fingerprint: What is wanted of it.
            differences: What differs.
            now: The present time; what somebody overrides is worth another try after a while.
        """
        key = (uid, fingerprint.field_manager)
        left = self._drift.get(key)
        if left is None or left.differences != tuple(differences) or left.desired != fingerprint.digest:
            return False
        if left.retry_at is not None and now >= left.retry_at:
            return False
        self._drift.move_to_end(key)
        return True

    def find_retry_time(self, uid: str, fingerprint: DesiredFingerprint) -> datetime | None:
        """When the object is worth another apply although nothing has changed; None for never."""
        left = self._drift.get((uid, fingerprint.field_manager))
        return None if left is None else left.retry_at


def _read_version(live: Object) -> tuple[str, str]:
    metadata = live["metadata"]
    return metadata.get("uid", ""), metadata.get("resourceVersion", "")


def _compute_digest(version: str, fingerprint: DesiredFingerprint) -> bytes:
    found = hashlib.blake2b(fingerprint.digest, digest_size=_DIGEST_BYTES)
    found.update(f"{version} {fingerprint.field_manager}".encode())
    return found.digest()
