"""A cache of the results of applies, so that later reconciles need no repeated request or comparison.

A server can default values inside an atomic list, or store a value in another form (for example a quantity). Such a
difference stays after the apply. Without the cache, each reconcile would apply the object again; with it, one reconcile
after a restart does.

If the stored value is another value and not only another form, a webhook or a policy overrides it before storage. The
override can end at any time without an event, so such an object is applied again at growing intervals.

Most reconciles find an object unchanged. An object that was compared once and needed no apply needs none as long as
both the desired and the live object stay the same.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from konverge._internal.apply import Difference
from konverge._internal.kube import Object

__all__ = ["AppliedCache", "DesiredFingerprint"]

_encode = msgspec.json.Encoder(order="deterministic").encode
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class DesiredFingerprint:
    """Fingerprint of the object that a field manager desires.

    Args:
        field_manager: The field manager that applies.
        digest: The digest of the desired object. The object itself can be a Secret, so the cache does not keep it.
    """

    field_manager: str
    digest: bytes

    @classmethod
    def of(cls, desired: Object, field_manager: str) -> DesiredFingerprint:
        """Return the fingerprint of this desired object for a field manager."""
        return cls(field_manager, hashlib.blake2b(_encode(desired), digest_size=_DIGEST_BYTES).digest())


# The first and the longest interval after which an object with overridden fields is applied again.
_FIRST_INTERVAL = timedelta(seconds=30)
_LAST_INTERVAL = timedelta(minutes=32)


@dataclass(frozen=True, slots=True)
class _RemainingDrift:
    desired: bytes
    differences: tuple[Difference, ...]
    interval: timedelta = timedelta(0)
    retry_at: datetime | None = None  # None: no field is overridden, so another apply has no effect

    @property
    def overridden_paths(self) -> tuple[str, ...]:
        return tuple(difference.path for difference in self.differences if difference.is_override)


class AppliedCache:
    """Cache of the desired state that each object has reached, and of the differences that an apply left.

    It also keeps notes about reports that are made once and not in each reconcile.

    Args:
        limit: The maximum number of objects of each sort. The least recently used one is dropped first, which costs one
            comparison, or one apply that changes nothing.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._drift: OrderedDict[tuple[str, str], _RemainingDrift] = OrderedDict()
        # One fingerprint for each object, in one digest with the resource version, since there can be many objects.
        self._steady: dict[str, bytes] = {}
        self._notes: OrderedDict[tuple[str, ...], str] = OrderedDict()

    def mark_steady(self, live: Object, fingerprint: DesiredFingerprint) -> None:
        """Note that an apply would not change this live object."""
        uid, version = _read_version(live)
        if not (uid and version):
            return
        self._steady.pop(uid, None)
        self._steady[uid] = _compute_digest(version, fingerprint)
        if len(self._steady) > self._limit:
            del self._steady[next(iter(self._steady))]

    def store_note(self, text: str, *about: str) -> None:
        """Keep the text of a report under a key, so that a later reconcile does not repeat it."""
        self._notes.pop(about, None)
        self._notes[about] = text
        if len(self._notes) > self._limit:
            self._notes.popitem(last=False)

    def find_note(self, *about: str) -> str | None:
        """Return the note under a key; None if there is none, or if it was dropped."""
        text = self._notes.get(about)
        if text is not None:
            self._notes.move_to_end(about)
        return text

    def is_steady(self, live: Object, fingerprint: DesiredFingerprint) -> bool:
        """Return True if exactly this version of the object is known to have exactly this desired state."""
        uid, version = _read_version(live)
        digest = self._steady.get(uid)
        return digest is not None and digest == _compute_digest(version, fingerprint)

    def record_drift(
        self, uid: str, fingerprint: DesiredFingerprint, remaining: Sequence[Difference], now: datetime
    ) -> bool:
        """Note the differences that remained right after an apply.

        Args:
            uid: The UID of the object.
            fingerprint: The fingerprint of the applied object.
            remaining: The differences; without any, the earlier note is removed.
            now: The present time.

        Returns:
            True if the cluster overrides fields that it did not override after the last apply: this must be reported.
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
        """Return True if an apply of this object left exactly these differences, so that another one has no effect.

        Args:
            uid: The UID of the object.
            fingerprint: The fingerprint of the desired object.
            differences: The present differences.
            now: The present time; overridden fields are applied again after an interval.
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
        """Return the time of the next apply of an object with overridden fields; None if it has none."""
        left = self._drift.get((uid, fingerprint.field_manager))
        return None if left is None else left.retry_at


def _read_version(live: Object) -> tuple[str, str]:
    metadata = live["metadata"]
    return metadata.get("uid", ""), metadata.get("resourceVersion", "")


def _compute_digest(version: str, fingerprint: DesiredFingerprint) -> bytes:
    digest = hashlib.blake2b(fingerprint.digest, digest_size=_DIGEST_BYTES)
    digest.update(f"{version} {fingerprint.field_manager}".encode())
    return digest.digest()
