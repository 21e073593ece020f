"""What the server keeps: the objects of every resource, one revision counter, and a bounded log of the last changes.

The counter plays etcd's part: each stored change takes the next revision, which becomes the object's
``resourceVersion``. The log lets a watch start in the past and lets a paged list be finished at the revision at which
it began; what has fallen out of it is `ExpiredError` (410), as after a compaction of etcd.

Invariant: replaying the changes after a revision on the state of that revision gives the present state.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from konverge.errors import ExpiredError
from konverge.kube import Object, ObjectKey

__all__ = ["ChangeType", "Storage", "StorageChange", "StoredObject"]

ChangeType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

_TYPE = frozenset({"kind", "apiVersion"})
_PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


class StoredObject:
    """One object as it was stored at one revision. Shared by all readers: nobody may change `object`.

    Args:
        obj: The object, with `revision` as its resourceVersion.
        revision: When it was stored.

    Attributes:
        forms: What a webhook made of it, by apiVersion.
    """

    __slots__ = ("_encoded", "_encoded_item", "_encoded_metadata", "forms", "key", "object", "revision")

    def __init__(self, obj: Object, revision: int) -> None:
        self.object = obj
        self.key = ObjectKey.of(obj)
        self.revision = revision
        self.forms: dict[str, Object] = {}
        self._encoded: bytes | None = None
        self._encoded_item: bytes | None = None
        self._encoded_metadata: bytes | None = None

    @property
    def encoded(self) -> bytes:
        """The object as JSON; encoded once, however many watchers send it."""
        if self._encoded is None:
            self._encoded = _encode(self.object)
        return self._encoded

    @property
    def encoded_item(self) -> bytes:
        """The same without kind and apiVersion, as a list of a built-in kind has it; encoded once."""
        if self._encoded_item is None:
            self._encoded_item = _encode({name: self.object[name] for name in self.object if name not in _TYPE})
        return self._encoded_item

    @property
    def encoded_metadata(self) -> bytes:
        """The object's metadata alone (``PartialObjectMetadata``) as JSON; encoded once."""
        if self._encoded_metadata is None:
            self._encoded_metadata = _encode({**_PARTIAL, "metadata": self.object["metadata"]})
        return self._encoded_metadata

    def copy(self) -> Object:
        """The object, for a caller that may change it."""
        copied: Object = _decode(self.encoded)
        return copied


@dataclass(frozen=True, slots=True)
class StorageChange:
    """One change as the log keeps it.

    Attributes:
        type: What happened.
        resource: The storage name of the resource, for example ``deployments.apps``.
        revision: When.
        before: What was stored before; None for ADDED.
        after: What is stored now; for DELETED the object's last state, carrying the revision of the deletion.
    """

    type: ChangeType
    resource: str
    revision: int
    before: StoredObject | None
    after: StoredObject

    @property
    def key(self) -> ObjectKey:
        """Which object changed."""
        return self.after.key

    @property
    def old(self) -> Object | None:
        """The object before, None for ADDED. Shared: not to be changed."""
        return None if self.before is None else self.before.object

    @property
    def new(self) -> Object:
        """The object after; for DELETED its last state. Shared: not to be changed."""
        return self.after.object


Subscriber: TypeAlias = Callable[[StorageChange], None]


