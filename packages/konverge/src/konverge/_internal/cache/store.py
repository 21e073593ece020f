"""The cached objects of one collection, built from lists, the watch and own writes. Pure.

These sources can disagree for a while. The store decides between them:

* The *watch* reports everything in order, but late.
* The response to an *own write* is newer than the watch, or older if the watch was faster. The higher resource version
  stays. If the watch has passed a response and the object is not cached, the object was deleted since.
* An *own delete* has no version. The store remembers its UID, so that neither a late event nor a list in progress
  brings the object back.

Readers see the last whole list plus all later changes, never a partial list. Each difference that readers see is a
`StoreChange`. Each change of an object starts at the state where the last one ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from konverge._internal.cache.cached_object import CachedObject, RawObject, parse_object
from konverge._internal.cache.indexes import Index
from konverge._internal.cache.informer_statistics import InformerStatistics
from konverge._internal.cache.options import CacheOptions, CacheSelection
from konverge._internal.cache.projection import Projection
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.metadata import ObjectMeta, parse_revision

__all__ = ["Store", "StoreChange", "StoreReplacement"]

# An own delete without a confirming event is remembered for this time: far longer than a watch lags.
_DELETED_SECONDS = 300.0


class StoreChange(NamedTuple):
    """A change of one object: old without new is a deletion, new without old an addition.

    A deletion that happened while no watch was open is discovered by a list, and is reported like any other with the
    last cached state. The *final* state of the object is unknown then, and its name may have been used again.
    """

    old: ObjectMeta | None
    new: ObjectMeta | None


class Store:
    """The cached objects of one collection.

    Args:
        gvk: The kind of the objects.
        keep: A predicate on the metadata: whether to cache the object; None caches all. It must accept an object before
            the object is read, or its changes are not reported. Of a dropped object only a hash of the key remains:
            enough to know that it exists.
        options: The selection of objects, and how much of each is cached.
        indexes: The indexes to keep up to date. Stores of other namespaces of the kind may share them.
        statistics: Counters of stale events and of objects that cannot be cached.
    """

    def __init__(
        self,
        gvk: GroupVersionKind,
        keep: Callable[[ObjectMeta], bool] | None = None,
        *,
        options: CacheOptions | None = None,
        indexes: Mapping[str, Index] | None = None,
        statistics: InformerStatistics | None = None,
    ) -> None:
        self._keep = keep
        self._statistics = statistics or InformerStatistics()
        self._selection = CacheSelection(options or CacheOptions())
        self.projection: Projection = Projection(gvk, options or CacheOptions(), self._statistics)
        """The conversion of objects into what is cached of them."""
        self._indexes = {} if indexes is None else indexes
        self._entries: dict[ObjectKey, CachedObject] = {}
        self._dropped: set[int] = set()
        # UIDs of own deletes with their times, oldest first, until the watch reports the deletion.
        self._deleted: dict[str, float] = {}
        # The last known versions of objects that own requests removed: watch events up to there are stale.
        self._floors: dict[ObjectKey, int] = {}
        # The versions of own writes whose objects are not cached, until the watch has reported them. The next read goes
        # to the server; a watch or a list that is behind must not bring in an older version meanwhile.
        self._unheld: dict[ObjectKey, int] = {}
        self._resource_version, self._revision = "", 0
        # The newest version in a response to an own request: later watch events are newer than every cached object.
        self._newest_answer = 0
        # The objects that were read live after the last list was requested.
        self._read_since_list: set[ObjectKey] = set()
        # The objects that were written after all others became void; None while none are void.
        self._written_since: set[ObjectKey] | None = None

    @property
    def resource_version(self) -> str:
        """The version up to which the store is complete; empty before the first whole list."""
        return self._resource_version

    @property
    def revision(self) -> int:
        """The resource version as a number; 0 before the first whole list."""
        return self._revision

    @property
    def newest_known_revision(self) -> int:
        """The newest revision in any watch event, list, or response to a write."""
        return max(self._revision, self._newest_answer)

    @property
    def dropped(self) -> int:
        """The number of objects that exist but are not cached."""
        return len(self._dropped)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._entries

    def get(self, key: ObjectKey) -> Object | None:
        """Return a new copy of the object; None if it is absent or was dropped."""
        entry = self._entries.get(key)
        return None if entry is None else entry.decode()

    def get_metadata(self, key: ObjectKey) -> ObjectMeta | None:
        """Return the object's metadata; None if it is absent or was dropped."""
        entry = self._entries.get(key)
        return None if entry is None else entry.meta

    def is_dropped(self, key: ObjectKey) -> bool:
        """Return True if the object exists but is not cached."""
        return hash(key) in self._dropped

    def iter_metadata(self) -> Iterator[ObjectMeta]:
        """Iterate over the metadata of all cached objects; a change of the store invalidates the iterator."""
        return (entry.meta for entry in self._entries.values())

    def populate_index(self, index: Index) -> None:
        """Add all cached objects to a new index."""
        for key, entry in self._entries.items():
            index.upsert(key, entry.decode())

    def evict_rejected(self) -> None:
        """Drop the objects that `keep` now rejects, without reporting a change."""
        for key, meta in [(key, entry.meta) for key, entry in self._entries.items() if not self._is_kept(entry.meta)]:
            self._remove_entry(key)
            self._dropped.add(hash(key))
            if meta.revision > self._revision and self._is_comparable(key):
                self._unheld[key] = meta.revision

    def find_newest_key(self) -> ObjectKey | None:
        """Return the key of the cached object with the newest version; None if no object is cached."""
        newest = max(self._entries.values(), key=lambda entry: entry.meta.revision, default=None)
        return None if newest is None else newest.meta.key

    def invalidate(self) -> None:
        """Discard all known revisions: the server's storage was set back.

        Readers keep the cached objects until the next list is in place. Later own writes belong to the new history.
        """
        self._deleted.clear()
        self._floors.clear()
        self._unheld.clear()
        self._resource_version, self._revision, self._newest_answer = "", 0, 0
        self._written_since = set()

    # Events of the watch.

    def upsert(self, received: RawObject) -> StoreChange | None:
        """Apply an event of an added or modified object; return None if readers see no difference."""
        meta = received.meta
        key, revision = meta.key, meta.revision
        if 0 < revision <= self._revision:
            # Reported before: a watch that resumes too early must not bring back an object that was deleted since.
            self._statistics.stale_events += 1
            return None
        if revision >= self._revision:
            self._resource_version, self._revision = meta.resource_version, revision
        if self._floors and 0 < revision <= self._floors.get(key, 0):
            self._statistics.stale_events += 1
            return None
        if self._unheld and self._is_before_own_write(key, revision):
            self._statistics.stale_events += 1
            return None
        if self._deleted and meta.uid in self._deleted:
            return self._remove_predecessor(meta)
        stored = self._entries.get(key)
        if stored is not None:
            if stored.meta.resource_version == meta.resource_version:
                return None  # an own write
            if revision <= self._newest_answer and stored.meta.revision > revision:
                self._statistics.stale_events += 1
                return None
        return self._upsert_entry(key, stored, received)

    def remove(self, received: RawObject) -> StoreChange | None:
        """Apply an event of an object that was deleted, or that the selectors no longer match.

        Return None if readers see no difference.
        """
        meta = received.meta
        key, revision = meta.key, meta.revision
        is_repeated = 0 < revision <= self._revision
        self._advance(meta.resource_version, revision)
        self._deleted.pop(meta.uid, None)
        if self._floors and revision > self._floors.get(key, 0):
            self._floors.pop(key, None)
        if self._unheld and self._is_before_own_write(key, revision):
            return None  # a new object of this name exists
        stored = self._entries.get(key)
        if stored is None:
            if not is_repeated:
                self._dropped.discard(hash(key))
            return None
        if stored.meta.uid != meta.uid and stored.meta.revision > revision:
            return None  # a new object of this name exists and is cached already
        self._remove_entry(key)
        return StoreChange(stored.meta, None)

    def record_bookmark(self, resource_version: str) -> None:
        """Record that the watch has reported everything up to this version."""
        self._advance(resource_version, parse_revision(resource_version))

    def begin_replacement(self, now: float) -> StoreReplacement:
        """Begin to read a whole list; readers keep the cached objects until it is committed.

        Args:
            now: Monotonic seconds, before the list is requested: objects deleted earlier cannot be in it.
        """
        self._read_since_list.clear()
        return StoreReplacement(self, now)

    # Responses to own requests.

    def record_write(self, obj: Mapping[str, Any]) -> StoreChange | None:
        """Apply the response to an own create, update, patch or apply; return None if readers see no difference.

        Objects that the selectors do not match are not cached. If an object stops matching with this write, the change
        is a deletion, as the watch will report it.

        Raises:
            ValueError: The object cannot be parsed.
        """
        received = parse_object(obj)
        meta = received.meta
        key, revision = meta.key, meta.revision
        if meta.uid in self._deleted:
            return self._remove_predecessor(meta)
        stored = self._entries.get(key)
        if stored is not None:
            if stored.meta.revision >= revision and self._is_comparable(key):
                return None
        elif revision <= max(self._revision, self._floors.get(key, 0), self._unheld.get(key, 0)):
            # Everything up to this write is known, and the object is not cached: it was deleted again, or it was
            # dropped and may have changed since.
            return None
        self._newest_answer = max(self._newest_answer, revision)
        if self._written_since is not None:
            self._written_since.add(key)
        if self._selection.includes(meta, is_held=stored is not None):
            change = self._upsert_entry(key, stored, received)
            if key not in self._entries:
                self._unheld[key] = revision
            return change
        if stored is None:
            return None
        self._raise_floor(key, revision)
        self._remove_entry(key)
        return StoreChange(stored.meta, None)

    def record_read(self, obj: Mapping[str, Any]) -> None:
        """Cache a dropped object after a live read, if `keep` accepts it.

        This reports no change: the object itself did not change.

        Raises:
            ValueError: The object cannot be parsed.
        """
        received = parse_object(obj)
        key = received.meta.key
        # Otherwise an event has brought the object, or it was deleted before the response arrived.
        if self.is_dropped(key) and received.meta.uid not in self._deleted:
            self._newest_answer = max(self._newest_answer, received.meta.revision)
            self._read_since_list.add(key)
            self._upsert_entry(key, None, received)

    def record_delete(self, key: ObjectKey, uid: str, now: float) -> StoreChange | None:
        """Apply an own delete after which no finalizer is left; return None if readers see no difference.

        Args:
            key: The key of the object.
            uid: The UID of the object: another object of that name stays.
            now: Monotonic seconds.
        """
        self._expire_deletions(now)
        self._deleted[uid] = now
        stored = self._entries.get(key)
        if stored is None or stored.meta.uid != uid:
            # The UID of an object that is not cached is unknown: the watch or a live read shows which object was
            # deleted.
            return None
        self._raise_floor(key, stored.meta.revision)
        self._remove_entry(key)
        return StoreChange(stored.meta, None)

    # Private; `StoreReplacement` uses these too.

    def _upsert_entry(self, key: ObjectKey, stored: CachedObject | None, received: RawObject) -> StoreChange | None:
        meta = received.meta
        entry = self.projection.project(received) if self._is_kept(meta) else None
        if entry is not None:
            self._entries[key] = entry
            if self._dropped:
                self._dropped.discard(hash(key))
            if self._indexes:
                for index in self._indexes.values():
                    index.upsert(key, entry.decode())
            return StoreChange(None if stored is None else stored.meta, meta)
        self._dropped.add(hash(key))
        if stored is None:
            return None
        self._remove_entry(key)
        return StoreChange(stored.meta, meta)

    def _remove_entry(self, key: ObjectKey) -> None:
        del self._entries[key]
        for index in self._indexes.values():
            index.remove(key)

    def _advance(self, resource_version: str, revision: int) -> None:
        if revision >= self._revision:
            self._resource_version, self._revision = resource_version, revision

    def _remove_predecessor(self, meta: ObjectMeta) -> StoreChange | None:
        """Remove an older object of the same name: the deleted object can only have come after it."""
        self._raise_floor(meta.key, meta.revision)
        stored = self._entries.get(meta.key)
        if stored is None or stored.meta.revision > meta.revision:
            return None
        self._remove_entry(meta.key)
        return StoreChange(stored.meta, None)

    def _raise_floor(self, key: ObjectKey, revision: int) -> None:
        if revision > max(self._revision, self._floors.get(key, 0)) and self._is_comparable(key):
            self._floors[key] = revision

    def _is_comparable(self, key: ObjectKey) -> bool:
        """Return True if the cached version of the object belongs to the server's present history."""
        return self._written_since is None or key in self._written_since

    def _is_before_own_write(self, key: ObjectKey, revision: int) -> bool:
        """Return True if an event is older than an own write that is not cached; else forget that write."""
        if 0 < revision < self._unheld.get(key, 0):
            return True
        self._unheld.pop(key, None)
        return False

    def _expire_deletions(self, now: float) -> None:
        while self._deleted:
            uid, moment = next(iter(self._deleted.items()))
            if now - moment < _DELETED_SECONDS:
                return
            del self._deleted[uid]

    def _is_kept(self, meta: ObjectMeta) -> bool:
        return self._keep is None or self._keep(meta)


