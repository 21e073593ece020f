"""The objects of one kind, as the watch and our own writes have shown them. Pure.

Three sources disagree for a while, and the store says who is right:

* The *watch* tells everything in order, but late.
* An *own write*'s answer is newer than the watch, or older, when the watch was faster. The higher resource version
  stays; an answer that the watch has already passed is of an object that has gone since.
* An *own delete* has no version. Its UID is remembered, so that neither a late event nor a list that was already
  under way brings the object back.

Readers see the objects as of the last whole list plus all that came later, never a list that is half read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from konverge.cache.entries import Entry, RawObject, encode_entry, entry_body, entry_metadata
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.metadata import ObjectMeta, revision_of

__all__ = ["Change", "Replacement", "Store"]

# How long a delete of ours is remembered when no event confirms it: far longer than a watch lags.
_DELETED_SECONDS = 300.0


class Change(NamedTuple):
    """What happened to one object: old without new is a deletion, new without old an addition."""

    old: ObjectMeta | None
    new: ObjectMeta | None


class Store:
    """The objects of one kind.

    Args:
        gvk: The kind.
        keep: Says by its metadata whether to hold an object; None holds all. It must say yes to what somebody reads, or
            its changes go unseen. Of a dropped one only a hash of the key remains: enough to know that it exists.
    """

    def __init__(self, gvk: GroupVersionKind, keep: Callable[[ObjectMeta], bool] | None = None) -> None:
        self._gvk = gvk
        self._keep = keep
        self._entries: dict[ObjectKey, Entry] = {}
        self._dropped: set[int] = set()
        # Held although `keep` refuses them: read after they were dropped, or written by us.
        self._wanted: set[ObjectKey] = set()
        # Versions that own writes produced and the watch has not shown yet.
        self._own: dict[ObjectKey, set[int]] = {}
        # UIDs of own deletes and when, oldest first, until the watch shows the deletion.
        self._deleted: dict[str, float] = {}
        # The last version known of what we have deleted: what the watch says of that name up to there is old news.
        self._floors: dict[ObjectKey, int] = {}
        self._resource_version, self._revision = "", 0

    @property
    def resource_version(self) -> str:
        """Up to where the watch has told everything; empty before the first whole list."""
        return self._resource_version

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._entries

    def get(self, key: ObjectKey) -> Object | None:
        """One object, fresh; None when it is absent or was dropped."""
        entry = self._entries.get(key)
        return None if entry is None else entry.decode()

    def metadata(self, key: ObjectKey) -> ObjectMeta | None:
        """One object's metadata; None when it is absent or was dropped."""
        entry = self._entries.get(key)
        return None if entry is None else entry.meta

    def is_dropped(self, key: ObjectKey) -> bool:
        """Tell whether the object exists but is not held."""
        return hash(key) in self._dropped

    def all_metadata(self) -> Iterator[ObjectMeta]:
        """The metadata of all that is held; not to be continued after a change."""
        return (entry.meta for entry in self._entries.values())

    # What the watch tells.

    def put(self, fields: RawObject) -> Change | None:
        """An event says that an object was added or modified; None when readers see no difference.

        A change with the same metadata on both sides says that somebody else's write came between what was known and an
        own write: its own state was never to be seen, but whoever decided by the earlier one should look again.

        Raises:
            ValueError: The object cannot be read; nothing has changed.
        """
        meta = entry_metadata(fields)
        key, revision = meta.key, meta.revision
        if 0 < revision <= self._revision:
            return None  # told before: a watch that was resumed too early must not bring back what has gone since
        self._advance(meta.resource_version, revision)
        if 0 < revision <= self._floors.get(key, 0):
            return None
        ours = self._confirm(key, revision)
        if meta.uid in self._deleted:
            return self._outlived(meta)
        stored = self._entries.get(key)
        if stored is not None:
            if stored.meta.resource_version == meta.resource_version:
                return None
            if stored.meta.revision > revision:
                overtaken = key in self._own and not ours
                return Change(stored.meta, stored.meta) if overtaken else None
        if not self._is_kept(meta):
            self._dropped.add(hash(key))
            if stored is None:
                return None
            del self._entries[key]
            return Change(stored.meta, meta)
        self._set(Entry(meta, entry_body(fields, self._gvk)))
        return Change(None if stored is None else stored.meta, meta)

    def remove(self, fields: RawObject) -> Change | None:
        """An event says that an object was deleted; None when readers see no difference.

        Raises:
            ValueError: The object cannot be read; nothing has changed.
        """
        meta = entry_metadata(fields)
        key, revision = meta.key, meta.revision
        repeated = 0 < revision <= self._revision
        self._advance(meta.resource_version, revision)
        self._deleted.pop(meta.uid, None)
        if revision > self._floors.get(key, 0):
            self._floors.pop(key, None)
        stored = self._entries.get(key)
        if stored is None:
            if not repeated:
                self._dropped.discard(hash(key))
                self._own.pop(key, None)
            return None
        if stored.meta.uid != meta.uid and stored.meta.revision > revision:
            return None  # the name has been born again, and we have seen that already
        self._own.pop(key, None)
        self._wanted.discard(key)
        del self._entries[key]
        return Change(stored.meta, None)

    def bookmark(self, resource_version: str) -> None:
        """The watch has told everything up to there."""
        self._advance(resource_version, revision_of(resource_version))

    def begin_replacement(self, now: float) -> Replacement:
        """Start to read a whole list; readers keep what they have until it is committed.

        Args:
            now: Monotonic seconds, before the list is asked for: what was deleted earlier cannot be in it.
        """
        return Replacement(self, now)

    # What our own requests were answered.

    def record_write(self, obj: Mapping[str, Any]) -> Change | None:
        """The answer to an own create, update, patch or apply; None when readers see no difference.

        Raises:
            ValueError: The object cannot be read.
        """
        entry = encode_entry(obj)
        meta = entry.meta
        key, revision = meta.key, meta.revision
        if meta.uid in self._deleted:
            return self._outlived(meta)
        stored = self._entries.get(key)
        passed = revision <= max(self._revision, self._floors.get(key, 0))
        if stored is None and passed and not self.is_dropped(key):
            return None  # all up to this write is known, and the object is not there: it has gone again
        if stored is not None and stored.meta.revision >= revision:
            return None
        if not passed:
            self._own.setdefault(key, set()).add(revision)
        if self._keep is not None and not self._keep(meta):
            self._wanted.add(key)
        self._set(entry)
        return Change(None if stored is None else stored.meta, meta)

    def record_read(self, obj: Mapping[str, Any]) -> Change | None:
        """The answer to a live read of an object that was dropped: hold it from now on.

        Raises:
            ValueError: The object cannot be read.
        """
        entry = encode_entry(obj)
        key = entry.meta.key
        stored = self._entries.get(key)
        if entry.meta.uid in self._deleted or (stored is not None and stored.meta.revision >= entry.meta.revision):
            return None
        if stored is None and not self.is_dropped(key):
            return None  # it was deleted while the answer was on its way
        self._wanted.add(key)
        self._set(entry)
        return Change(None if stored is None else stored.meta, entry.meta)

    def record_delete(self, key: ObjectKey, uid: str, now: float) -> Change | None:
        """An own delete after which nothing holds the object any more; None when readers see no difference.

        Args:
            key: The object.
            uid: Its UID: another object of that name stays.
            now: Monotonic seconds.
        """
        self._expire(now)
        self._deleted[uid] = now
        stored = self._entries.get(key)
        if stored is not None and stored.meta.uid != uid:
            return None
        self._dropped.discard(hash(key))
        self._own.pop(key, None)
        self._wanted.discard(key)
        if stored is None:
            return None
        self._raise_floor(key, stored.meta.revision)
        del self._entries[key]
        return Change(stored.meta, None)

    # Inner workings; a `Replacement` is part of them.

    def _advance(self, resource_version: str, revision: int) -> None:
        if revision >= self._revision:
            self._resource_version, self._revision = resource_version, revision

    def _confirm(self, key: ObjectKey, revision: int) -> bool:
        """Forget own writes up to that version; tell whether the very version was one."""
        versions = self._own.get(key)
        if versions is None:
            return False
        ours = revision in versions
        versions.difference_update([version for version in versions if version <= revision])
        if not versions:
            del self._own[key]
        return ours

    def _outlived(self, meta: ObjectMeta) -> Change | None:
        """Something deleted is heard of once more: an older object of that name must have gone before it came."""
        self._raise_floor(meta.key, meta.revision)
        stored = self._entries.get(meta.key)
        if stored is None or stored.meta.revision > meta.revision:
            return None
        self._own.pop(meta.key, None)
        del self._entries[meta.key]
        return Change(stored.meta, None)

    def _raise_floor(self, key: ObjectKey, revision: int) -> None:
        if revision > max(self._revision, self._floors.get(key, 0)):
            self._floors[key] = revision

    def _expire(self, now: float) -> None:
        while self._deleted:
            uid, moment = next(iter(self._deleted.items()))
            if now - moment < _DELETED_SECONDS:
                return
            del self._deleted[uid]

    def _is_kept(self, meta: ObjectMeta) -> bool:
        return self._keep is None or self._keep(meta) or meta.key in self._wanted

    def _set(self, entry: Entry) -> None:
        meta = entry.meta
        key = meta.key
        self._entries[key] = entry
        self._dropped.discard(hash(key))
        if key in self._wanted and self._keep is not None and self._keep(meta):
            self._wanted.discard(key)


