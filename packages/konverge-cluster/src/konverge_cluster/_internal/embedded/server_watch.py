"""Watches: a bounded queue of events for each watcher, filled by changes. Without I/O.

A watcher receives events of its selection: an object that enters it is ADDED, one that leaves it (or the storage) is
DELETED. A watcher that does not take its events is dropped, so that it costs no more than its queue. It starts again
from the last resourceVersion that it received.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.custom_resources import DEFINITIONS
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.selection import Selection
from konverge_cluster._internal.embedded.storage import StorageChange, StoredObject

__all__ = ["INITIAL_EVENTS_END", "EventType", "ServerWatch", "ServerWatchEvent"]

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class ServerWatchEvent:
    """One event of a watch.

    Attributes:
        type: The type of the event.
        object: The object as stored; for BOOKMARK an object with only a resourceVersion. Shared: it must not be
            changed.
        stored: The stored object if its JSON form can be sent unchanged.
    """

    type: EventType
    object: Object
    stored: StoredObject | None = None


class ServerWatch:
    """One watcher with its queue of events.

    Args:
        resource: The watched resource.
        selection: The selection of objects.
        limit: The maximum number of waiting events; beyond it the watcher is too slow.
        wake: Called after new events and after the end of the watch.
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
        """True if no further event will follow the waiting ones."""
        return self._is_ended

    def start(self, state: Iterable[StoredObject], changes: Iterable[StorageChange], revision: int) -> None:
        """Set the start of the watch.

        Args:
            state: The objects to send as ADDED first.
            changes: The changes since the resourceVersion of the request.
            revision: The current revision.
        """
        for stored in state:
            if self._selection.matches(stored.object):
                self._waiting.append(ServerWatchEvent("ADDED", stored.object, stored))
        for change in changes:
            self._enqueue(change)
        self._revision = revision

    def set_unsubscribe(self, end_subscription: Callable[[], None]) -> None:
        """Set the function that ends the subscription to changes (`record` is the subscriber)."""
        self._end_subscription = end_subscription

    def record(self, change: StorageChange) -> None:
        """Queue the event for a change of the storage, if the watch selects the object.

        The watch ends if the definition of its kind is removed, or if too many events wait.
        """
        self._revision = change.revision
        if self._is_own_definition_removed(change):
            self.end()
        if change.resource != self.resource.storage:
            return
        if self._enqueue(change) and self.wake is not None:
            self.wake()
        if len(self._waiting) > self._limit:
            # The waiting events are dropped too: an incomplete sequence would look complete.
            self._waiting.clear()
            self.end()

    def take_events(self) -> list[ServerWatchEvent]:
        """Return and clear the waiting events."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def build_bookmark(self, annotations: dict[str, str] | None = None) -> ServerWatchEvent:
        """Return an event with the revision that the watcher has reached after all waiting events."""
        gvk = self.resource.gvk
        metadata: Object = {"resourceVersion": str(self._revision)}
        if annotations:
            metadata["annotations"] = dict(annotations)
        return ServerWatchEvent("BOOKMARK", {"kind": gvk.kind, "apiVersion": gvk.api_version, "metadata": metadata})

    def end(self) -> None:
        """Stop adding events; a second call does nothing."""
        self._is_ended = True
        if self._end_subscription is not None:
            self._end_subscription()
            self._end_subscription = None
        if self.wake is not None:
            self.wake()

    def _is_own_definition_removed(self, change: StorageChange) -> bool:
        """Return True if the definition of the watched kind was deleted, which ends the watch."""
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
        # The object left the selection: the event has its last selected state and the revision of the change.
        metadata = {**change.old["metadata"], "resourceVersion": str(change.revision)}
        last = StoredObject(change.old | {"metadata": metadata}, change.revision)
        return ServerWatchEvent("DELETED", last.object, last)
