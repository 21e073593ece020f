"""Counters of the lists and watches of one kind."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["InformerStatistics"]


@dataclass(slots=True, eq=False)
class InformerStatistics:
    """Counters of one informer since its creation; they only grow. Exporters only read them.

    Attributes:
        lists: The number of complete lists, streamed or in pages.
        list_seconds: The total duration of these lists.
        items_listed: The total number of objects in these lists.
        watches: The number of opened watches, streaming lists included.
        short_watches: The number of watches that ended within a second without an event.
        watch_seconds: The total duration of the watches that are closed.
        events: The number of watch events, bookmarks included.
        stale_events: The number of events that were repeated or older than the cached object; they changed nothing.
        left_out: The number of objects that could not be parsed, or for which the kind's `transform` raised an error.
        last_resource_version: The version up to which the cache is complete; empty before the first list. With several
            namespaces: the version of the one that was updated last.
    """

    lists: int = 0
    list_seconds: float = 0.0
    items_listed: int = 0
    watches: int = 0
    short_watches: int = 0
    watch_seconds: float = 0.0
    events: int = 0
    stale_events: int = 0
    left_out: int = 0
    last_resource_version: str = ""