class StoreReplacement:
    """A whole list that is being read: it receives item by item, and replaces the store's objects at once."""

    def __init__(self, store: Store, started: float) -> None:
        self._store = store
        self._entries: dict[ObjectKey, CachedObject] = {}
        self._dropped: set[int] = set()
        # Objects that readers have seen, and that the list contains in a state that `keep` rejects.
        self._refused: dict[ObjectKey, ObjectMeta] = {}
        # A list includes every write with a response before the list was requested: it has at least that version.
        self._min_revision = store.newest_known_revision
        self._replaces_void = store._written_since is not None
        self.started_at = started
        """Monotonic seconds, before the list was requested."""

    def __len__(self) -> int:
        return len(self._entries) + len(self._dropped)

    def upsert(self, received: RawObject) -> None:
        """Add an object of the list; readers do not see it yet."""
        store = self._store
        meta = received.meta
        key = meta.key
        stored = store._entries.get(key)
        entry: CachedObject | None = None
        if store._is_kept(meta):
            is_same = stored is not None and stored.meta.resource_version == meta.resource_version
            if is_same and not self._replaces_void:  # noqa: SIM108  # the comment belongs to one of the two
                entry = stored  # most objects are unchanged after a relist: one copy serves both
            else:
                entry = store.projection.project(received)
        if entry is not None:
            if self._dropped:
                self._dropped.discard(hash(key))
            self._entries[key] = entry
            return
        self._entries.pop(key, None)
        self._dropped.add(hash(key))
        if stored is not None:
            self._refused[key] = meta

    def remove(self, received: RawObject) -> None:
        """Remove an object that was deleted while the list was being streamed."""
        key = received.meta.key
        self._entries.pop(key, None)
        self._refused.pop(key, None)
        self._dropped.discard(hash(key))

    def evict_rejected(self) -> None:
        """Drop the objects that `keep` now rejects."""
        for key in [key for key, entry in self._entries.items() if not self._store._is_kept(entry.meta)]:
            self._dropped.add(hash(key))
            del self._entries[key]

    def proves_rollback(self, resource_version: str) -> bool:
        """Return True if the list is older than a revision that was known before it was requested.

        The list is a quorum read, so the server's storage was set back. Such a list is not committed, because two
        objects with the same version may differ: the store must be invalidated first.

        Args:
            resource_version: The version of the list.
        """
        return 0 < parse_revision(resource_version) < self._min_revision

    def commit(self, resource_version: str) -> list[StoreChange]:
        """Replace the store's objects with the list; return the changes that readers see.

        Newer own writes stay if their responses came after the list was requested.

        Args:
            resource_version: The version of the list.
        """
        store = self._store
        revision = parse_revision(resource_version)
        self._keep_newer(revision)
        before, after = store._entries, self._entries
        changes: list[StoreChange] = []
        for key, entry in after.items():
            stored = before.get(key)
            if stored is None:
                changes.append(StoreChange(None, entry.meta))
            elif stored.meta.resource_version != entry.meta.resource_version or (
                self._replaces_void and stored.body != entry.body  # two histories may use the same version
            ):
                changes.append(StoreChange(stored.meta, entry.meta))
        vanished = before.keys() - after.keys() if before else ()
        changes += (StoreChange(before[key].meta, self._refused.get(key)) for key in vanished)
        store._entries, store._dropped = after, self._dropped
        store._resource_version, store._revision = resource_version, revision
        store._written_since = None
        for index in store._indexes.values():
            self._update_index(index, before, vanished)
        return changes

    def _update_index(
        self, index: Index, before: Mapping[ObjectKey, CachedObject], vanished: Iterable[ObjectKey]
    ) -> None:
        for key in vanished:
            index.remove(key)
        for key, entry in self._entries.items():
            if before.get(key) is not entry:
                index.upsert(key, entry.decode())

    def _keep_newer(self, revision: int) -> None:
        store, listed = self._store, self._entries
        for uid in [uid for uid, moment in store._deleted.items() if moment < self.started_at]:
            del store._deleted[uid]  # the list was requested later: an object in it was not deleted after all
        if store._deleted:
            for key in [key for key, entry in listed.items() if entry.meta.uid in store._deleted]:
                del listed[key]
        for key, floor in list(store._floors.items()):
            if floor <= revision:
                del store._floors[key]
            elif key in listed and listed[key].meta.revision <= floor:
                del listed[key]
        for key, newest in list(store._unheld.items()):
            if newest <= revision:
                del store._unheld[key]
            elif key not in listed or listed[key].meta.revision < newest:
                listed.pop(key, None)
                self._dropped.add(hash(key))
        for key, stored in store._entries.items():
            if not store._is_comparable(key):
                continue
            listed_entry = listed.get(key)
            if listed_entry is not None:
                if stored.meta.revision > listed_entry.meta.revision:
                    listed[key] = stored
            elif stored.meta.revision > revision or self._was_read_since(key):
                listed[key] = stored
                self._dropped.discard(hash(key))

    def _was_read_since(self, key: ObjectKey) -> bool:
        """Return True if the object was read live after the list dropped it: the cached object is as new."""
        return key in self._store._read_since_list and hash(key) in self._dropped and key not in self._refused
