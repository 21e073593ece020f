"""What the upkeep of one kind has cost so far."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["InformerStatistics"]


@dataclass(slots=True, eq=False)
class InformerStatistics:
    """Counters of one informer since it was made; they only grow. Who exports them reads them, and changes none.

    Attributes:
        lists: Whole lists that were read to their end, streamed or in pages.
        list_seconds: How long they took, all together.
        items_listed: How many objects they held, all together.
        watches: Watches that were opened; a streaming list is one.
        short_watches: Those that ended within a second without an event.
        watch_seconds: How long watches were open, all together; the one that is open now is not in it.
        events: Events that watches brought, bookmarks included.
        stale_events: Those of them that were older than what was held already, or repeated; they changed nothing.
        left_out: Objects that could not be read, or that the kind's `transform` failed on.
        last_resource_version: The newest up to which the server has told everything; empty before the first list. With
            several namespaces: of the one that was heard of last.
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
