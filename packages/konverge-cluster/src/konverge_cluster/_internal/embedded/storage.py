"""Storage of the server: the objects of every resource, one revision counter, and a bounded log of changes.

The counter has the role of etcd's revision: each stored change increases it, and the object gets it as
``resourceVersion``. With the log, a watch can start in the past, and a paged list can continue at its first revision. A
revision before the log causes `ExpiredError` (410), as after a compaction of etcd.

Invariant: the state at a revision plus the later changes equals the current state.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from konverge._internal.kube import Object, ObjectKey
from konverge.errors import ExpiredError

__all__ = ["ChangeType", "Storage", "StorageChange", "StoredObject", "build_storage_key"]

ChangeType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

_TYPE = frozenset({"kind", "apiVersion"})
_PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


def build_storage_key(key: ObjectKey) -> str:
    """Return the key by which lists are in order, as in etcd: ``/namespace/name``, or ``/name`` without a namespace."""
    return f"/{key.namespace}/{key.name}" if key.namespace else f"/{key.name}"


class StoredObject:
    """One object as stored at one revision. All readers share it: `object` must not be changed.

    Args:
        obj: The object, with `revision` as its resourceVersion.
        revision: The revision of the write.

    Attributes:
        forms: The conversions of the object by a webhook, by apiVersion.
    """

    __slots__ = ("_encoded", "_encoded_item", "_encoded_metadata", "forms", "key", "object", "revision")

    def __init__(self, obj: Object, revision: int) -> None:
        self.object: Object = obj
        self.key: ObjectKey = ObjectKey.of(obj)
        self.revision: int = revision
        self.forms: dict[str, Object] = {}
        self._encoded: bytes | None = None
        self._encoded_item: bytes | None = None
        self._encoded_metadata: bytes | None = None

    @property
    def encoded(self) -> bytes:
        """The object as JSON; encoded only once for all watchers."""
        if self._encoded is None:
            self._encoded = _encode(self.object)
        return self._encoded

    @property
    def encoded_item(self) -> bytes:
        """The object as JSON without kind and apiVersion, for lists of built-in kinds; encoded only once."""
        if self._encoded_item is None:
            self._encoded_item = _encode({name: self.object[name] for name in self.object if name not in _TYPE})
        return self._encoded_item

    @property
    def encoded_metadata(self) -> bytes:
        """The metadata of the object as JSON (``PartialObjectMetadata``); encoded only once."""
        if self._encoded_metadata is None:
            self._encoded_metadata = _encode({**_PARTIAL, "metadata": self.object["metadata"]})
        return self._encoded_metadata

    def copy(self) -> Object:
        """Return a copy of the object that the caller may change."""
        copied: Object = _decode(self.encoded)
        return copied


@dataclass(frozen=True, slots=True)
class StorageChange:
    """One change in the log.

    Attributes:
        type: The type of the change.
        resource: The storage name of the resource, for example ``deployments.apps``.
        revision: The revision of the change.
        before: The previously stored object; None for ADDED.
        after: The object stored now; for DELETED the last state with the revision of the deletion.
    """

    type: ChangeType
    resource: str
    revision: int
    before: StoredObject | None
    after: StoredObject

    @property
    def key(self) -> ObjectKey:
        """The namespace and name of the changed object."""
        return self.after.key

    @property
    def old(self) -> Object | None:
        """The object before the change; None for ADDED. Shared: it must not be changed."""
        return None if self.before is None else self.before.object

    @property
    def new(self) -> Object:
        """The object after the change; for DELETED its last state. Shared: it must not be changed."""
        return self.after.object


Subscriber: TypeAlias = Callable[[StorageChange], None]


class Storage:
    """The storage of all objects.

    Args:
        history: The number of changes in the log, over all resources.
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
        """The oldest revision from which the log contains all changes."""
        return self._compacted

    @property
    def subscriber_count(self) -> int:
        """The number of subscribers to changes."""
        return len(self._subscribers)

    def get(self, resource: str, key: ObjectKey) -> StoredObject | None:
        """Return the object with that key; None if it does not exist."""
        return self._objects.get(resource, {}).get(key)

    def list_objects(self, resource: str, namespace: str = "") -> list[StoredObject]:
        """Return the resource's objects in the order of their keys, optionally of one namespace."""
        stored_objects = self._objects.get(resource, {})
        listed = (
            [stored for key, stored in stored_objects.items() if key.namespace == namespace]
            if namespace
            else stored_objects.values()
        )
        return sorted(listed, key=_sort_key)

    def iter_objects(self, resource: str) -> Iterator[StoredObject]:
        """Iterate over the resource's objects without order, which avoids the sort."""
        return iter(self._objects.get(resource, {}).values())

    def list_objects_at(self, resource: str, revision: int, namespace: str = "") -> list[StoredObject]:
        """Return the resource's objects at a past revision, by undoing the later changes.

        Raises:
            ExpiredError: The log does not reach back to that revision.
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
        """Return all changes after that revision, in order.

        Raises:
            ExpiredError: The log does not reach back to that revision.
        """
        if after < self._compacted:
            raise ExpiredError(f"too old resource version: {after} ({self._compacted})")
        return self._log[bisect_right(self._log, after, key=_revision_of) :]

    def store(self, resource: str, obj: Object) -> StoredObject:
        """Store the object under its namespace and name; its resourceVersion becomes the next revision.

        The storage owns `obj` after this call.
        """
        stored_objects = self._objects.setdefault(resource, {})
        stored = self._stamp(obj)
        old = stored_objects.get(stored.key)
        stored_objects[stored.key] = stored
        self._record(StorageChange("ADDED" if old is None else "MODIFIED", resource, stored.revision, old, stored))
        return stored

    def remove(self, resource: str, key: ObjectKey, last: Object | None = None) -> StoredObject:
        """Remove the object; return its last state as watchers receive it.

        Args:
            resource: The storage name of the resource.
            key: The key of the object, which must exist.
            last: Its last state, if it differs from the stored one.
        """
        old = self._objects[resource].pop(key)
        gone = self._stamp(old.copy() if last is None else last)
        self._record(StorageChange("DELETED", resource, gone.revision, old, gone))
        return gone

    def remove_resource(self, resource: str) -> None:
        """Remove a resource that is no longer served and has no objects."""
        if not self._objects.get(resource):
            self._objects.pop(resource, None)

    def compact(self, revision: int | None = None) -> None:
        """Remove the changes up to that revision (default: the current one) from the log, as etcd compacts."""
        limit = self._revision if revision is None else min(revision, self._revision)
        del self._log[: bisect_right(self._log, limit, key=_revision_of)]
        self._compacted = max(self._compacted, limit)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call a function for each later change, synchronously and in order; the returned function ends this.

        A subscriber must not write: the others would receive the changes out of order.
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
        # Removed in blocks, so that a full log is not moved for every change.
        if len(self._log) > self._history + self._history // 4:
            self.compact(self._log[-self._history - 1].revision)
        for subscriber in tuple(self._subscribers):
            subscriber(change)


def _revision_of(change: StorageChange) -> int:
    return change.revision


def _sort_key(stored: StoredObject) -> str:
    return build_storage_key(stored.key)
