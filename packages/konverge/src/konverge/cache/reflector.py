"""Keeping a store like the server's collection: what to ask for next, and what each answer means. Pure.

The collection is read once as a whole, as a *streaming list* where the server has it (KEP-3157) and page by page where
not, and from then on watched. A watch that ends is resumed where it ended; only when the server no longer has that
point in its history, or says nothing at all, is the whole read again, while readers keep what they have.

Every whole list is a quorum read (no resource version is asked for). So it is never older than what was known, by
whichever API server it is answered; client-go's list "from version 0" may be. One that is older proves that the
server's storage was set back (an etcd that was restored from a snapshot). A watch that is resumed on such a server is
silent until the revisions have caught up, and what changed in between is never told. `HistoryCheck` finds that out.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from konverge.cache.cached_object import RawObject, parse_event, parse_item
from konverge.cache.history_check import HistoryCheck
from konverge.cache.informer_statistics import InformerStatistics
from konverge.cache.reflector_backoff import ReflectorBackoff
from konverge.cache.reflector_steps import HistoryComparison, OpenWatch, ReadPage, Step, WaitStep
from konverge.cache.server_state import ServerState
from konverge.cache.store import Store, StoreChange, StoreReplacement
from konverge.cache.watch_events import parse_bookmark, parse_error, parse_type
from konverge.client.client import ListPage
from konverge.client.json_decoding import check_text
from konverge.client.object_list import ContinueTokens
from konverge.client.watch import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    SilentWatchError,
)
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
from konverge.kube import GroupVersionKind
from konverge.kube.server_text_redaction import withhold_text

__all__ = ["Reflector"]

_logger = logging.getLogger(__name__)

_PAGE_SIZE = 500

# The server ends each watch after a random time of that range, so that not all of a fleet's watches end together.
_WATCH_SECONDS = (300.0, 600.0)

# Bookmarks come about once a minute; a streaming list's end comes as soon as its items are through.
_IDLE_SECONDS = 150.0
_INITIAL_IDLE_SECONDS = 30.0
_END_IS_LATE_SECONDS = 10.0

# A watch that ends sooner than that without an event is a failure, or a server that only ever hangs up would be asked
# without a pause.
_VERY_SHORT_SECONDS = 1.0

# When watches have come to nothing for so long, start over with a list: whatever the server has against that resource
# version will be gone. A server that cannot be reached, or is busy, says nothing against it, and a list would cost it
# more.
_RETRY_WATCH_SECONDS = 60.0

# A server may end a watch a little before the time that it was asked for.
_EARLY_SECONDS = 5.0

# After a connection failed, refusals of other kinds are those of a server that is starting.
_STARTING_SECONDS = 60.0

# An event that cannot be read leaves readers with what there was before it, until the object changes again: a list
# shows them what there is. An object that can never be read must not make a list of each of its events.
_LIST_FOR_UNREAD_SECONDS = 600.0


class Reflector:
    """Decides for one collection.

    A driver asks for the `step`, does it, and tells the outcome through one of the other methods; each failure goes to
    `failed`. Times are monotonic seconds.

    Args:
        gvk: The kind; anything else that a watch brings is left out.
        store: What is kept like the collection.
        entropy: Draws the jitter.
        streaming: Try a streaming list first.
        statistics: Counts.
        server: What is known of the server by all of its collections; nothing is shared when not given.
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
        self._entropy = entropy
        self._statistics = statistics or InformerStatistics()
        self._streaming = streaming
        self._uses_pages_once = False
        self._listing = True
        self._replacement: StoreReplacement | None = None
        self._end_is_late = False
        self._lists_begun = 0
        self._lists_done = 0
        self._continue_token = ""
        self._continue_tokens = ContinueTokens(gvk)
        self._page_size = _PAGE_SIZE
        self._backoff = ReflectorBackoff(entropy)
        self._server = server or ServerState()
        self._history = HistoryCheck(store, self._server)
        self._disconnected_at: float | None = None
        self._watch_seconds = 0.0
        self._fruitless_since: float | None = None
        self._opened_at: float | None = None
        self._got_events = False
        self._was_short = False
        self._is_relist_requested = False
        self._has_unread = False
        self._listed_for_unread_at: float | None = None
        self._is_listed = False
        self.last_error: KonvergeError | None = None
        """The last failure, None since something has worked."""
        self.confirmed_at: float | None = None
        """When the server last said something that proves the store's state; None before the first list."""
        self.listed_at: float | None = None
        """When the list that is in place was asked for; None before the first."""

    @property
    def synced(self) -> bool:
        """Whether the store holds a whole list, of a kind that the server serves, in the server's present history."""
        return self._is_listed and not self._history.is_invalidated

    @property
    def store(self) -> Store:
        """What is kept like the collection."""
        return self._store

    @property
    def idle_timeout_seconds(self) -> float:
        """How long an open watch may be silent now: less while the list is being streamed, which is done in one go."""
        return _IDLE_SECONDS if self._replacement is None else _INITIAL_IDLE_SECONDS

    @property
    def should_leave_watch(self) -> bool:
        """Tell whether an open watch is to be left, since a list is wanted; not while it streams one that counts."""
        return (self._is_relist_requested and self._replacement is None) or self._history.is_invalidated

    @property
    def lists_done(self) -> int:
        """The number of the last list that is in place."""
        return self._lists_done

    def next_step(self, now: float) -> Step:
        """What to do next."""
        if self._history.is_invalidated:
            self._history.adopt_history()
            self._is_listed = False
            self._relist()
        pause = self._backoff.seconds_left(now)
        if pause > 0:
            return WaitStep(pause)
        if self.should_leave_watch:
            self._relist()
        if not self._listing:
            return self._build_watch_step(self._store.resource_version, initial_events=False)
        if self._replacement is None:
            self._replacement = self._store.begin_replacement(now)
            self._lists_begun += 1
            self._has_unread = False
            self._continue_token = ""
            self._continue_tokens = ContinueTokens(self._gvk)
            self._end_is_late = False
        if self._streaming and not self._uses_pages_once:
            return self._build_watch_step("", initial_events=True)
        return ReadPage(self._continue_token, self._page_size)

    def add_items(self, items: Sequence[msgspec.Raw]) -> None:
        """Some items of a page, or all."""
        replacement = self._replacement
        if replacement is None:
            raise RuntimeError("items of a list that nobody asked for")
        for item in items:
            try:
                replacement.upsert(parse_item(item))
            except ValueError as error:
                self._skip_unreadable(error)

    def finish_page(self, page: ListPage, now: float) -> list[StoreChange]:
        """All items of the page were told; the changes that readers see, which come with the last page.

        Raises:
            konverge.errors.ConnectionFailedError: The next page is one that came before.
        """
        self._continue_token = self._continue_tokens.check_next(page)
        self._confirm_state(now)
        if page.continue_token:
            return []
        self._page_size = _PAGE_SIZE
        return self._commit(page.resource_version, now)

    def on_watch_opened(self, now: float) -> None:
        """The watch is open."""
        self._statistics.watches += 1
        self._opened_at = now
        self._got_events = False
        self._server.record_response(now)

    def plan_comparison(self) -> HistoryComparison | None:
        """What to read now that the watch is open, before it is followed; None when there is nothing to compare."""
        return None if self._listing else self._history.plan_comparison()

    def on_comparison(self, page: ListPage, now: float) -> None:
        """Take the answer to the comparison."""
        if self._history.detect_rollback(page):
            self._record_rollback(page.resource_version, now)
        else:
            self._relist_for_contradiction(now)

    def skip_comparison(self) -> None:
        """The comparison cannot be made: the server refuses such a list."""
        self._history.mark_trusted()

    def process_lines(self, lines: Sequence[bytes], now: float) -> tuple[list[StoreChange], KonvergeError | None]:
        """The watch has brought that.

        Returns:
            The changes that readers see, and what the watch failed with after them: that goes to `failed`.
        """
        changes: list[StoreChange] = []
        take = self._apply_event
        for line in lines:
            try:
                check_text(line)
                event_type, received = parse_event(line)
                change = take(event_type, received)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                failure = self._apply_other_line(line, error, changes, now)
                if failure is not None:
                    self._relist_for_unread(now)
                    return changes, failure
                continue
            self._got_events = True
            if change is not None:
                changes.append(change)
        self._statistics.events += len(lines)
        self._statistics.last_resource_version = self._store.resource_version
        self._confirm_state(now)
        self._relist_for_unread(now)
        self._relist_for_contradiction(now)
        self._warn_late_end(now)
        return changes, None

    def on_watch_ended(self, now: float) -> None:
        """The server has ended the watch, as it should after the time-out."""
        self._check_early_end(now)
        seconds = self._close_watch(now)
        was_short, self._was_short = self._was_short, seconds < _VERY_SHORT_SECONDS
        if self._was_short and not self._got_events:
            self._statistics.short_watches += 1
        if self._replacement is not None:
            self._fall_back_to_pages("it ended before its bookmark came")
        elif self._was_short and not self._got_events:
            self._handle_failure(
                ConnectionFailedError(f"a watch of {self._gvk} ended at once without an event"), now, is_cut=True
            )
        elif self._was_short and was_short:
            # An event each time, if only a bookmark, must not make a hot loop of it.
            self._backoff.delay_until(now - seconds + _VERY_SHORT_SECONDS)

    def on_failure(self, error: KonvergeError, now: float) -> None:
        """The step, or reading on in a watch, has failed."""
        is_cut = self._is_disconnect(error)
        if is_cut and self._was_useful(now):
            self.on_watch_ended(now)
            return
        self._check_early_end(now)
        self._close_watch(now)
        self._handle_failure(error, now, is_cut=is_cut)

    def _handle_failure(self, error: KonvergeError, now: float, *, is_cut: bool) -> None:
        if self._listing and self._streaming and not self._uses_pages_once:
            if isinstance(error, InvalidError | BadRequestError):
                _logger.info("%s: the server has no streaming lists (%s); listing page by page", self._gvk, error)
                self._streaming = False
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
            self._is_listed = False  # but nothing is told as deleted: an API that is away for a minute deletes nothing
        elif self._listing:
            if isinstance(error, ExpiredError) and self._continue_token:
                # Reading all the pages takes longer than the server keeps its history: take everything at once.
                self._page_size = 0
            self._relist()
        else:
            self._handle_watch_failure(error, now)
        wanted = error.retry_after_seconds if isinstance(error, ApiError) else None
        self._backoff.record_failure(now, is_cut=is_cut, wanted_seconds=wanted or 0.0)

    def on_watch_left(self, now: float) -> None:
        """The driver has left the watch, or the wait, that it was in."""
        self._close_watch(now)

    def expedite(self, now: float) -> None:
        """Somebody waits: do not wait much longer, unless the server asked for it."""
        if not (isinstance(self.last_error, ApiError) and self.last_error.retry_after_seconds):
            self._backoff.expedite(now)

    def widen(self) -> int:
        """What the store keeps has become more: list again if anything was dropped, after the list that is under way.

        Returns:
            The number of the list (`lists_done`) that has it all.
        """
        if self._replacement is None and self._lists_done and not self._store.dropped:
            return self._lists_done
        self._is_relist_requested = True
        return self._lists_begun + 1

    def evict_rejected(self) -> None:
        """What the store keeps has become less: drop the rest."""
        self._store.evict_rejected()
        if self._replacement is not None:
            self._replacement.evict_rejected()

    def _build_watch_step(self, resource_version: str, *, initial_events: bool) -> OpenWatch:
        timeout_seconds = self._entropy.uniform(*_WATCH_SECONDS)
        self._watch_seconds = timeout_seconds
        return OpenWatch(
            resource_version=resource_version,
            initial_events=initial_events,
            timeout_seconds=timeout_seconds,
            idle_timeout_seconds=self.idle_timeout_seconds,
        )

    def _apply_event(self, event_type: str, received: RawObject) -> StoreChange | None:
        if not self._store.projection.matches_kind(received):
            raise ValueError(f"an event of another kind: {received.api_version!r} {received.kind!r}")
        target = self._store if self._replacement is None else self._replacement
        if self._replacement is None:
            self._history.check_event(received)
        if event_type in (ADDED, MODIFIED):
            return target.upsert(received)
        if event_type == DELETED:
            return target.remove(received)
        raise ValueError(f"an event of another type: {event_type!r}")

    def _apply_other_line(
        self, line: bytes, error: Exception, changes: list[StoreChange], now: float
    ) -> KonvergeError | None:
        """A line that is not about an object: a bookmark, an error of the server, or nothing that can be read."""
        try:
            event_type = parse_type(line)
            if event_type == ERROR:
                error_sent = parse_error(line)
                return withhold_text(error_sent) if self._gvk.is_secret else error_sent
            if event_type == BOOKMARK:
                changes += self._apply_bookmark(line, now)
                self._got_events = True
                return None
        except msgspec.ValidationError as odd:
            error = odd
        except msgspec.DecodeError as broken:
            return ConnectionFailedError(f"a watch of {self._gvk} sent what is not JSON: {broken}")
        except (UnicodeDecodeError, RecursionError) as odd:
            error = odd
        self._skip_unreadable(error)
        self._has_unread = self._replacement is None  # what a list cannot show, another one cannot either
        return None

    def _relist_for_unread(self, now: float) -> None:
        """Want a list for the events that could not be read, if the last one for such is long ago; else later."""
        last = self._listed_for_unread_at
        if self._has_unread and (last is None or now - last >= _LIST_FOR_UNREAD_SECONDS):
            self._has_unread = False
            self._listed_for_unread_at = now
            self._is_relist_requested = True

    def _relist_for_contradiction(self, now: float) -> None:
        if self._history.request_relist(now):
            self._is_relist_requested = True

    def _apply_bookmark(self, line: bytes, now: float) -> list[StoreChange]:
        found = parse_bookmark(line)
        if self._replacement is None:
            self._history.check_bookmark(found.resource_version)
            self._store.record_bookmark(found.resource_version)
        elif found.ends_list:
            return self._commit(found.resource_version, now)
        return []

    def _commit(self, resource_version: str, now: float) -> list[StoreChange]:
        replacement, self._replacement = self._replacement, None
        if replacement is None:
            raise RuntimeError("the end of a list that nobody asked for")
        if self._history.is_invalidated or replacement.proves_rollback(resource_version):
            if not self._history.is_invalidated:
                self._record_rollback(resource_version, now)
            return []  # the list may hold other objects under the same versions: the next one takes nothing over
        self._statistics.lists += 1
        self._statistics.list_seconds += now - replacement.started_at
        self._statistics.items_listed += len(replacement)
        self._lists_done = self._lists_begun
        self.listed_at = replacement.started_at
        self._listing = False
        self._uses_pages_once = False
        self._history.mark_trusted()
        self._is_listed = True
        changes = replacement.commit(resource_version)
        self._statistics.last_resource_version = resource_version
        return changes

    def _confirm_state(self, now: float) -> None:
        self.last_error = None
        self._fruitless_since = None
        self.confirmed_at = now
        self._backoff.record_success(now)
        self._server.record_response(now)

    def _record_rollback(self, resource_version: str, now: float) -> None:
        _logger.warning(
            "%s: the storage of the API server was set back: version %d was known, and it is at %s; every kind is "
            "listed again",
            self._gvk, self._store.newest_known_revision, resource_version,
        )  # fmt: skip
        self._backoff.record_failure(
            now, is_cut=True
        )  # servers that contradict each other must not make a loop of lists
        self._server.record_rollback()

    def _check_early_end(self, now: float) -> None:
        """A watch that ends before its time may end because the server was replaced or its storage restored."""
        if self._opened_at is not None and now - self._opened_at < self._watch_seconds - _EARLY_SECONDS:
            self._history.mark_uncertain()

    def _is_connection_failure(self, now: float) -> bool:
        """Tell whether the last failure is of the server as a whole rather than of this kind."""
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
        """Tell whether the connection of an open watch broke.

        That is how a load balancer or a server that is killed ends it. It says nothing against the server, and pauses
        that grow would leave whoever lives behind such a connection blind most of the time.
        """
        if self._listing or self._opened_at is None:
            return False
        return isinstance(error, ConnectionFailedError) and not isinstance(error, NotConnectedError | SilentWatchError)

    def _was_useful(self, now: float) -> bool:
        """Tell whether the open watch was of use: it has brought something, or would have, had there been anything."""
        return self._got_events or (self._opened_at is not None and now - self._opened_at >= _VERY_SHORT_SECONDS)

    def _close_watch(self, now: float) -> float:
        """Count the watch that was open, if one was; for how long it was."""
        if self._opened_at is None:
            return 0.0
        seconds = now - self._opened_at
        self._statistics.watch_seconds += seconds
        self._opened_at = None
        return seconds

    def _relist(self) -> None:
        self._listing = True
        self._replacement = None
        self._is_relist_requested = False
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

    def _fall_back_to_pages(self, why: str) -> None:
        """Do without the streaming list once: whatever was wrong, the next time it may work."""
        _logger.warning("%s: the streaming list did not come to its end: %s; listing page by page", self._gvk, why)
        self._uses_pages_once = True
        self._relist()

    def _warn_late_end(self, now: float) -> None:
        if self._replacement is None or self._end_is_late or self._opened_at is None:
            return
        seconds = now - self._opened_at
        if seconds >= _END_IS_LATE_SECONDS:
            self._end_is_late = True
            _logger.warning(
                "%s: the streaming list has not come to its end for %.0f s (%d objects so far)",
                self._gvk, seconds, len(self._replacement),
            )  # fmt: skip

    def _skip_unreadable(self, error: Exception) -> None:
        self._statistics.left_out += 1
        _logger.warning("%s: left out what cannot be read: %s", self._gvk, error)


def _is_version_too_large(error: KonvergeError) -> bool:
    return isinstance(error, ApiError) and any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
