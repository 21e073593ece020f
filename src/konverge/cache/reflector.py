"""Keeping a store like the server's collection: what to ask for next, and what each answer means. Pure.

The collection is read once as a whole, as a *streaming list* where the server has it (KEP-3157) and page by page where
not, and from then on watched. A watch that ends is resumed where it ended; only when the server no longer has that
point in its history, or says nothing at all, is the whole read again, while readers keep what they have.

Every whole list is a quorum read (no resource version is asked for). So it is never older than what was known, by
whichever API server it is answered; client-go's list "from version 0" may be.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from konverge.cache.entries import RawObject, split_object
from konverge.cache.store import Change, Replacement, Store
from konverge.client.client import ListPage
from konverge.client.decoding import UNREADABLE, check_text
from konverge.client.retries import Backoff
from konverge.client.watch import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    INITIAL_EVENTS_END,
    MODIFIED,
    SilentWatchError,
    error_of,
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
)
from konverge.kube import GroupVersionKind

__all__ = ["OpenWatch", "ReadPage", "Reflector", "Step", "Wait"]

_logger = logging.getLogger(__name__)

_PAGE_SIZE = 500

# The server ends each watch after a random time of that range, so that not all of a fleet's watches end together.
_WATCH_SECONDS = (300.0, 600.0)

# Bookmarks come about once a minute; a streaming list's end comes as soon as its items are through.
_IDLE_SECONDS = 150.0
_INITIAL_IDLE_SECONDS = 30.0

# A watch that ends sooner than that without an event is a failure, or a server that only ever hangs up would be asked
# without a pause.
_VERY_SHORT_SECONDS = 1.0

_BACKOFF = Backoff(first_seconds=0.8, cap_seconds=30.0)
_HEALTHY_SECONDS = 120.0

# After so many watches in a row that came to nothing, start over with a list: whatever the server has against that
# resource version will be gone.
_MAX_FRUITLESS_WATCHES = 10

# Somebody waits who may know better (a CustomResourceDefinition that was just made): not more often than that.
_HURRIED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ReadPage:
    """Read a page of the list, then call `Reflector.page`. A limit of 0 asks for everything at once."""

    continue_token: str
    limit: int


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """Open a watch, then call `Reflector.opened`, `Reflector.lines` for what it brings, and `Reflector.ended`."""

    resource_version: str
    initial_events: bool
    timeout_seconds: float
    idle_timeout_seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait so long, then ask for the next step again."""

    seconds: float


Step: TypeAlias = ReadPage | OpenWatch | Wait