class Storage:
    """The store.

    Args:
        history: How many changes the log keeps, over all resources.
    """

    def __init__(self, *, history: int = 20_000) -> None:
        if history < 1:
            raise ValueError(f"history is at least 1 (found {history})")
        self._history = history
        self._objects: dict[str, dict[ObjectKey, StoredObject]] = {}
        self._log: list[StorageChange] = []
        self._compacted = 0
        self._revision = 0
        self._subscribers: list[Subscriber] = []

    @property
    def revision(self) -> int:
        """The revision of the last change."""
        return self._revision

    @property
    def oldest_revision(self) -> int:
        """The oldest revision from which changes can still be told."""
        return self._compacted

    @property
    def subscriber_count(self) -> int:
        """How many are told of changes."""
        return len(self._subscribers)

    def get(self, resource: str, key: ObjectKey) -> StoredObject | None:
        """The object of that key, None when there is none."""
        return self._objects.get(resource, {}).get(key)

    def list_objects(self, resource: str, namespace: str = "") -> list[StoredObject]:
        """The resource's objects in the order of their keys; of one namespace when one is given."""
        held = self._objects.get(resource, {})
        found = [stored for key, stored in held.items() if key.namespace == namespace] if namespace else held.values()
        return sorted(found, key=_sort_key)

    def iter_objects(self, resource: str) -> Iterator[StoredObject]:
        """The resource's objects in no particular order: what a look at all of them needs, without the sorting."""
        return iter(self._objects.get(resource, {}).values())

    def list_objects_at(self, resource: str, revision: int, namespace: str = "") -> list[StoredObject]:
        """The same as it was at a past revision: the later changes undone.

        Raises:
            ExpiredError: The log no longer reaches back so far.
        """
        state = {stored.key: stored for stored in self.list_objects(resource, namespace)}
        for change in reversed(self.list_changes(revision)):
            if change.resource != resource or (namespace and change.key.namespace != namespace):
                continue
            if change.before is None:
                state.pop(change.key, None)
            else:
                state[change.key] = change.before
        return sorted(state.values(), key=_sort_key)

    def list_changes(self, after: int) -> list[StorageChange]:
        """All changes later than that revision, in order.

        Raises:
            ExpiredError: The log no longer reaches back so far.
        """
        if after < self._compacted:
            raise ExpiredError(f"too old resource version: {after} ({self._compacted})")
        return self._log[bisect_right(self._log, after, key=_revision_of) :]

    def store(self, resource: str, obj: Object) -> StoredObject:
        """Store the object under its own namespace and name; it gets the next revision as its resourceVersion.

        The storage owns `obj` from here on.
        """
        held = self._objects.setdefault(resource, {})
        stored = self._stamp(obj)
        old = held.get(stored.key)
        held[stored.key] = stored
        self._record(StorageChange("ADDED" if old is None else "MODIFIED", resource, stored.revision, old, stored))
        return stored

    def remove(self, resource: str, key: ObjectKey, last: Object | None = None) -> StoredObject:
        """Take the object out; return its last state as watchers see it.

        Args:
            resource: The storage name of the resource.
            key: The object, which must be there.
            last: Its last state, when that differs from what is stored.
        """
        old = self._objects[resource].pop(key)
        gone = self._stamp(old.copy() if last is None else last)
        self._record(StorageChange("DELETED", resource, gone.revision, old, gone))
        return gone

    def remove_resource(self, resource: str) -> None:
        """Drop a resource that is no longer served and has no objects left."""
        if not self._objects.get(resource):
            self._objects.pop(resource, None)

    def compact(self, revision: int | None = None) -> None:
        """Forget the changes up to that revision (the present one by default), as etcd's compaction does."""
        limit = self._revision if revision is None else min(revision, self._revision)
        del self._log[: bisect_right(self._log, limit, key=_revision_of)]
        self._compacted = max(self._compacted, limit)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Have each later change told, synchronously and in order; the answer ends it.

        A subscriber only takes note. It must not write: the others would see the changes out of order.
        """
        self._subscribers.append(subscriber)

        def end() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return end

    def _stamp(self, obj: Object) -> StoredObject:
        self._revision += 1
        obj["metadata"]["resourceVersion"] = str(self._revision)
        return StoredObject(obj, self._revision)

    def _record(self, change: StorageChange) -> None:
        self._log.append(change)
        # Cut in blocks, so that a full log does not move on every change.
        if len(self._log) > self._history + self._history // 4:
            self.compact(self._log[-self._history - 1].revision)
        for subscriber in tuple(self._subscribers):
            subscriber(change)


def _revision_of(change: StorageChange) -> int:
    return change.revision


def _sort_key(stored: StoredObject) -> tuple[str, str]:
    return stored.key.namespace, stored.key.name
