"""Watches: what each watcher has yet to be sent, as a bounded queue that changes fill. Without I/O.

A watcher sees its selection: an object that comes into it is ADDED, one that leaves it (or the store) is DELETED. One
that does not take its events is dropped, so that it costs no more than its queue; it starts over from the resource
version that it has seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from konverge.kube import Object
from konverge_cluster.embedded.custom_resources import DEFINITIONS
from konverge_cluster.embedded.resource_registry import ServedResource
from konverge_cluster.embedded.selection import Selection
from konverge_cluster.embedded.storage import StorageChange, StoredObject

__all__ = ["INITIAL_EVENTS_END", "EventType", "ServerWatch", "ServerWatchEvent"]

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class ServerWatchEvent:
    """One event of a watch.

    Attributes:
        type: What happened.
        object: The object as stored; for BOOKMARK one with nothing but a resourceVersion. Shared: not to be changed.
        stored: The stored object, when there is one whose JSON form can be sent as it is.
    """

    type: EventType
    object: Object
    stored: StoredObject | None = None


class ServerWatch:
    """One watcher.

    Args:
        resource: What it watches.
        selection: Which objects.
        limit: How many events may wait before it counts as too slow.
        wake: Called after events came in, and when the watch was ended.
    """

    def __init__(self, resource: ServedResource, selection: Selection, *, limit: int = 10_000) -> None:
        self.resource = resource
        self.wake: Callable[[], None] | None = None
        self._selection = selection
        self._limit = limit
        self._waiting: deque[ServerWatchEvent] = deque()
        self._revision = 0
        self._is_ended = False
        self._end_subscription: Callable[[], None] | None = None

    @property
    def is_ended(self) -> bool:
        """Tell whether nothing more will come after what is waiting."""
        return self._is_ended

    def start(self, state: Iterable[StoredObject], changes: Iterable[StorageChange], revision: int) -> None:
        """Take in where the watch starts from.

        Args:
            state: The objects to tell as ADDED first.
            changes: The changes since the resource version that the watcher named.
            revision: The present revision.
        """
        for stored in state:
            if self._selection.matches(stored.object):
                self._waiting.append(ServerWatchEvent("ADDED", stored.object, stored))
        for change in changes:
            self._enqueue(change)
        self._revision = revision

    def set_unsubscribe(self, end_subscription: Callable[[], None]) -> None:
        """Remember how to stop being told of changes (`note` is the subscriber)."""
        self._end_subscription = end_subscription

    def record(self, change: StorageChange) -> None:
        """Take in one change of the store."""
        self._revision = change.revision
        if self._is_own_definition_removed(change):
            self.end()
        if change.resource != self.resource.storage:
            return
        if self._enqueue(change) and self.wake is not None:
            self.wake()
        if len(self._waiting) > self._limit:
            # What waits is dropped with it: half a story would look like a whole one.
            self._waiting.clear()
            self.end()

    def take_events(self) -> list[ServerWatchEvent]:
        """What has come in since the last time."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def build_bookmark(self, annotations: dict[str, str] | None = None) -> ServerWatchEvent:
        """An event that only tells how far the watcher has seen, once it has been sent what waits."""
        gvk = self.resource.gvk
        metadata: Object = {"resourceVersion": str(self._revision)}
        if annotations:
            metadata["annotations"] = dict(annotations)
        return ServerWatchEvent("BOOKMARK", {"kind": gvk.kind, "apiVersion": gvk.api_version, "metadata": metadata})

    def end(self) -> None:
        """Take in nothing more; safe to call twice."""
        self._is_ended = True
        if self._end_subscription is not None:
            self._end_subscription()
            self._end_subscription = None
        if self.wake is not None:
            self.wake()

    def _is_own_definition_removed(self, change: StorageChange) -> bool:
        """Tell whether the kind is served no longer: the watch of a definition that was deleted ends with it."""
        if change.type != "DELETED" or change.resource != DEFINITIONS:
            return False
        return self.resource.is_custom and change.key.name == self.resource.storage

    def _enqueue(self, change: StorageChange) -> bool:
        if change.resource != self.resource.storage:
            return False
        matched = change.old is not None and self._selection.matches(change.old)
        matches = change.type != "DELETED" and self._selection.matches(change.new)
        if matches:
            self._waiting.append(ServerWatchEvent("MODIFIED" if matched else "ADDED", change.new, change.after))
        elif matched:
            self._waiting.append(self._build_deleted_event(change))
        return matches or matched

    def _build_deleted_event(self, change: StorageChange) -> ServerWatchEvent:
        if change.type == "DELETED" or change.old is None:
            return ServerWatchEvent("DELETED", change.new, change.after)
        # It left the selection: the last state that was in it, at the revision at which it left.
        metadata = {**change.old["metadata"], "resourceVersion": str(change.revision)}
        last = StoredObject(change.old | {"metadata": metadata}, change.revision)
        return ServerWatchEvent("DELETED", last.object, last)
