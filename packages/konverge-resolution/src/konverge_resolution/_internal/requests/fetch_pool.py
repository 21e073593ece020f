"""Fetches of a process: tasks of their own, so that no reconcile and no worker waits for a remote.

A reconcile starts a fetch and returns. The end of the fetch requeues the request, and the next reconcile writes the
result. So the result is written with the write permit of that reconcile, and again after a failed write without another
fetch. The fetch of a deleted request ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from konverge._internal.kube import GroupVersionKind, ObjectKey
from konverge.clock import Clock
from konverge_resolution._internal.engine import ResolutionResult
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.requests.request_lifecycle import FetchPhase

__all__ = ["FetchOutcome", "FetchPool", "RequestId"]

_log = logging.getLogger("konverge.resolution")

# A result that is not written so long after its deadline belongs to another process, or its request is gone.
_RETENTION = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RequestId:
    """Unique identity of a request: a name can be used again."""

    gvk: GroupVersionKind
    key: ObjectKey
    uid: str


@dataclass(frozen=True, slots=True)
class FetchOutcome:
    """End of a fetch: the result or the error, and its start.

    Args:
        result: The result, or the error.
        started: The time when the engine received it.
    """

    result: ResolutionResult | ResolutionError
    started: datetime


@dataclass(slots=True)
class _PendingFetch:
    request: RequestId
    started: datetime
    deadline: datetime
    task: asyncio.Task[None] | None = None
    outcome: FetchOutcome | None = None


class FetchPool:
    """Running fetches, and results that are not written yet.

    Args:
        clock: The clock.
        requeue: Requeues a request.
        limit: Maximum number of fetches; further requests wait. Most fetches wait for a slot of their remote.
        namespace_limit: Maximum number of fetches of one namespace; its further requests wait for one of them to end.
        max_pending_bytes: Limit for content that is not written yet, for example because the API server is slow. Above
            it no fetch starts.
    """

    def __init__(
        self,
        clock: Clock,
        requeue: Callable[[RequestId], None],
        *,
        limit: int = 5000,
        namespace_limit: int = 1000,
        max_pending_bytes: int = 64 << 20,
    ) -> None:
        self._clock = clock
        self._requeue = requeue
        self._limit = limit
        self._namespace_limit = namespace_limit
        self._max_pending_bytes = max_pending_bytes
        self._pending_bytes = 0
        self._fetches: dict[str, _PendingFetch] = {}
        self._of_namespaces: Counter[str] = Counter()
        self._waiting: dict[str, dict[str, RequestId]] = {}
        self._namespaces: dict[str, str] = {}
        self._group: asyncio.TaskGroup | None = None

    @property
    def running(self) -> int:
        """The number of running fetches."""
        return sum(fetch.outcome is None for fetch in self._fetches.values())

    def has_slot(self, namespace: str) -> bool:
        """Tell whether a namespace may start another fetch."""
        is_full = len(self._fetches) >= self._limit or self._pending_bytes > self._max_pending_bytes
        return not is_full and self._of_namespaces[namespace] < self._namespace_limit

    def notify_when_free(self, request: RequestId) -> None:
        """Requeue a request when a slot is free, so that it need not poll."""
        namespace = request.key.namespace
        self._namespaces[request.uid] = namespace
        self._waiting.setdefault(namespace, {})[request.uid] = request

    @asynccontextmanager
    async def task_group(self) -> AsyncIterator[None]:
        """Run fetches within the block; at its end all running ones are cancelled and awaited."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                for fetch in self._fetches.values():
                    if fetch.task is not None:
                        fetch.task.cancel()

    def get_phase(self, uid: str) -> FetchPhase:
        """Return the phase of the fetch for a request."""
        fetch = self._fetches.get(uid)
        if fetch is None:
            return FetchPhase.NONE
        return FetchPhase.RUNNING if fetch.outcome is None else FetchPhase.ENDED

    def get_outcome(self, uid: str) -> FetchOutcome | None:
        """Return the outcome of the fetch for a request; None if there is none yet."""
        fetch = self._fetches.get(uid)
        return None if fetch is None else fetch.outcome

    def get_start_time(self, uid: str) -> datetime | None:
        """Return the start time of the fetch for a request; None without a fetch."""
        fetch = self._fetches.get(uid)
        return None if fetch is None else fetch.started

    def start(self, request: RequestId, deadline: datetime, work: Callable[[], Awaitable[ResolutionResult]]) -> None:
        """Start a fetch for a request that has none.

        Args:
            request: The request.
            deadline: The time by which it must end.
            work: The fetch; it raises only `ResolutionError`.
        """
        assert self._group is not None, "fetches are started while they are at work"
        fetch = self._fetches[request.uid] = _PendingFetch(request, self._clock.now(), deadline)
        self._of_namespaces[request.key.namespace] += 1
        # Not in the context of the reconcile that starts it, because the fetch outlives that.
        fetch.task = self._group.create_task(self._run(fetch, work), name=f"fetch for {request.key}", context=Context())

    def forget(self, uid: str) -> None:
        """Cancel the fetch of a finished or deleted request, and drop its result."""
        self._remove_waiter(uid)
        fetch = self._fetches.pop(uid, None)
        if fetch is None:
            return
        namespace = fetch.request.key.namespace
        self._of_namespaces[namespace] -= 1
        if not self._of_namespaces[namespace]:
            del self._of_namespaces[namespace]
        if fetch.outcome is None and fetch.task is not None:
            fetch.task.cancel()
        self._pending_bytes -= _compute_size(fetch.outcome)
        self._notify_waiters(at_most=1)

    def _remove_waiter(self, uid: str) -> None:
        namespace = self._namespaces.pop(uid, None)
        if namespace is not None:
            del self._waiting[namespace][uid]
            if not self._waiting[namespace]:
                del self._waiting[namespace]

    def _notify_waiters(self, *, at_most: int) -> None:
        """Requeue waiting requests that have a free slot; namespaces with the fewest fetches come first."""
        for namespace in sorted(self._waiting, key=self._of_namespaces.__getitem__):
            room = self._namespace_limit - self._of_namespaces[namespace] if self.has_slot(namespace) else 0
            for request in list(islice(self._waiting[namespace].values(), min(room, at_most))):
                at_most -= 1
                self._remove_waiter(request.uid)
                self._requeue(request)

    def prune(self, ours: Collection[tuple[GroupVersionKind, ObjectKey]]) -> None:
        """Forget fetches for requests of other processes, and results that were not written for a long time."""
        now = self._clock.now()
        for uid, fetch in list(self._fetches.items()):
            if now >= fetch.deadline + _RETENTION or (fetch.request.gvk, fetch.request.key) not in ours:
                self.forget(uid)
        # A requeued request may have ended without a fetch; its slot is free for others.
        self._notify_waiters(at_most=max(0, self._limit - len(self._fetches)))

    def list_requests(self) -> Iterable[RequestId]:
        """Return the requests with a fetch."""
        return [fetch.request for fetch in self._fetches.values()]

    async def _run(self, fetch: _PendingFetch, work: Callable[[], Awaitable[ResolutionResult]]) -> None:
        outcome: ResolutionResult | ResolutionError
        try:
            outcome = await work()
        except ResolutionError as error:
            outcome = error
        except Exception as error:  # noqa: BLE001  # nothing may end the other fetches
            # Only the type: the text of the exception can contain secrets.
            _log.error("a fetch for %s failed: %s", fetch.request.key, type(error).__name__)
            outcome = ResolutionError(Reason.INTERNAL, f"the fetch failed with {type(error).__name__}")
        fetch.outcome = FetchOutcome(outcome, fetch.started)
        if self._fetches.get(fetch.request.uid) is fetch:
            self._pending_bytes += _compute_size(fetch.outcome)
            self._requeue(fetch.request)


def _compute_size(outcome: FetchOutcome | None) -> int:
    if outcome is None or isinstance(outcome.result, ResolutionError):
        return 0
    return len(outcome.result.resolved.data)
