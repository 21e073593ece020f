"""The driver: wakes players, keeps their work queue and their timers, and retries what failed.

One task, one queue. A player is told of each change of the kinds that it watches and answers with keys; a key waits in
the queue at most once a player, in the order in which it came; a key that comes back while it is worked on is worked on
once more. Nothing polls: without changes and due timers the task sleeps, so a settled cluster stays as it is.
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
from konverge_cluster.embedded.controllers.cluster_view import ClusterChange, GroupKind
from konverge_cluster.embedded.controllers.controller_client import is_namespace_terminating_error
from konverge_cluster.embedded.webhooks.pending_calls import CallFunction, WebhookCallNeededError

__all__ = ["BuiltinController", "ControllerDriver"]

_log = logging.getLogger(__name__)

# So many keys are worked on before the other tasks of the loop get a turn.
_KEYS_A_TURN = 4
# Back-off after a failure, in seconds: doubled each time, with a fifth of jitter.
_FIRST_RETRY = 0.005
_LAST_RETRY = 60.0


class BuiltinController(Protocol):
    """One controller, played: decides for one key at a time and writes what it decides."""

    @property
    def name(self) -> str:
        """What it is called in the log."""

    @property
    def watches(self) -> frozenset[GroupKind] | None:
        """The kinds whose changes it is told of; None for all."""

    def keys_for(self, notice: ClusterChange) -> Iterable[Hashable]:
        """The keys to look at after that change. Only takes note: must not write."""

    def reconcile(self, key: Hashable) -> float | None:
        """Bring what the key stands for one step on; answer after how many seconds to look again, None for not at all.

        Raises:
            konverge.errors.KonvergeError: It did not work; it is tried again.
        """


class _Task(NamedTuple):
    controller: int
    key: Hashable


class ControllerDriver:
    """The queue and the clockwork of the players.

    Args:
        players: Who plays; on one change they are woken in this order.
        clock: Sleeps and tells the time.
        entropy: Spreads retries.
        caller: Calls webhooks; None when there are none.
    """

    def __init__(
        self, players: Sequence[BuiltinController], clock: Clock, entropy: Entropy, caller: CallFunction | None = None
    ) -> None:
        self._players = tuple(players)
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
        """Wake whom the change concerns."""
        audience = self._audience.get(notice.kind)
        if audience is None:
            audience = self._audience[notice.kind] = tuple(
                index
                for index, player in enumerate(self._players)
                if player.watches is None or notice.kind in player.watches
            )
        for index in audience:
            for key in self._players[index].keys_for(notice):
                self._add(_Task(index, key))

    def enqueue(self, player: BuiltinController, keys: Iterable[Hashable]) -> None:
        """Have the player look at these keys."""
        index = self._players.index(player)
        for key in keys:
            self._add(_Task(index, key))

    async def run(self) -> None:
        """Play until cancelled. A player that fails is logged and tried again; the others go on."""
        while True:
            self._enqueue_due()
            for _ in range(min(_KEYS_A_TURN, len(self._queue))):
                task = self._next()
                asked = self._reconcile(task)
                if asked is not None:
                    await self._finish(task, asked)
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
        """Have the player look at the key; what it could not finish is what a webhook has to be asked about."""
        player = self._players[task.controller]
        try:
            again = player.reconcile(task.key)
        except WebhookCallNeededError as asked:
            return asked
        except Exception as error:  # noqa: BLE001 - one player's mistake must not stop the cluster; it is logged
            self._log_failure(task, error)
        else:
            self._failures.pop(task, None)
            if again is None:
                self._due.pop(task, None)
            else:
                self._set_timer(task, again)
        return None

    async def _finish(self, task: _Task, asked: WebhookCallNeededError) -> None:
        """Finish a write about which a webhook is asked; the player then looks at what came of it."""
        if self._caller is None:
            self._log_failure(task, asked)
            return
        try:
            await asked.finish(self._caller)
        except Exception as error:  # noqa: BLE001 - as above
            self._log_failure(task, error)
        else:
            self._add(task)

    def _log_failure(self, task: _Task, error: Exception) -> None:
        player = self._players[task.controller]
        if isinstance(error, ConflictError | NotFoundError):
            # Somebody else was faster; what is there now decides.
            _log.debug("%s: %s: %s; looking again", player.name, task.key, _format_for_log(error))
        elif isinstance(error, KonvergeError):
            if is_namespace_terminating_error(error):
                return
            _log.warning("%s: %s: %s; it is tried again", player.name, task.key, _format_for_log(error))
        else:
            _log.error("%s: %s failed; it is tried again", player.name, task.key, exc_info=error)
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
            # A later answer for the same key replaces or cancels its timer.
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
    """An error for the log: what refuses a Pod may quote what it holds, which may have come from a Secret."""
    return f"{type(error).__name__} {error.code}" if isinstance(error, ApiError) else str(error)
