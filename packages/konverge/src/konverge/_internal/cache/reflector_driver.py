"""The driver of one cached collection: it performs the steps that its `Reflector` decides.

It never blocks the event loop for long: it decodes pages and reports many changes in blocks, and yields between them.
The garbage collector is off while a block is decoded; none of the new objects is garbage. Cached objects are not moved
out of its reach with `gc.freeze`: it does not traverse them anyway, so 10,000 Pods lengthen a full collection by only
4 ms. And a freeze by a library would keep all other garbage of that moment forever.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from konverge._internal.cache.informer_statistics import InformerStatistics
from konverge._internal.cache.options import CacheOptions
from konverge._internal.cache.own_writes import OwnWrites
from konverge._internal.cache.reflector import Reflector
from konverge._internal.cache.reflector_steps import OpenWatch, ReadPage, WaitStep
from konverge._internal.cache.server_state import ServerState
from konverge._internal.cache.store import Store, StoreChange
from konverge._internal.client.client import Client
from konverge._internal.client.watch import Watch
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, format_identity
from konverge._internal.kube.metadata import ObjectMeta, parse_revision
from konverge._internal.kube.selectors import LabelSelector
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

__all__ = ["ChangeCallback", "ReflectorDriver"]

_logger = logging.getLogger("konverge.cache")

# Errors that waiting does not change. Others are temporary: too many requests, an expired list, internal errors.
_FINAL_CODES = frozenset({400, 401, 403, 404, 405, 406, 422})

# The number of objects to decode, or of changes to report, at a time: it takes a few milliseconds.
_BLOCK_SIZE = 250

# A write of unknown outcome stays in doubt for this time: far longer than a request takes or a watch lags.
_UNCERTAIN_SECONDS = 300.0

# The attempts to list a few objects before the whole kind is listed, and the time limit for that.
_FILL_ATTEMPTS = 3
_FILL_SECONDS = 30.0

ChangeCallback: TypeAlias = Callable[[GroupVersionKind, ObjectMeta | None, ObjectMeta | None], None]
"""A callback for changes: the kind, the metadata before (None: added) and after (None: deleted). It must not raise."""


class ReflectorDriver:
    """The driver that keeps one collection of the server in memory.

    Args:
        client: The client that lists and watches.
        gvk: The kind.
        namespace: The namespace; empty for all.
        options: The objects to cache, and how much of each.
        store: The store of the cached objects.
        publish: The callback for each change that readers see, own writes included; changes of one object come in
            order.
        statistics: Counters of the informer.
        server: The state that all collections of the server share.
        clock: The source of time.
        entropy: The source of jitter.
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
        # Changes of a large list by object: readers see them already, but they are not reported yet.
        self._unpublished: dict[ObjectKey, list[StoreChange]] = {}
        # Writes of unknown outcome: a number for each, and the time.
        self._uncertain: dict[ObjectKey, tuple[int, float]] = {}
        self._last_uncertain_number = 0
        self._own_writes = OwnWrites()
        # The timeout that ends the open watch if another step is due.
        self._watch_timeout: asyncio.Timeout | None = None
        self._wakeup = asyncio.Event()
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def store(self) -> Store:
        """The store of the cached objects."""
        return self._reflector.store

    @property
    def synced(self) -> bool:
        """True if reads succeed: the first list is complete and reported, and the kind is still served."""
        return self._is_first_list_published and self._reflector.synced

    @property
    def last_error(self) -> KonvergeError | None:
        """The error that keeps changes from arriving now; None while they arrive."""
        return self._reflector.last_error

    @property
    def age_seconds(self) -> float | None:
        """The seconds since the server last proved that the cache is up to date; None before the first list."""
        confirmed_at = self._reflector.confirmed_at
        return None if confirmed_at is None else self._clock.monotonic() - confirmed_at

    @property
    def list_age_seconds(self) -> float | None:
        """The seconds since the last whole list was requested; None before the first."""
        listed_at = self._reflector.listed_at
        return None if listed_at is None else self._clock.monotonic() - listed_at

    @property
    def own_writes(self) -> OwnWrites:
        """The own writes that the watch has not reported yet."""
        listed_at = self._reflector.listed_at
        if listed_at is not None:
            self._own_writes.confirm(parse_revision(self.store.resource_version), listed_at)
        return self._own_writes

    async def run(self) -> None:
        """Keep the collection up to date until cancelled; retry failures forever with exponential backoff."""
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
                except Exception as error:  # noqa: BLE001  # a bug here must not end the watch forever
                    self._handle_failure(self._wrap_unexpected_error(error))
        finally:
            unsubscribe()

    async def wait_until_synced(self, timeout_seconds: float) -> None:
        """Wait until reads succeed.

        Raises:
            konverge.errors.KindNotServedError: The server does not serve the kind, by a new response.
            konverge.errors.ApiError: The server rejects the list, and waiting would not change that.
            konverge.errors.ConnectionFailedError: The deadline has passed, or the server cannot be trusted.
        """
        await self._wait_for(lambda: self.synced, timeout_seconds)

    def widen(self) -> int:
        """Relist if any object was dropped: the store now keeps more.

        Returns:
            The number of the list to pass to `wait_for_list`.
        """
        number = self._reflector.widen()
        self._interrupt_watch()
        return number

    def _interrupt_watch(self) -> None:
        """Leave the open watch if the reflector requires it."""
        interruption = self._watch_timeout
        # A timeout that is expiring cannot be rescheduled, and the driver is leaving the watch already.
        if self._reflector.should_leave_watch and interruption is not None and not interruption.expired():
            interruption.reschedule(asyncio.get_running_loop().time())

    def _on_server_change(self) -> None:
        """Wake the driver: a change of the server's state may change the next step."""
        self._interrupt_watch()
        self._wakeup.set()

    async def wait_for_list(self, number: int, timeout_seconds: float) -> None:
        """Wait until the list of that number is in place and its changes are reported.

        It raises the same errors as `wait_until_synced`.
        """
        await self._wait_for(lambda: self._reflector.lists_done >= number and not self._unpublished, timeout_seconds)

    async def load_dropped(self, namespace: str, labels: LabelSelector) -> None:
        """Read and cache the matching objects that were dropped: the store now keeps them."""
        for _ in range(_FILL_ATTEMPTS):
            if not self.store.dropped:
                return
            object_list = await self._client.list(self._gvk, namespace=namespace, label_selector=str(labels))
            if parse_revision(object_list.resource_version) < parse_revision(self.store.resource_version):
                continue  # the watch was faster: it may have reported a newer state, which was dropped
            for obj in object_list.items:
                self.store.record_read(obj)
            return
        await self.wait_for_list(self.widen(), _FILL_SECONDS)

    def evict_rejected(self) -> None:
        """Drop the cached objects that the store's filter `keep` now rejects."""
        self._reflector.evict_rejected()

    async def read(self, key: ObjectKey) -> Object:
        """Return one object, which the caller may change: from memory, or from the server if memory is incomplete.

        Raises:
            konverge.errors.NotFoundError: The object does not exist.
        """
        if key in self._uncertain:
            return await self._read_uncertain(key)
        store = self.store
        obj = store.get(key)
        if obj is None and store.is_dropped(key):
            response = await self._client.get(self._gvk, key, live=True)
            store.record_read(response)
            obj = store.get(key) or store.projection.project_object(response)
        if obj is None:
            details = {"kind": self._gvk.kind, "name": key.name}
            raise NotFoundError(f"{format_identity(self._gvk, key)} not found", details=details)
        return obj

    def record_write(self, obj: Mapping[str, Any]) -> None:
        """Record the response to an own write."""
        key = ObjectKey.of(obj)
        self._uncertain.pop(key, None)
        change = self.store.record_write(obj)
        if change is not None:
            self.own_writes.add(parse_revision(obj["metadata"]["resourceVersion"]), self._clock.monotonic())
        self._publish_change(key, change)

    def record_delete(self, key: ObjectKey, uid: str) -> None:
        """Record an own delete after which no finalizer is left."""
        self._uncertain.pop(key, None)
        self._publish_change(key, self.store.record_delete(key, uid, self._clock.monotonic()))

    def mark_uncertain(self, key: ObjectKey) -> None:
        """Record that the result of an own write is unknown: the next read goes to the server."""
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
            response = await self._client.get(self._gvk, key, live=True)
        except NotFoundError:
            if key not in store:  # otherwise the next read would return a deleted object
                self._clear_uncertain(key, doubt)
            raise
        self._clear_uncertain(key, doubt)
        self._publish_change(key, store.record_write(response))
        return store.get(key) or store.projection.project_object(response)

    def _clear_uncertain(self, key: ObjectKey, doubt: tuple[int, float]) -> None:
        if self._uncertain.get(key) == doubt:  # otherwise the response to another write was lost meanwhile
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
        """Check that the server still has the history that it had at the last watch."""
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
            _logger.debug("%s: cannot compare the server's history with the cache: %s", self._gvk, error)
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

    async def _wait_for(self, is_fulfilled: Callable[[], bool], timeout_seconds: float) -> None:
        if is_fulfilled():
            return
        self._reflector.expedite(self._clock.monotonic())
        self._wakeup.set()
        try:
            async with asyncio.timeout(timeout_seconds):
                while not is_fulfilled():
                    error = await self._wait_for_attempt()
                    if error is not None and _is_permanent(error):
                        raise error
        except TimeoutError:
            error = self._reflector.last_error
            reason = f": {error}" if error is not None else ""
            raise ConnectionFailedError(
                f"{self._gvk}: the list failed: expected it within {timeout_seconds:g} s{reason}"
            ) from None

    async def _wait_for_attempt(self) -> KonvergeError | None:
        """Wait until a list is in place and reported, or the next attempt failed; return the error."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
        return self._reflector.last_error

    def _wake_waiters(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _publish_change(self, key: ObjectKey, change: StoreChange | None) -> None:
        """Report a change at once, after the unreported changes of that object."""
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
        """Report the changes object by object, and yield to the event loop between blocks.

        An own write of one of the objects meanwhile reports its changes first (`_publish_change`).
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
            # After a cancellation or an interruption, a new list would not report what readers see already.
            for key in list(self._unpublished):
                self._publish_pending(key)

    def _wrap_unexpected_error(self, error: Exception) -> KonvergeError:
        """Wrap an unexpected error as a failure that is retried; log it once with its traceback."""
        failure = KonvergeError(f"unexpected error in list or watch: {format_error(error)}")
        if str(failure) != str(self._reflector.last_error):
            _logger.error("%s: %s", self._gvk, failure, exc_info=error)
        return failure

    def _handle_failure(self, error: KonvergeError) -> None:
        was_healthy = self._reflector.last_error is None
        self._reflector.on_failure(error, self._clock.monotonic())
        if self._reflector.last_error is error:
            # Later failures in a row are logged at debug level: an outage is one line per kind, not one per retry.
            level = logging.DEBUG if not was_healthy else logging.INFO if _is_transient(error) else logging.WARNING
            _logger.log(
                level, "%s: list or watch failed (retried with backoff): %s",
                self._gvk, format_error_with_request(error),
            )  # fmt: skip
            self._wake_waiters()


def _get_key(change: StoreChange) -> ObjectKey:
    meta = change.new or change.old
    assert meta is not None, "a change has a state before or after"
    return meta.key


def _is_permanent(error: KonvergeError) -> bool:
    """Return True if waiting for the collection is useless."""
    if isinstance(error, ApiError):
        return error.code in _FINAL_CODES
    return isinstance(error, KindNotServedError | UntrustedServerError)


def _is_transient(error: KonvergeError) -> bool:
    """Return True for a response that is normal for a kind whose definition was created a moment ago."""
    return isinstance(error, TooManyRequestsError) and "storage is (re)initializing" in str(error)


@contextmanager
def _pause_gc() -> Iterator[None]:
    """Keep the garbage collector from traversing the whole heap repeatedly while many objects are created at once."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