class _Event(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: RawObject


class _BookmarkMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = {}


_event = msgspec.json.Decoder(_Event)
_bookmark = msgspec.json.Decoder(_BookmarkMetadata)


class Reflector:
    """Decides for one collection.

    A driver asks for the `step`, does it, and tells the outcome through one of the other methods; each failure goes to
    `failed`. Times are monotonic seconds.

    Args:
        gvk: The kind; anything else that a watch brings is left out.
        store: What is kept like the collection.
        entropy: Draws the jitter.
        streaming: Try a streaming list first.
    """

    def __init__(self, gvk: GroupVersionKind, store: Store, entropy: Entropy, *, streaming: bool = True) -> None:
        self._gvk = gvk
        self._store = store
        self._entropy = entropy
        self._streaming = streaming
        self._listing = True
        self._replacement: Replacement | None = None
        self._continue_token = ""
        self._page_size = _PAGE_SIZE
        self._failures = 0
        self._failed_at = 0.0
        self._healthy_since: float | None = None
        self._retry_at = 0.0
        self._fruitless_watches = 0
        self._opened_at = 0.0
        self._got_events = False
        self._was_short = False
        self._api_version, self._kind = msgspec.json.encode(gvk.api_version), msgspec.json.encode(gvk.kind)
        self.synced = False
        """Whether the store holds a whole list, of a kind that the server serves."""
        self.problem: KonvergeError | None = None
        """The last failure, None since something has worked."""
        self.proven_at: float | None = None
        """When the server last said something that proves the store's state; None before the first list."""

    @property
    def store(self) -> Store:
        """What is kept like the collection."""
        return self._store

    @property
    def idle_timeout_seconds(self) -> float:
        """How long an open watch may be silent now: less while the list is being streamed, which is done in one go."""
        return _IDLE_SECONDS if self._replacement is None else _INITIAL_IDLE_SECONDS

    def step(self, now: float) -> Step:
        """What to do next."""
        if now < self._retry_at:
            return Wait(self._retry_at - now)
        if not self._listing:
            return self._watch(self._store.resource_version, initial_events=False)
        if self._replacement is None:
            self._replacement = self._store.begin_replacement(now)
            self._continue_token = ""
        if self._streaming:
            return self._watch("", initial_events=True)
        return ReadPage(self._continue_token, self._page_size)

    def page(self, page: ListPage, now: float) -> list[Change]:
        """A page of the list is there; the changes that readers see, which come with the last one."""
        replacement = self._replacement
        if replacement is None:
            raise RuntimeError("a page of a list that nobody asked for")
        for raw in page.items:
            try:
                replacement.put(split_object(raw))
            except ValueError as error:
                self._leave_out(error)
        self._continue_token = page.continue_token
        self._prove(now)
        if page.continue_token:
            return []
        self._page_size = _PAGE_SIZE
        return self._commit(page.resource_version)

    def opened(self, now: float) -> None:
        """The watch is open."""
        self._opened_at = now
        self._got_events = False

    def lines(self, lines: list[bytes], now: float) -> tuple[list[Change], KonvergeError | None]:
        """The watch has brought that.

        Returns:
            The changes that readers see, and what the watch failed with after them: that goes to `failed`.
        """
        changes: list[Change] = []
        for line in lines:
            try:
                check_text(line)
                event = _event.decode(line)
            except (msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
                self._leave_out(error)
                continue
            except msgspec.DecodeError as error:
                return changes, ConnectionFailedError(f"a watch of {self._gvk} sent what is not JSON: {error}")
            if event.type == ERROR:
                return changes, _error(event.object)
            try:
                self._take(event, changes)
                self._got_events = True
            except ValueError as error:
                self._leave_out(error)
        self._prove(now)
        return changes, None

    def ended(self, now: float) -> None:
        """The server has ended the watch, as it should after the time-out."""
        if self._replacement is not None:
            self._give_up_streaming("ended before the list was complete")
            return
        was_short, self._was_short = self._was_short, now - self._opened_at < _VERY_SHORT_SECONDS
        if self._was_short and not self._got_events:
            self.failed(ConnectionFailedError(f"a watch of {self._gvk} ended at once without an event"), now)
        elif self._was_short and was_short:
            # An event each time, if only a bookmark, must not make a hot loop of it.
            self._retry_at = self._opened_at + _VERY_SHORT_SECONDS

    def failed(self, error: KonvergeError, now: float) -> None:
        """The step, or reading on in a watch, has failed."""
        if self._listing and self._streaming and isinstance(error, InvalidError | BadRequestError | SilentWatchError):
            self._give_up_streaming(str(error))  # not a problem: there is another way
            return
        self.problem = error
        if isinstance(error, KindNotServedError):
            self._list_again()
            self.synced = False  # but nothing is told as deleted: an API that is away for a minute deletes nothing
        elif self._listing:
            if isinstance(error, ExpiredError) and self._continue_token:
                # Reading all the pages takes longer than the server keeps its history: take everything at once.
                self._page_size = 0
            self._list_again()
        else:
            self._watch_failed(error)
        if self._healthy_since is not None and now - self._healthy_since >= _HEALTHY_SECONDS:
            self._failures = 0
        self._failures += 1
        self._failed_at = now
        self._healthy_since = None
        pause = _BACKOFF.pause(self._failures, self._entropy)
        wanted = error.retry_after_seconds if isinstance(error, ApiError) else None
        self._retry_at = now + max(pause, wanted or 0.0)

    def hurry(self, now: float) -> None:
        """Somebody waits: do not wait much longer, unless the server asked for it."""
        if not (isinstance(self.problem, ApiError) and self.problem.retry_after_seconds):
            self._retry_at = min(self._retry_at, max(now, self._failed_at + _HURRIED_SECONDS))

    def _watch(self, resource_version: str, *, initial_events: bool) -> OpenWatch:
        return OpenWatch(
            resource_version=resource_version,
            initial_events=initial_events,
            timeout_seconds=self._entropy.uniform(*_WATCH_SECONDS),
            idle_timeout_seconds=self.idle_timeout_seconds,
        )

    def _take(self, event: _Event, changes: list[Change]) -> None:
        fields = event.object
        if event.type == BOOKMARK:
            self._take_bookmark(fields, changes)
            return
        api_version, kind = bytes(fields.get("apiVersion", b"")), bytes(fields.get("kind", b""))
        if kind != self._kind or api_version != self._api_version:
            raise ValueError(f"an event of another kind: {api_version!r} {kind!r}")
        if self._replacement is not None:
            if event.type == DELETED:
                self._replacement.remove(fields)
            elif event.type in (ADDED, MODIFIED):
                self._replacement.put(fields)
            return
        change: Change | None = None
        if event.type == DELETED:
            change = self._store.remove(fields)
        elif event.type in (ADDED, MODIFIED):
            change = self._store.put(fields)
        if change is not None:
            changes.append(change)

    def _take_bookmark(self, fields: RawObject, changes: list[Change]) -> None:
        try:
            found = _bookmark.decode(fields.get("metadata", b"{}"))
        except UNREADABLE as error:
            raise ValueError(f"a bookmark: {error}") from error
        if self._replacement is None:
            self._store.bookmark(found.resource_version)
        elif found.annotations.get(INITIAL_EVENTS_END) == "true":
            changes += self._commit(found.resource_version)

    def _commit(self, resource_version: str) -> list[Change]:
        replacement, self._replacement = self._replacement, None
        self._listing = False
        self._fruitless_watches = 0
        self.synced = True
        return [] if replacement is None else replacement.commit(resource_version)

    def _prove(self, now: float) -> None:
        self.problem = None
        self._fruitless_watches = 0
        self.proven_at = now
        if self._healthy_since is None:
            self._healthy_since = now

    def _list_again(self) -> None:
        self._listing = True
        self._replacement = None
        self._fruitless_watches = 0

    def _watch_failed(self, error: KonvergeError) -> None:
        if isinstance(error, ExpiredError | SilentWatchError) or _is_version_too_large(error):
            self._list_again()
            return
        self._fruitless_watches += 1
        if self._fruitless_watches >= _MAX_FRUITLESS_WATCHES:
            self._list_again()

    def _give_up_streaming(self, why: str) -> None:
        _logger.info("%s: no streaming list (%s); listing page by page from now on", self._gvk, why)
        self._streaming = False
        self._list_again()

    def _leave_out(self, error: Exception) -> None:
        _logger.warning("%s: left out what cannot be read: %s", self._gvk, error)


def _error(fields: RawObject) -> ApiError:
    try:
        return error_of(msgspec.json.decode(msgspec.json.encode(fields), type=dict))
    except UNREADABLE:
        return error_of({})


def _is_version_too_large(error: KonvergeError) -> bool:
    return isinstance(error, ApiError) and any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
