"""The objects of one collection, as the watch and our own writes have shown them. Pure.

Three sources disagree for a while, and the store says who is right:

* The *watch* tells everything in order, but late.
* An *own write*'s answer is newer than the watch, or older, when the watch was faster. The higher resource version
  stays; an answer that the watch has already passed is of an object that has gone since.
* An *own delete* has no version. Its UID is remembered, so that neither a late event nor a list that was already
  under way brings the object back.

Readers see the objects as of the last whole list plus all that came later, never a list that is half read. What readers
see differently from before is a `Change`; each change starts where the last one of that object ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from konverge.cache.cached_object import CachedObject, RawObject, parse_object
from konverge.cache.indexes import Index
from konverge.cache.informer_statistics import InformerStatistics
from konverge.cache.options import CacheOptions, CacheSelection
from konverge.cache.projection import Projection
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.metadata import ObjectMeta, parse_revision

__all__ = ["Store", "StoreChange", "StoreReplacement"]

# How long a delete of ours is remembered when no event confirms it: far longer than a watch lags.
_DELETED_SECONDS = 300.0


class StoreChange(NamedTuple):
    """What happened to one object: old without new is a deletion, new without old an addition.

    A deletion that a list has shown (it happened while no watch was open) is told like any other, with the last state
    that was held: the *final* state of the object is not known then, and its name may have been used again since.
    """

    old: ObjectMeta | None
    new: ObjectMeta | None


class Store:
    """The objects of one collection.

    Args:
        gvk: The kind.
        keep: Says by its metadata whether to hold an object; None holds all. It must say yes to what somebody reads
            before it is read, or its changes go unseen. Of a dropped one only a hash of the key remains: enough to know
            that it exists.
        options: What of the kind is in the collection, and how much of an object is held.
        indexes: Are kept in step. They may be shared with the stores of other parts of the kind.
        statistics: Counts stale events, and what cannot be held.
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
        self.projection = Projection(gvk, options or CacheOptions(), self._statistics)
        """How much of an object is held."""
        self._indexes = {} if indexes is None else indexes
        self._entries: dict[ObjectKey, CachedObject] = {}
        self._dropped: set[int] = set()
        # UIDs of own deletes and when, oldest first, until the watch shows the deletion.
        self._deleted: dict[str, float] = {}
        # The last version known of what we have taken away: what the watch says of that name up to there is old news.
        self._floors: dict[ObjectKey, int] = {}
        # Of what is not held although we have written it, the version of that write, until the watch has shown it. Who
        # reads it next asks the server; nothing older may come between, from a watch or a list that is behind.
        self._unheld: dict[ObjectKey, int] = {}
        self._resource_version, self._revision = "", 0
        # No answer of ours is of a later version: what the watch shows after that is newer than all that is held.
        self._newest_answer = 0
        # What was read live since the last list was asked for.
        self._read_since_list: set[ObjectKey] = set()
        # What was written since all else became void; None while nothing is.
        self._written_since: set[ObjectKey] | None = None

    @property
    def resource_version(self) -> str:
        """Up to where the watch has told everything; empty before the first whole list."""
        return self._resource_version

    @property
    def revision(self) -> int:
        """The same as a number; 0 before the first whole list."""
        return self._revision

    @property
    def newest_known_revision(self) -> int:
        """The newest revision that a watch, a list or the answer to a write has shown."""
        return max(self._revision, self._newest_answer)

    @property
    def dropped(self) -> int:
        """How many objects exist that are not held."""
        return len(self._dropped)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._entries

    def get(self, key: ObjectKey) -> Object | None:
        """One object, fresh; None when it is absent or was dropped."""
        entry = self._entries.get(key)
        return None if entry is None else entry.decode()

    def get_metadata(self, key: ObjectKey) -> ObjectMeta | None:
        """One object's metadata; None when it is absent or was dropped."""
        entry = self._entries.get(key)
        return None if entry is None else entry.meta

    def is_dropped(self, key: ObjectKey) -> bool:
        """Tell whether the object exists but is not held."""
        return hash(key) in self._dropped

    def iter_metadata(self) -> Iterator[ObjectMeta]:
        """The metadata of all that is held; not to be continued after a change."""
        return (entry.meta for entry in self._entries.values())

    def populate_index(self, index: Index) -> None:
        """Put all that is held into an index that is new."""
        for key, entry in self._entries.items():
            index.upsert(key, entry.decode())

    def evict_rejected(self) -> None:
        """Drop what `keep` refuses now, told to nobody."""
        for key, meta in [(key, entry.meta) for key, entry in self._entries.items() if not self._is_kept(entry.meta)]:
            self._remove_entry(key)
            self._dropped.add(hash(key))
            if meta.revision > self._revision and self._is_comparable(key):
                self._unheld[key] = meta.revision

    def find_newest_key(self) -> ObjectKey | None:
        """The object that is held in the newest version; None when nothing is held."""
        newest = max(self._entries.values(), key=lambda entry: entry.meta.revision, default=None)
        return None if newest is None else newest.meta.key

    def invalidate(self) -> None:
        """The server's storage was set back: no revision that is known means anything any more.

        Readers keep what they have until the next list is in place. Own writes from now on are of the new history.
        """
        self._deleted.clear()
        self._floors.clear()
        self._unheld.clear()
        self._resource_version, self._revision, self._newest_answer = "", 0, 0
        self._written_since = set()

    # What the watch tells.

    def upsert(self, received: RawObject) -> StoreChange | None:
        """An event says that an object was added or modified; None when readers see no difference."""
        meta = received.meta
        key, revision = meta.key, meta.revision
        if 0 < revision <= self._revision:
            # Told before: a watch that was resumed too early must not bring back what has gone since.
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
                return None  # our own write
            if revision <= self._newest_answer and stored.meta.revision > revision:
                self._statistics.stale_events += 1
                return None
        return self._upsert_entry(key, stored, received)

    def remove(self, received: RawObject) -> StoreChange | None:
        """An event says that an object was deleted, or has left what is selected.

        None when readers see no difference.
        """
        meta = received.meta
        key, revision = meta.key, meta.revision
        repeated = 0 < revision <= self._revision
        self._advance(meta.resource_version, revision)
        self._deleted.pop(meta.uid, None)
        if self._floors and revision > self._floors.get(key, 0):
            self._floors.pop(key, None)
        if self._unheld and self._is_before_own_write(key, revision):
            return None  # the name has been born again since
        stored = self._entries.get(key)
        if stored is None:
            if not repeated:
                self._dropped.discard(hash(key))
            return None
        if stored.meta.uid != meta.uid and stored.meta.revision > revision:
            return None  # the name has been born again, and we have seen that already
        self._remove_entry(key)
        return StoreChange(stored.meta, None)

    def record_bookmark(self, resource_version: str) -> None:
        """The watch has told everything up to there."""
        self._advance(resource_version, parse_revision(resource_version))

    def begin_replacement(self, now: float) -> StoreReplacement:
        """Start to read a whole list; readers keep what they have until it is committed.

        Args:
            now: Monotonic seconds, before the list is asked for: what was deleted earlier cannot be in it.
        """
        self._read_since_list.clear()
        return StoreReplacement(self, now)

    # What our own requests were answered.

    def record_write(self, obj: Mapping[str, Any]) -> StoreChange | None:
        """The answer to an own create, update, patch or apply; None when readers see no difference.

        What is outside of the selected part of the collection is not held. An object that this write has taken out of
        it is told as gone, as the watch will say.

        Raises:
            ValueError: The object cannot be read.
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
            # All up to this write is known, or a later one, and the object is not held: it has gone again, or was
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
        """The answer to a live read of an object that was dropped: hold it from now on, if `keep` says so.

        Nobody is told: nothing has happened to the object.

        Raises:
            ValueError: The object cannot be read.
        """
        received = parse_object(obj)
        key = received.meta.key
        # Not dropped any more: an event has brought it, or it was deleted while the answer was on its way.
        if self.is_dropped(key) and received.meta.uid not in self._deleted:
            self._newest_answer = max(self._newest_answer, received.meta.revision)
            self._read_since_list.add(key)
            self._upsert_entry(key, None, received)

    def record_delete(self, key: ObjectKey, uid: str, now: float) -> StoreChange | None:
        """An own delete after which nothing holds the object any more; None when readers see no difference.

        Args:
            key: The object.
            uid: Its UID: another object of that name stays.
            now: Monotonic seconds.
        """
        self._expire_deletions(now)
        self._deleted[uid] = now
        stored = self._entries.get(key)
        if stored is None or stored.meta.uid != uid:
            # Of what is not held no UID is known: whether that was it the watch will say, or the server who reads it.
            return None
        self._raise_floor(key, stored.meta.revision)
        self._remove_entry(key)
        return StoreChange(stored.meta, None)

    # Inner workings; a `StoreReplacement` is part of them.

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
        """Something deleted is heard of once more: an older object of that name must have gone before it came."""
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
        """Tell whether the version that is held of the object is of the server's present history."""
        return self._written_since is None or key in self._written_since

    def _is_before_own_write(self, key: ObjectKey, revision: int) -> bool:
        """Tell whether an event is older than what we wrote and do not hold; if not, that write has been shown."""
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
    """A whole list while it is being read: filled item by item, then put in place at once."""

    def __init__(self, store: Store, started: float) -> None:
        self._store = store
        self._entries: dict[ObjectKey, CachedObject] = {}
        self._dropped: set[int] = set()
        # What readers have seen and the list holds in a state that is not to be held.
        self._refused: dict[ObjectKey, ObjectMeta] = {}
        # A list shows every write that was answered before it was asked for: it is of that version at least.
        self._min_revision = store.newest_known_revision
        self._replaces_void = store._written_since is not None
        self.started_at = started
        """Monotonic seconds, before the list was asked for."""

    def __len__(self) -> int:
        return len(self._entries) + len(self._dropped)

    def upsert(self, received: RawObject) -> None:
        """The list holds that object; nothing is seen of it yet."""
        store = self._store
        meta = received.meta
        key = meta.key
        stored = store._entries.get(key)
        entry: CachedObject | None = None
        if store._is_kept(meta):
            is_same = stored is not None and stored.meta.resource_version == meta.resource_version
            if is_same and not self._replaces_void:  # noqa: SIM108  # the comment belongs to one of the two
                entry = stored  # most are unchanged when a list is read again: one copy serves both
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
        """The object was deleted while the list was being streamed."""
        key = received.meta.key
        self._entries.pop(key, None)
        self._refused.pop(key, None)
        self._dropped.discard(hash(key))

    def evict_rejected(self) -> None:
        """Drop what `keep` refuses now."""
        for key in [key for key, entry in self._entries.items() if not self._store._is_kept(entry.meta)]:
            self._dropped.add(hash(key))
            del self._entries[key]

    def proves_rollback(self, resource_version: str) -> bool:
        """Tell whether the list is older than what was known before it was asked for.

        It is read from the quorum: so the server's storage was set back. Such a list is not put in place, since objects
        of one version may differ: first the store is made void.

        Args:
            resource_version: At which the list was as it is.
        """
        return 0 < parse_revision(resource_version) < self._min_revision

    def commit(self, resource_version: str) -> list[StoreChange]:
        """Put the list in place of what the store held.

        Own writes that were answered after the list was asked for, and are newer, stay.

        Args:
            resource_version: At which the list was as it is.
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
                self._replaces_void and stored.body != entry.body  # two histories may have one version each
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
            del store._deleted[uid]  # the list was asked for later: what it shows was not deleted after all
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
            found = listed.get(key)
            if found is not None:
                if stored.meta.revision > found.meta.revision:
                    listed[key] = stored
            elif stored.meta.revision > revision or self._was_read_since(key):
                listed[key] = stored
                self._dropped.discard(hash(key))

    def _was_read_since(self, key: ObjectKey) -> bool:
        """Tell whether the object was read live after the list had dropped it: then it is held, and as new."""
        return key in self._store._read_since_list and hash(key) in self._dropped and key not in self._refused