class Replacement:
    """A whole list while it is being read: filled item by item, then put in place at once."""

    def __init__(self, store: Store, started: float) -> None:
        self._store = store
        self._started = started
        self._entries: dict[ObjectKey, Entry] = {}
        self._dropped: set[int] = set()
        self._refused: dict[ObjectKey, ObjectMeta] = {}

    def put(self, fields: RawObject) -> None:
        """The list holds that object.

        Raises:
            ValueError: The object cannot be read; it is left out.
        """
        store = self._store
        meta = entry_metadata(fields)
        key = meta.key
        stored = store._entries.get(key)
        if not store._is_kept(meta):
            self._entries.pop(key, None)
            self._dropped.add(hash(key))
            if stored is not None:
                self._refused[key] = meta
            return
        self._dropped.discard(hash(key))
        if stored is not None and stored.meta.resource_version == meta.resource_version:
            self._entries[key] = stored  # most are unchanged when a list is read again: one copy serves both
        else:
            self._entries[key] = Entry(meta, entry_body(fields, store._gvk))

    def remove(self, fields: RawObject) -> None:
        """The object was deleted while the list was being streamed.

        Raises:
            ValueError: The object cannot be read.
        """
        key = entry_metadata(fields).key
        self._entries.pop(key, None)
        self._refused.pop(key, None)
        self._dropped.discard(hash(key))

    def commit(self, resource_version: str) -> list[Change]:
        """Put the list in place of what the store held.

        Own writes that are newer than the list stay. A list does not show what came before an own write that the watch
        has not confirmed, so whoever decided by an earlier state is told to look again (see `Store.put`). A list that
        is older than what the watch has told is that of a server whose storage was set back: then all that the store
        knew is void.

        Args:
            resource_version: At which the list was as it is.
        """
        store = self._store
        revision = revision_of(resource_version)
        unconfirmed = store._own.keys() & self._entries.keys()
        if revision < store._revision:
            store._own.clear()
            store._deleted.clear()
            store._floors.clear()
        else:
            self._keep_newer(revision)
        changes: list[Change] = []
        before = store._entries
        for key, entry in self._entries.items():
            stored = before.get(key)
            if stored is None:
                changes.append(Change(None, entry.meta))
            elif stored.meta.resource_version != entry.meta.resource_version or key in unconfirmed:
                changes.append(Change(stored.meta, entry.meta))
        changes += (
            Change(stored.meta, self._refused.get(key)) for key, stored in before.items() if key not in self._entries
        )
        store._entries, store._dropped = {}, self._dropped
        for entry in self._entries.values():
            store._set(entry)
        store._wanted.intersection_update(store._entries)
        store._resource_version, store._revision = resource_version, revision
        return changes

    def _keep_newer(self, revision: int) -> None:
        store = self._store
        for uid in [uid for uid, moment in store._deleted.items() if moment < self._started]:
            del store._deleted[uid]  # the list was asked for later: what it shows was not deleted after all
        for key in [key for key, entry in self._entries.items() if entry.meta.uid in store._deleted]:
            del self._entries[key]
        for key, floor in list(store._floors.items()):
            if floor <= revision:
                del store._floors[key]
            elif key in self._entries and self._entries[key].meta.revision <= floor:
                del self._entries[key]
        for key, stored in store._entries.items():
            listed = self._entries.get(key)
            if listed is not None:
                if stored.meta.revision > listed.meta.revision:
                    self._entries[key] = stored
            elif stored.meta.revision > revision or (key in store._wanted and hash(key) in self._dropped):
                self._entries[key] = stored
                self._dropped.discard(hash(key))
        for key in list(store._own):
            for_later = {version for version in store._own[key] if version > revision}
            if for_later:
                store._own[key] = for_later
            else:
                del store._own[key]
