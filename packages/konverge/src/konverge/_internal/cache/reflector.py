"""The decisions that keep a store equal to a collection on the server: the next step, the meaning of a response. Pure.

The reflector lists the collection once, as a *streaming list* (KEP-3157) or page by page (`ListProgress`), and then
watches it (`WatchProgress`). It resumes a watch where the last one ended. It relists only if the server no longer has
that point in its history, or if the server is silent. Readers keep the cached objects meanwhile.

Each list is a quorum read: it requests no resource version. So it is never older than the known state, no matter which
API server responds; client-go's list "from version 0" can be older. An older list proves that the server's storage was
set back (an etcd that was restored from a snapshot). A resumed watch on such a server stays silent until the revisions
have caught up, and never reports the changes in between. `HistoryCheck` detects that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from konverge._internal.cache.cached_object import RawObject, parse_event
from konverge._internal.cache.history_check import HistoryCheck
from konverge._internal.cache.informer_statistics import InformerStatistics
from konverge._internal.cache.list_progress import ListProgress
from konverge._internal.cache.reflector_backoff import ReflectorBackoff
from konverge._internal.cache.reflector_steps import HistoryComparison, Step, WaitStep
from konverge._internal.cache.server_state import ServerState
from konverge._internal.cache.store import Store, StoreChange
from konverge._internal.cache.watch_events import parse_bookmark, parse_error, parse_type
from konverge._internal.cache.watch_progress import WatchProgress
from konverge._internal.client.client import ListPage
from konverge._internal.client.json_decoding import check_text
from konverge._internal.client.watch import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    SilentWatchError,
)
from konverge._internal.kube import GroupVersionKind
from konverge._internal.kube.server_text_redaction import withhold_text
from konverge.clock import Entropy
from konverge.errors import (
    ApiError,
    BadRequestError,
    ConnectionFailedError,
    ExpiredError,
    InvalidError,
    KindNotServedError,
    KonvergeError,
    NotConnectedError,
    TooManyRequestsError,
    UntrustedServerError,
)

__all__ = ["Reflector"]

_logger = logging.getLogger("konverge.cache")

# Bookmarks come about once a minute; a streaming list sends its objects without a break.
_IDLE_SECONDS = 150.0
_INITIAL_IDLE_SECONDS = 30.0

# After watches failed for this time, relist: the new list no longer depends on the resource version that the server
# rejects. A server that is unreachable or busy does not reject it, and a list would increase its load.
_RETRY_WATCH_SECONDS = 60.0

# For this time after a failed connection, other errors are attributed to a server that is starting.
_STARTING_SECONDS = 60.0

# An event that cannot be parsed leaves readers with the state before it, until the object changes again; a list shows
# them the present state. An object that can never be parsed must not cause a list for each of its events.
_LIST_FOR_UNREAD_SECONDS = 600.0


class Reflector:
    """The decisions for one collection.

    A driver requests a step (`next_step`), performs it, and reports the result through one of the other methods. It
    reports each failure to `on_failure`. Times are monotonic seconds.

    Args:
        gvk: The kind; watch events of other kinds are left out.
        store: The store to keep equal to the collection.
        entropy: The source of jitter.
        streaming: Whether to try a streaming list first.
        statistics: Counters of the informer.
        server: The state that all collections of the server share; by default nothing is shared.
    """

    def __init__(
        self,
        gvk: GroupVersionKind,
        store: Store,
        entropy: Entropy,
        *,
        streaming: bool = True,
        statistics: InformerStatistics | None = None,
        server: ServerState | None = None,
    ) -> None:
        self._gvk = gvk
        self._store = store
        self._statistics = statistics or InformerStatistics()
        self._list = ListProgress(gvk, store, self._statistics, streaming=streaming)
        self._watch = WatchProgress(entropy, self._statistics)
        self._backoff = ReflectorBackoff(entropy)
        self._server = server or ServerState()
        self._history = HistoryCheck(store, self._server)
        self._disconnected_at: float | None = None
        self._fruitless_since: float | None = None
        self._has_unread = False
        self._listed_for_unread_at: float | None = None
        self._is_listed = False
        self.last_error: KonvergeError | None = None
        """The last failure; None after a success."""
        self.confirmed_at: float | None = None
        """The time of the last response that proves the store's state; None before the first list."""

    @property
    def synced(self) -> bool:
        """True if the store contains a whole list of a served kind, from the server's present history."""
        return self._is_listed and not self._history.is_invalidated

    @property
    def store(self) -> Store:
        """The store that is kept equal to the collection."""
        return self._store

    @property
    def listed_at(self) -> float | None:
        """The time at which the list in place was requested; None before the first."""
        return self._list.listed_at

    @property
    def lists_done(self) -> int:
        """The number of the last list that is in place."""
        return self._list.lists_done

    @property
    def idle_timeout_seconds(self) -> float:
        """The longest permitted silence of an open watch; shorter while it streams a list."""
        return _IDLE_SECONDS if self._list.replacement is None else _INITIAL_IDLE_SECONDS

    @property
    def should_leave_watch(self) -> bool:
        """True if the driver should leave an open watch for a list, unless the watch is streaming that list."""
        return self._list.is_new_list_requested or self._history.is_invalidated

    def next_step(self, now: float) -> Step:
        """Return the next step for the driver."""
        if self._history.is_invalidated:
            self._history.adopt_history()
            self._is_listed = False
            self._relist()
        delay = self._backoff.seconds_left(now)
        if delay > 0:
            return WaitStep(delay)
        if self.should_leave_watch:
            self._relist()
        if not self._list.is_due:
            return self._watch.plan(
                self._store.resource_version, initial_events=False, idle_timeout_seconds=self.idle_timeout_seconds
            )
        if self._list.begin(now):
            self._has_unread = False
        if self._list.is_streaming:
            return self._watch.plan("", initial_events=True, idle_timeout_seconds=self.idle_timeout_seconds)
        return self._list.plan_page()

    def add_items(self, items: Sequence[msgspec.Raw]) -> None:
        """Add some or all items of a page to the list that is being read."""
        for error in self._list.add_items(items):
            self._skip_unreadable(error)

    def finish_page(self, page: ListPage, now: float) -> list[StoreChange]:
        """Record that all items of the page were added.

        Returns:
            The changes that readers see; they come with the last page.

        Raises:
            konverge.errors.ConnectionFailedError: The continue token repeats an earlier page.
        """
        is_last = self._list.finish_page(page)
        self._confirm_state(now)
        return self._commit(page.resource_version, now) if is_last else []

    def on_watch_opened(self, now: float) -> None:
        """Record that the watch is open."""
        self._watch.open(now)
        self._server.record_response(now)

    def plan_comparison(self) -> HistoryComparison | None:
        """Return the read to make after the watch opens and before its events are read; None if there is no doubt."""
        return None if self._list.is_due else self._history.plan_comparison()

    def on_comparison(self, page: ListPage, now: float) -> None:
        """Evaluate the response to the comparison."""
        if self._history.detect_rollback(page):
            self._record_rollback(page.resource_version, now)
        else:
            self._relist_for_contradiction(now)

    def skip_comparison(self) -> None:
        """Record that the server rejects the list that the comparison needs."""
        self._history.mark_trusted()

    def process_lines(self, lines: Sequence[bytes], now: float) -> tuple[list[StoreChange], KonvergeError | None]:
        """Process lines of the open watch.

        Returns:
            The changes that readers see, and the failure of the watch after them, which the driver reports to
            `on_failure`.
        """
        changes: list[StoreChange] = []
        apply_event = self._apply_event
        for line in lines:
            try:
                check_text(line)
                event_type, received = parse_event(line)
                change = apply_event(event_type, received)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                failure = self._apply_other_line(line, error, changes, now)
                if failure is not None:
                    self._relist_for_unread(now)
                    return changes, failure
                continue
            self._watch.record_event()
            if change is not None:
                changes.append(change)
        self._statistics.events += len(lines)
        self._statistics.last_resource_version = self._store.resource_version
        self._confirm_state(now)
        self._relist_for_unread(now)
        self._relist_for_contradiction(now)
        self._list.warn_late_end(self._watch.open_seconds(now))
        return changes, None

    def on_watch_ended(self, now: float) -> None:
        """Record that the server ended the watch, as it should after the timeout."""
        self._check_early_end(now)
        next_watch_at = self._watch.end(now)
        if self._list.replacement is not None:
            self._fall_back_to_pages("the watch ended before the bookmark")
        elif self._watch.ended_empty:
            self._handle_failure(
                ConnectionFailedError(f"{self._gvk}: the watch ended at once without an event"), now, is_cut=True
            )
        elif self._watch.ended_short_again:
            # One event in each of these watches, even a bookmark, must not cause a loop without delays.
            self._backoff.delay_until(next_watch_at)

    def on_failure(self, error: KonvergeError, now: float) -> None:
        """Record that the step failed, or that the open watch did."""
        is_cut = self._is_disconnect(error)
        if is_cut and self._watch.was_useful(now):
            self.on_watch_ended(now)
            return
        self._check_early_end(now)
        self._watch.close(now)
        self._handle_failure(error, now, is_cut=is_cut)

    def _handle_failure(self, error: KonvergeError, now: float, *, is_cut: bool) -> None:
        if self._list.is_streaming:
            if isinstance(error, InvalidError | BadRequestError):
                _logger.info("%s: the server rejects streaming lists; listing page by page: %s", self._gvk, error)
                self._list.disable_streaming()
                self._relist()
                return
            if isinstance(error, SilentWatchError):
                self._fall_back_to_pages(str(error))
                return
        self.last_error = error
        self._history.mark_uncertain()
        if isinstance(error, ConnectionFailedError):
            self._disconnected_at = now
        if not is_cut and self._is_connection_failure(now):
            self._server.call_on_response(self._on_server_response)
        if isinstance(error, KindNotServedError):
            self._relist()
            self._is_listed = False  # without deletions: an API that is away for a minute deletes nothing
        elif self._list.is_due:
            if isinstance(error, ExpiredError):
                self._list.on_expired()
            self._relist()
        else:
            self._handle_watch_failure(error, now)
        requested = error.retry_after_seconds if isinstance(error, ApiError) else None
        self._backoff.record_failure(now, is_cut=is_cut, requested_seconds=requested or 0.0)

    def on_watch_left(self, now: float) -> None:
        """Record that the driver left the watch, or the wait."""
        self._watch.close(now)

    def expedite(self, now: float) -> None:
        """Shorten the backoff because a caller is waiting, unless the server requested the delay."""
        if not (isinstance(self.last_error, ApiError) and self.last_error.retry_after_seconds):
            self._backoff.expedite(now)

    def widen(self) -> int:
        """Relist if any object was dropped: the store now keeps more. A list in progress finishes first.

        Returns:
            The number of the list (`lists_done`) that contains them all.
        """
        return self._list.widen()

    def evict_rejected(self) -> None:
        """Drop the cached objects that the store's filter `keep` now rejects, also from an unfinished list."""
        self._store.evict_rejected()
        self._list.evict_rejected()

    def _apply_event(self, event_type: str, received: RawObject) -> StoreChange | None:
        if not self._store.projection.matches_kind(received):
            raise ValueError(f"expected an event of the watched kind, found {received.api_version!r} {received.kind!r}")
        replacement = self._list.replacement
        target = self._store if replacement is None else replacement
        if replacement is None:
            self._history.check_event(received)
        if event_type in (ADDED, MODIFIED):
            return target.upsert(received)
        if event_type == DELETED:
            return target.remove(received)
        raise ValueError(f"expected an event of type ADDED, MODIFIED or DELETED, found {event_type!r}")

    def _apply_other_line(
        self, line: bytes, error: Exception, changes: list[StoreChange], now: float
    ) -> KonvergeError | None:
        """Apply a line without an object: a bookmark, an error of the server, or a line that cannot be parsed."""
        try:
            event_type = parse_type(line)
            if event_type == ERROR:
                server_error = parse_error(line)
                return withhold_text(server_error) if self._gvk.is_secret else server_error
            if event_type == BOOKMARK:
                changes += self._apply_bookmark(line, now)
                self._watch.record_event()
                return None
        except msgspec.ValidationError as invalid:
            error = invalid
        except msgspec.DecodeError as broken:
            return ConnectionFailedError(f"{self._gvk}: the watch sent an invalid line: expected JSON: {broken}")
        except (UnicodeDecodeError, RecursionError) as invalid:
            error = invalid
        self._skip_unreadable(error)
        self._has_unread = self._list.replacement is None  # another list would not show what this one cannot
        return None

    def _relist_for_unread(self, now: float) -> None:
        """Request a list for events that cannot be parsed, at most once in ten minutes."""
        last = self._listed_for_unread_at
        if self._has_unread and (last is None or now - last >= _LIST_FOR_UNREAD_SECONDS):
            self._has_unread = False
            self._listed_for_unread_at = now
            self._list.request()

    def _relist_for_contradiction(self, now: float) -> None:
        if self._history.request_relist(now):
            self._list.request()

    def _apply_bookmark(self, line: bytes, now: float) -> list[StoreChange]:
        bookmark = parse_bookmark(line)
        if self._list.replacement is None:
            self._history.check_bookmark(bookmark.resource_version)
            self._store.record_bookmark(bookmark.resource_version)
        elif bookmark.ends_list:
            return self._commit(bookmark.resource_version, now)
        return []

    def _commit(self, resource_version: str, now: float) -> list[StoreChange]:
        replacement = self._list.take_replacement()
        if self._history.is_invalidated:
            return []
        if replacement.proves_rollback(resource_version):
            self._record_rollback(resource_version, now)
            return []  # the list may contain other objects under known versions: the next list replaces them all
        self._history.mark_trusted()
        self._is_listed = True
        return self._list.commit(replacement, resource_version, now)

    def _confirm_state(self, now: float) -> None:
        self.last_error = None
        self._fruitless_since = None
        self.confirmed_at = now
        self._backoff.record_success(now)
        self._server.record_response(now)

    def _record_rollback(self, resource_version: str, now: float) -> None:
        _logger.warning(
            "%s: the storage of the API server was set back: expected version %d or later, found %s; relisting every "
            "kind",
            self._gvk, self._store.newest_known_revision, resource_version,
        )  # fmt: skip
        # API servers that contradict each other must not cause a loop of lists.
        self._backoff.record_failure(now, is_cut=True)
        self._server.record_rollback()

    def _check_early_end(self, now: float) -> None:
        """Record a doubt if a watch ends early: the server may be another one, or its storage restored."""
        if self._watch.is_early(now):
            self._history.mark_uncertain()

    def _is_connection_failure(self, now: float) -> bool:
        """Return True if the last failure concerns the server as a whole rather than this kind."""
        error, last = self.last_error, self._disconnected_at
        if error is None or isinstance(error, UntrustedServerError):
            return False
        if isinstance(error, ApiError) and error.retry_after_seconds:
            return False
        return last is not None and now - last < _STARTING_SECONDS

    def _on_server_response(self, now: float) -> None:
        if self.last_error is not None:
            self._backoff.on_server_response(now)

    def _is_disconnect(self, error: KonvergeError) -> bool:
        """Return True if the connection of an open watch broke.

        A load balancer, or a server that is killed, ends a watch like that. It is not evidence against the server. With
        growing delays an operator behind such a connection would miss changes most of the time.
        """
        if self._list.is_due or not self._watch.is_open:
            return False
        return isinstance(error, ConnectionFailedError) and not isinstance(error, NotConnectedError | SilentWatchError)

    def _relist(self) -> None:
        self._list.restart()
        self._fruitless_since = None

    def _handle_watch_failure(self, error: KonvergeError, now: float) -> None:
        if isinstance(error, ExpiredError | SilentWatchError) or _is_version_too_large(error):
            self._relist()
            return
        if isinstance(error, TooManyRequestsError | NotConnectedError):
            return
        if self._fruitless_since is None:
            self._fruitless_since = now
        elif now - self._fruitless_since >= _RETRY_WATCH_SECONDS:
            self._relist()

    def _fall_back_to_pages(self, reason: str) -> None:
        """Relist page by page once; a later streaming list may work."""
        _logger.warning("%s: the streaming list is incomplete; listing page by page: %s", self._gvk, reason)
        self._list.disable_streaming_once()
        self._relist()

    def _skip_unreadable(self, error: Exception) -> None:
        self._statistics.left_out += 1
        _logger.warning("%s: cannot parse an object that the server sent; it is left out: %s", self._gvk, error)


def _is_version_too_large(error: KonvergeError) -> bool:
    return isinstance(error, ApiError) and any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
