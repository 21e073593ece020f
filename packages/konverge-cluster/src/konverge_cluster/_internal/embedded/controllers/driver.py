"""The driver: runs controllers with a work queue and timers, and retries failed keys.

There is one task and one queue. A controller receives each change of its watched kinds and returns keys. The queue
contains a key at most once for each controller, in the order of arrival. A key that returns during its reconcile is
reconciled once more. There is no polling: without changes and due timers the task sleeps, so a steady cluster does not
change.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, Protocol

from konverge.clock import Clock, Entropy
from konverge.errors import ApiError, ConflictError, KonvergeError, NotFoundError
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, GroupKind
from konverge_cluster._internal.embedded.controllers.controller_client import is_namespace_terminating_error
from konverge_cluster._internal.embedded.webhooks.pending_calls import CallFunction, WebhookCallNeededError

__all__ = ["BuiltinController", "ControllerDriver"]

_log = logging.getLogger(__name__)

# The number of keys after which other tasks of the loop can run.
_KEYS_A_TURN = 4
# Backoff after a failure, in seconds: doubled each time, with a jitter of one fifth.
_FIRST_RETRY = 0.005
_LAST_RETRY = 60.0


class BuiltinController(Protocol):
    """One simulated controller: it decides for one key at a time and writes the result."""

    @property
    def name(self) -> str:
        """The name of the controller for logs."""

    @property
    def watches(self) -> frozenset[GroupKind] | None:
        """The kinds whose changes the controller receives; None for all."""

    def keys_for(self, notice: ClusterChange) -> Iterable[Hashable]:
        """Return the keys that a change affects. This method must not write."""

    def reconcile(self, key: Hashable) -> float | None:
        """Perform the next step for a key; return the seconds until the next reconcile, or None.

        Raises:
            konverge.errors.KonvergeError: The step failed and is retried.
        """


class _Task(NamedTuple):
    controller: int
    key: Hashable


class ControllerDriver:
    """The work queue and the timers of the controllers.

    Args:
        controllers: The controllers; for one change they run in this order.
        clock: The clock for timers.
        entropy: The source of randomness for retry delays.
        caller: Calls webhooks; None if there are none.
    """

    def __init__(
        self,
        controllers: Sequence[BuiltinController],
        clock: Clock,
        entropy: Entropy,
        caller: CallFunction | None = None,
    ) -> None:
        self._controllers = tuple(controllers)
        self._clock = clock
        self._entropy = entropy
        self._caller = caller
        self._queue: deque[_Task] = deque()
        self._queued: set[_Task] = set()
        self._timers: list[tuple[float, int, _Task]] = []
        self._due: dict[_Task, float] = {}
        self._serial = itertools.count()
        self._failures: dict[_Task, int] = {}
        self._work = asyncio.Event()
        self._audience: dict[GroupKind, tuple[int, ...]] = {}

    def handle_change(self, notice: ClusterChange) -> None:
        """Enqueue the keys that a change affects."""
        audience = self._audience.get(notice.kind)
        if audience is None:
            audience = self._audience[notice.kind] = tuple(
                index
                for index, controller in enumerate(self._controllers)
                if controller.watches is None or notice.kind in controller.watches
            )
        for index in audience:
            for key in self._controllers[index].keys_for(notice):
                self._add(_Task(index, key))

    def enqueue(self, controller: BuiltinController, keys: Iterable[Hashable]) -> None:
        """Enqueue keys for a controller."""
        index = self._controllers.index(controller)
        for key in keys:
            self._add(_Task(index, key))

    async def run(self) -> None:
        """Reconcile keys until cancelled. The failure of a controller is logged and retried; the others continue."""
        while True:
            self._enqueue_due()
            for _ in range(min(_KEYS_A_TURN, len(self._queue))):
                task = self._next()
                call = self._reconcile(task)
                if call is not None:
                    await self._finish(task, call)
            if self._queue:
                await self._clock.sleep(0)
            else:
                await self._wait_for_work()

    def _add(self, task: _Task) -> None:
        if task not in self._queued:
            self._queued.add(task)
            self._queue.append(task)
            self._work.set()

    def _next(self) -> _Task:
        task = self._queue.popleft()
        self._queued.discard(task)
        return task

    def _reconcile(self, task: _Task) -> WebhookCallNeededError | None:
        """Reconcile one key; return the webhook call that it needs to finish, or None."""
        controller = self._controllers[task.controller]
        try:
            again = controller.reconcile(task.key)
        except WebhookCallNeededError as call:
            return call
        except Exception as error:  # noqa: BLE001 - an error of one controller must not stop the others; it is logged
            self._log_failure(task, error)
        else:
            self._failures.pop(task, None)
            if again is None:
                self._due.pop(task, None)
            else:
                self._set_timer(task, again)
        return None

    async def _finish(self, task: _Task, call: WebhookCallNeededError) -> None:
        """Finish a write after its webhook call; the controller then reconciles the key again."""
        if self._caller is None:
            self._log_failure(task, call)
            return
        try:
            await call.finish(self._caller)
        except Exception as error:  # noqa: BLE001 - as above
            self._log_failure(task, error)
        else:
            self._add(task)

    def _log_failure(self, task: _Task, error: Exception) -> None:
        controller = self._controllers[task.controller]
        if isinstance(error, ConflictError | NotFoundError):
            # A conflict: another client wrote first, and the next reconcile uses the stored object.
            _log.debug("%s: %s: %s; reconciling again", controller.name, task.key, _format_for_log(error))
        elif isinstance(error, KonvergeError):
            if is_namespace_terminating_error(error):
                return
            _log.warning("%s: %s: %s; retrying", controller.name, task.key, _format_for_log(error))
        else:
            _log.error("%s: %s failed; retrying", controller.name, task.key, exc_info=error)
        self._retry(task)

    def _retry(self, task: _Task) -> None:
        failures = self._failures[task] = self._failures.get(task, 0) + 1
        seconds = min(_LAST_RETRY, _FIRST_RETRY * 2 ** min(failures - 1, 30))
        self._set_timer(task, seconds * self._entropy.uniform(1.0, 1.2))

    def _set_timer(self, task: _Task, seconds: float) -> None:
        moment = self._clock.monotonic() + max(0.0, seconds)
        self._due[task] = moment
        heapq.heappush(self._timers, (moment, next(self._serial), task))

    def _enqueue_due(self) -> None:
        now = self._clock.monotonic()
        while self._timers and self._timers[0][0] <= now:
            moment, _, task = heapq.heappop(self._timers)
            # A later result for the same key replaces or cancels its timer.
            if self._due.get(task) == moment:
                del self._due[task]
                self._add(task)

    async def _wait_for_work(self) -> None:
        self._work.clear()
        pause = max(0.0, self._timers[0][0] - self._clock.monotonic()) if self._timers else None
        try:
            async with asyncio.timeout(pause):
                await self._work.wait()
        except TimeoutError:
            return


def _format_for_log(error: KonvergeError) -> str:
    """Format an error for the log: a rejection of a Pod can quote values that come from a Secret."""
    return f"{type(error).__name__} {error.code}" if isinstance(error, ApiError) else str(error)
