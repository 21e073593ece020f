"""Keeping one collection in memory: the driver that does what its `Reflector` decides.

Nothing here holds the event loop for long: pages are decoded, and large numbers of changes told, in blocks between
which others get their turn. The garbage collector stays off while a block is decoded; nothing of what is made there is
garbage. It is not made to forget what is held (`gc.freeze`): entries are hidden from it anyway, so 10,000 Pods lengthen
a full collection by 4 ms only, and a process frozen by a library would never get rid of what else was garbage then.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from konverge.cache.informer_statistics import InformerStatistics
from konverge.cache.options import CacheOptions
from konverge.cache.own_writes import OwnWrites
from konverge.cache.reflector import Reflector
from konverge.cache.reflector_steps import OpenWatch, ReadPage, WaitStep
from konverge.cache.server_state import ServerState
from konverge.cache.store import Store, StoreChange
from konverge.client.client import Client
from konverge.client.watch import Watch
from konverge.clock import Clock, Entropy
from konverge.errors import (
    ApiError,
    ConnectionFailedError,
    KindNotServedError,
    KonvergeError,
    NotFoundError,
    TooManyRequestsError,
    UntrustedServerError,
    format_error,
    format_error_with_request,
)
from konverge.kube import GroupVersionKind, Object, ObjectKey, format_identity
from konverge.kube.metadata import ObjectMeta, parse_revision
from konverge.kube.selectors import LabelSelector

__all__ = ["ChangeCallback", "ReflectorDriver"]

_logger = logging.getLogger(__name__)

# Refusals that waiting does not change. Others pass: too many requests, an expired list, the server's own troubles.
_FINAL_CODES = frozenset({400, 401, 403, 404, 405, 406, 422})

# So many objects are decoded, or changes told, at a time: a few milliseconds.
_BLOCK_SIZE = 250

# How long a write of unknown outcome is doubted: far longer than a request may take, and a watch lag.
_UNCERTAIN_SECONDS = 300.0

# How often a list of a few objects is tried before all of the kind is listed, and how long that may take.
_FILL_ATTEMPTS = 3
_FILL_SECONDS = 30.0

ChangeCallback: TypeAlias = Callable[[GroupVersionKind, ObjectMeta | None, ObjectMeta | None], None]
"""Hears of each change: the kind, the metadata before (None: added) and after (None: gone). It must not raise."""


class ReflectorDriver:
    """One collection of the server in memory.

    Args:
        client: Where to read from.
        gvk: The kind.
        namespace: The namespace; empty for all.
        options: Which objects of it are held, and how much of each.
        store: Where they are held.
        publish: Hears of each change that a reader sees, own writes included; those of one object in order.
        statistics: Counts.
        server: What the collections of the server find out for each other.
        clock: Measures and waits.
        entropy: Draws the jitter of pauses.
    """

    def __init__(
        self,
        client: Client,
        gvk: GroupVersionKind,
        *,
        namespace: str,
        options: CacheOptions,
        store: Store,
        publish: ChangeCallback,
        statistics: InformerStatistics,
        server: ServerState,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._client = client
        self._gvk = gvk
        self._namespace = namespace
        self._options = options
        self._publish = publish
        self._clock = clock
        self._server = server
        self._reflector = Reflector(gvk, store, entropy, statistics=statistics, server=server)
        self._is_first_list_published = False
        # Changes that readers see but nobody was told of yet: those of a large list, by object.
        self._unpublished: dict[ObjectKey, list[StoreChange]] = {}
        # Writes of unknown outcome: a number for each, and when.
        self._uncertain: dict[ObjectKey, tuple[int, float]] = {}
        self._last_uncertain_number = 0
        self._own_writes = OwnWrites()
        # Ends the watch that is open, when something else is to be done.
        self._watch_timeout: asyncio.Timeout | None = None
        self._wakeup = asyncio.Event()
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def store(self) -> Store:
        """What is held."""
        return self._reflector.store

    @property
    def synced(self) -> bool:
        """Tell whether reads are answered: the first list is there and has been told, and the kind is still served."""
        return self._is_first_list_published and self._reflector.synced

    @property
    def last_error(self) -> KonvergeError | None:
        """Why the server's changes do not arrive at the moment; None when they do."""
        return self._reflector.last_error

    @property
    def age_seconds(self) -> float | None:
        """How long ago the server last proved that what is held is up to date; None before the first list."""
        proven_at = self._reflector.confirmed_at
        return None if proven_at is None else self._clock.monotonic() - proven_at

    @property
    def list_age_seconds(self) -> float | None:
        """How long ago the last whole list was asked for; None before the first."""
        listed_at = self._reflector.listed_at
        return None if listed_at is None else self._clock.monotonic() - listed_at

    @property
    def own_writes(self) -> OwnWrites:
        """The answers to own writes that the watch has not shown yet."""
        listed_at = self._reflector.listed_at
        if listed_at is not None:
            self._own_writes.confirm(parse_revision(self.store.resource_version), listed_at)
        return self._own_writes

    async def run(self) -> None:
        """Keep the collection up to date until cancelled; failures are retried, with growing pauses, for ever."""
        unsubscribe = self._server.subscribe(self._on_server_change)
        try:
            while True:
                step = self._reflector.next_step(self._clock.monotonic())
                try:
                    if isinstance(step, WaitStep):
                        await self._wait(step.seconds)
                    elif isinstance(step, ReadPage):
                        await self._read_page(step)
                    else:
                        await self._watch(step)
                except KonvergeError as error:
                    self._handle_failure(error)
                except Exception as error:  # noqa: BLE001  # a mistake, and no reason to stop following for good
                    self._handle_failure(self._wrap_unexpected_error(error))
        finally:
            unsubscribe()

    async def wait_until_synced(self, timeout_seconds: float) -> None:
        """Wait until reads are answered.

        Raises:
            konverge.errors.KindNotServedError: The server does not serve the kind, by a fresh answer.
            konverge.errors.ApiError: The server refuses to list it, and waiting would not change that.
            konverge.errors.ConnectionFailedError: The deadline has passed, or the server cannot be trusted.
        """
        await self._wait_for(lambda: self.synced, timeout_seconds)

    def widen(self) -> int:
        """What is kept has become more: list again if anything was dropped.

        Returns:
            The number of the list that `wait_for_list` can wait for.
        """
        number = self._reflector.widen()
        self._interrupt_watch()
        return number

    def _interrupt_watch(self) -> None:
        """Leave the open watch, if the reflector wants it."""
        interruption = self._watch_timeout
        # One that is expiring cannot be moved any more: the watch is being left as it is.
        if self._reflector.should_leave_watch and interruption is not None and not interruption.expired():
            interruption.reschedule(asyncio.get_running_loop().time())

    def _on_server_change(self) -> None:
        """Something is known of the server that may change what is to be done."""
        self._interrupt_watch()
        self._wakeup.set()

    async def wait_for_list(self, number: int, timeout_seconds: float) -> None:
        """Wait until the list of that number has replaced what was held, and was told. Raises as `ready` does."""
        await self._wait_for(lambda: self._reflector.lists_done >= number and not self._unpublished, timeout_seconds)

    async def load_dropped(self, namespace: str, labels: LabelSelector) -> None:
        """What is kept has become more by these: read those that were dropped."""
        for _ in range(_FILL_ATTEMPTS):
            if not self.store.dropped:
                return
            found = await self._client.list(self._gvk, namespace=namespace, label_selector=str(labels))
            if parse_revision(found.resource_version) < parse_revision(self.store.resource_version):
                continue  # the watch was faster: it may have told already of something newer, which was dropped
            for obj in found.items:
                self.store.record_read(obj)
            return
        await self.wait_for_list(self.widen(), _FILL_SECONDS)

    def evict_rejected(self) -> None:
        """What is kept has become less: drop the rest."""
        self._reflector.evict_rejected()

    async def read(self, key: ObjectKey) -> Object:
        """One object, for the caller to change: from memory, or from the server if memory does not know.

        Raises:
            konverge.errors.NotFoundError: There is none.
        """
        if key in self._uncertain:
            return await self._read_uncertain(key)
        store = self.store
        found = store.get(key)
        if found is None and store.is_dropped(key):
            answer = await self._client.get(self._gvk, key, live=True)
            store.record_read(answer)
            found = store.get(key) or store.projection.project_object(answer)
        if found is None:
            details = {"kind": self._gvk.kind, "name": key.name}
            raise NotFoundError(f"{format_identity(self._gvk, key)} not found", details=details)
        return found

    def record_write(self, obj: Mapping[str, Any]) -> None:
        """The answer to an own write."""
        key = ObjectKey.of(obj)
        self._uncertain.pop(key, None)
        change = self.store.record_write(obj)
        if change is not None:
            self.own_writes.add(parse_revision(obj["metadata"]["resourceVersion"]), self._clock.monotonic())
        self._publish_change(key, change)

    def record_delete(self, key: ObjectKey, uid: str) -> None:
        """An own delete after which nothing holds the object any more."""
        self._uncertain.pop(key, None)
        self._publish_change(key, self.store.record_delete(key, uid, self._clock.monotonic()))

    def mark_uncertain(self, key: ObjectKey) -> None:
        """A write of ours has an outcome that nobody knows: the next read asks the server."""
        now = self._clock.monotonic()
        while self._uncertain:
            oldest, (_, moment) = next(iter(self._uncertain.items()))
            if now - moment < _UNCERTAIN_SECONDS:
                break
            del self._uncertain[oldest]
        self._last_uncertain_number += 1
        self._uncertain.pop(key, None)
        self._uncertain[key] = self._last_uncertain_number, now

    async def _read_uncertain(self, key: ObjectKey) -> Object:
        doubt = self._uncertain[key]
        store = self.store
        try:
            answer = await self._client.get(self._gvk, key, live=True)
        except NotFoundError:
            if key not in store:  # or the next read would find what has gone
                self._clear_uncertain(key, doubt)
            raise
        self._clear_uncertain(key, doubt)
        self._publish_change(key, store.record_write(answer))
        return store.get(key) or store.projection.project_object(answer)

    def _clear_uncertain(self, key: ObjectKey, doubt: tuple[int, float]) -> None:
        if self._uncertain.get(key) == doubt:  # else another write got lost meanwhile
            del self._uncertain[key]

    async def _read_page(self, step: ReadPage) -> None:
        page = await self._client.list_page(
            self._gvk,
            namespace=self._namespace,
            label_selector=self._options.label_selector,
            field_selector=self._options.field_selector,
            metadata_only=self._options.metadata_only,
            limit=step.limit,
            continue_token=step.continue_token,
        )
        for start in range(0, len(page.items), _BLOCK_SIZE):
            with _pause_gc():
                self._reflector.add_items(page.items[start : start + _BLOCK_SIZE])
            await self._clock.sleep(0)
        with _pause_gc():
            changes = self._reflector.finish_page(page, self._clock.monotonic())
        await self._publish_changes(changes)

    async def _watch(self, step: OpenWatch) -> None:
        watching = self._client.watch(
            self._gvk,
            namespace=self._namespace,
            label_selector=self._options.label_selector,
            field_selector=self._options.field_selector,
            metadata_only=self._options.metadata_only,
            resource_version=step.resource_version,
            initial_events=step.initial_events,
            timeout_seconds=step.timeout_seconds,
            idle_timeout_seconds=step.idle_timeout_seconds,
        )
        try:
            async with asyncio.timeout(None) as self._watch_timeout, watching as watch:
                self._reflector.on_watch_opened(self._clock.monotonic())
                await self._compare_history()
                await self._follow(watch)
        except TimeoutError:
            if self._watch_timeout is None or not self._watch_timeout.expired():
                raise
            self._reflector.on_watch_left(self._clock.monotonic())
        finally:
            self._watch_timeout = None

    async def _compare_history(self) -> None:
        """Find out whether the server still is what it was when the watch was open before."""
        comparison = self._reflector.plan_comparison()
        if comparison is None:
            return
        selectors = [self._options.field_selector] if self._options.field_selector else []
        if comparison.name:
            selectors.append(f"metadata.name={comparison.name}")
        try:
            page = await self._client.list_page(
                self._gvk,
                namespace=comparison.namespace or self._namespace,
                label_selector=self._options.label_selector,
                field_selector=",".join(selectors),
                metadata_only=True,
                limit=1,
            )
        except ApiError as error:
            if not _is_permanent(error):
                raise
            _logger.debug("%s cannot be compared: %s", self._gvk, error)
            self._reflector.skip_comparison()
        else:
            self._reflector.on_comparison(page, self._clock.monotonic())
            self._interrupt_watch()

    async def _follow(self, watch: Watch) -> None:
        reflector, clock = self._reflector, self._clock
        while (lines := await watch.next_lines()) is not None:
            with _pause_gc():
                changes, error = reflector.process_lines(lines, clock.monotonic())
            await self._publish_changes(changes)
            if error is not None:
                raise error
            if reflector.should_leave_watch:
                reflector.on_watch_left(clock.monotonic())
                return
            watch.idle_timeout_seconds = reflector.idle_timeout_seconds
        reflector.on_watch_ended(clock.monotonic())

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wakeup.wait()
        except TimeoutError:
            pass
        self._wakeup.clear()

    async def _wait_for(self, is_so: Callable[[], bool], timeout_seconds: float) -> None:
        if is_so():
            return
        self._reflector.expedite(self._clock.monotonic())
        self._wakeup.set()
        try:
            async with asyncio.timeout(timeout_seconds):
                while not is_so():
                    problem = await self._wait_for_attempt()
                    if problem is not None and _is_permanent(problem):
                        raise problem
        except TimeoutError:
            problem = self._reflector.last_error
            why = f": {problem}" if problem is not None else ""
            raise ConnectionFailedError(f"{self._gvk} could not be listed within {timeout_seconds:g} s{why}") from None

    async def _wait_for_attempt(self) -> KonvergeError | None:
        """Wait until a list is in place and told, or the next attempt has failed; then its failure."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiting)
        try:
            await waiting
        finally:
            self._waiters.discard(waiting)
        return self._reflector.last_error

    def _wake_waiters(self) -> None:
        for waiting in self._waiters:
            if not waiting.done():
                waiting.set_result(None)

    def _publish_change(self, key: ObjectKey, change: StoreChange | None) -> None:
        """Tell a change at once, after what is still to be told of that object."""
        self._publish_pending(key)
        if change is not None:
            self._publish(self._gvk, change.old, change.new)

    def _publish_pending(self, key: ObjectKey) -> None:
        for change in self._unpublished.pop(key, ()):
            self._publish(self._gvk, change.old, change.new)

    async def _publish_changes(self, changes: Sequence[StoreChange]) -> None:
        if len(changes) <= _BLOCK_SIZE:
            for change in changes:
                self._publish(self._gvk, change.old, change.new)
        else:
            await self._publish_in_blocks(changes)
        if self._reflector.synced:
            self._is_first_list_published = True
            if self._waiters:
                self._wake_waiters()

    async def _publish_in_blocks(self, changes: Sequence[StoreChange]) -> None:
        """Tell the changes object by object, and let others have their turn between.

        Whoever writes one of the objects meanwhile has its changes told first (`_tell`).
        """
        for change in changes:
            self._unpublished.setdefault(_get_key(change), []).append(change)
        keys = list(self._unpublished)
        try:
            for start in range(0, len(keys), _BLOCK_SIZE):
                for key in keys[start : start + _BLOCK_SIZE]:
                    self._publish_pending(key)
                await self._clock.sleep(0)
        finally:
            # Cancelled, or called away to list again: what readers see already will not be found new by that list.
            for key in list(self._unpublished):
                self._publish_pending(key)

    def _wrap_unexpected_error(self, error: Exception) -> KonvergeError:
        """What nobody has foreseen, as a failure like others: logged as a whole once, and tried again."""
        found = KonvergeError(f"a mistake in following it: {format_error(error)}")
        if str(found) != str(self._reflector.last_error):
            _logger.error("%s: %s", self._gvk, found, exc_info=error)
        return found

    def _handle_failure(self, error: KonvergeError) -> None:
        was_healthy = self._reflector.last_error is None
        self._reflector.on_failure(error, self._clock.monotonic())
        if self._reflector.last_error is error:
            # The first of a row, and the others for who wants to know: an outage is one line a kind, not one a retry.
            level = logging.DEBUG if not was_healthy else logging.INFO if _is_transient(error) else logging.WARNING
            _logger.log(level, "%s: its changes do not arrive now: %s", self._gvk, format_error_with_request(error))
            self._wake_waiters()


def _get_key(change: StoreChange) -> ObjectKey:
    meta = change.new or change.old
    assert meta is not None, "a change has a state on one side"
    return meta.key


def _is_permanent(problem: KonvergeError) -> bool:
    """Tell whether whoever waits for the collection would wait in vain."""
    if isinstance(problem, ApiError):
        return problem.code in _FINAL_CODES
    return isinstance(problem, KindNotServedError | UntrustedServerError)


def _is_transient(problem: KonvergeError) -> bool:
    """Tell whether it is what a server says in its ordinary course: of a kind that was defined a moment ago."""
    return isinstance(problem, TooManyRequestsError) and "storage is (re)initializing" in str(problem)


@contextmanager
def _pause_gc() -> Iterator[None]:
    """Keep the garbage collector from walking the whole heap again and again while many objects are made at once."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
