"""The whole list that is being read: streamed or page by page, then put in place at once. Pure.

A reflector lists before its first watch, and again after a failure that a resumed watch cannot repair. The list is a
*streaming list* (KEP-3157) where the server supports it, and paginated otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from konverge._internal.cache.cached_object import parse_item
from konverge._internal.cache.informer_statistics import InformerStatistics
from konverge._internal.cache.reflector_steps import ReadPage
from konverge._internal.cache.store import Store, StoreChange, StoreReplacement
from konverge._internal.client.client import ListPage
from konverge._internal.client.object_list import ContinueTokens
from konverge._internal.kube import GroupVersionKind

__all__ = ["ListProgress"]

_logger = logging.getLogger("konverge.cache")

_PAGE_SIZE = 500

# A page limit of 0 requests all objects at once.
_NO_LIMIT = 0

# A streaming list usually ends within milliseconds of its last object.
_END_IS_LATE_SECONDS = 10.0


class ListProgress:
    """The progress of the lists of one collection, one list at a time.

    A list is *due* from `restart` until `commit`. It is *begun* once its first step was planned: from then on the
    replacement exists that receives its objects.

    Args:
        gvk: The kind of the objects.
        store: The store that a complete list replaces.
        statistics: Counters of the informer.
        streaming: Whether to try a streaming list first.
    """

    def __init__(self, gvk: GroupVersionKind, store: Store, statistics: InformerStatistics, *, streaming: bool) -> None:
        self._gvk = gvk
        self._store = store
        self._statistics = statistics
        self._is_streaming_supported = streaming
        self._uses_pages_once = False
        self._is_requested = False
        self._lists_begun = 0
        self._continue_token = ""
        self._continue_tokens = ContinueTokens(gvk)
        self._page_size = _PAGE_SIZE
        self._end_is_late = False
        self.is_due = True
        """True if a list is the next thing to read, rather than a watch."""
        self.replacement: StoreReplacement | None = None
        """The contents of the list that is being read; None while no list is begun."""
        self.lists_done = 0
        """The number of the last list that is in place; 0 before the first."""
        self.listed_at: float | None = None
        """The time at which the list in place was requested, in monotonic seconds; None before the first."""

    @property
    def is_streaming(self) -> bool:
        """True if the list that is due is a streaming list."""
        return self.is_due and self._is_streaming_supported and not self._uses_pages_once

    @property
    def is_new_list_requested(self) -> bool:
        """True if a new list was requested and none is being read."""
        return self._is_requested and self.replacement is None

    def request(self) -> None:
        """Request a list after the one that is being read, if any."""
        self._is_requested = True

    def widen(self) -> int:
        """Request a list if any object was dropped: the store now keeps more objects.

        Returns:
            The number of the list (`lists_done`) that contains them all.
        """
        if self.replacement is None and self.lists_done and not self._store.dropped:
            return self.lists_done
        self._is_requested = True
        return self._lists_begun + 1

    def restart(self) -> None:
        """Discard the list that is being read and make a new one due."""
        self.is_due = True
        self.replacement = None
        self._is_requested = False

    def begin(self, now: float) -> bool:
        """Begin the list that is due; return False if it is begun already."""
        if self.replacement is not None:
            return False
        self.replacement = self._store.begin_replacement(now)
        self._lists_begun += 1
        self._continue_token = ""
        self._continue_tokens = ContinueTokens(self._gvk)
        self._end_is_late = False
        return True

    def plan_page(self) -> ReadPage:
        """Return the step that reads the next page."""
        return ReadPage(self._continue_token, self._page_size)

    def add_items(self, items: Sequence[msgspec.Raw]) -> list[ValueError]:
        """Add items of a page to the list.

        Returns:
            One error for each item that cannot be parsed; the list leaves these items out.
        """
        if self.replacement is None:
            raise RuntimeError("received items without a list in progress")
        errors: list[ValueError] = []
        for item in items:
            try:
                self.replacement.upsert(parse_item(item))
            except ValueError as error:
                errors.append(error)
        return errors

    def finish_page(self, page: ListPage) -> bool:
        """Record that all items of the page were added; return True if it is the last page.

        Raises:
            konverge.errors.ConnectionFailedError: The continue token repeats an earlier page.
        """
        self._continue_token = self._continue_tokens.check_next(page)
        if page.continue_token:
            return False
        self._page_size = _PAGE_SIZE
        return True

    def take_replacement(self) -> StoreReplacement:
        """Return the contents of the complete list, and keep them no longer."""
        replacement, self.replacement = self.replacement, None
        if replacement is None:
            raise RuntimeError("received the end of a list without a list in progress")
        return replacement

    def commit(self, replacement: StoreReplacement, resource_version: str, now: float) -> list[StoreChange]:
        """Put the complete list in place; return the changes that readers see."""
        self._statistics.lists += 1
        self._statistics.list_seconds += now - replacement.started_at
        self._statistics.items_listed += len(replacement)
        self.lists_done = self._lists_begun
        self.listed_at = replacement.started_at
        self.is_due = False
        self._uses_pages_once = False
        changes = replacement.commit(resource_version)
        self._statistics.last_resource_version = resource_version
        return changes

    def evict_rejected(self) -> None:
        """Drop from the list that is being read what the store no longer keeps."""
        if self.replacement is not None:
            self.replacement.evict_rejected()

    def disable_streaming(self) -> None:
        """Read all further lists page by page: the server rejects streaming lists."""
        self._is_streaming_supported = False

    def disable_streaming_once(self) -> None:
        """Read the next list page by page: a streaming list failed, but a later one may work."""
        self._uses_pages_once = True

    def on_expired(self) -> None:
        """Read the next list without pages if a continue token expired.

        Reading all the pages takes longer than the server keeps its history.
        """
        if self._continue_token:
            self._page_size = _NO_LIMIT

    def warn_late_end(self, open_seconds: float) -> None:
        """Log once if the streaming list is still incomplete a long time after its watch opened."""
        if self.replacement is None or self._end_is_late or open_seconds < _END_IS_LATE_SECONDS:
            return
        self._end_is_late = True
        _logger.warning(
            "%s: the streaming list is incomplete after %.0f s: expected a bookmark that ends it (%d objects so far)",
            self._gvk, open_seconds, len(self.replacement),
        )  # fmt: skip
