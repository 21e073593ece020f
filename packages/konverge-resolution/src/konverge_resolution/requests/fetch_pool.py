"""The fetches of a process: tasks of its own, so that no pass and no worker waits for a remote.

A pass starts one and returns; its end wakes the request, and the pass that follows writes what came. So everything is
written with the permit that the pass has, once, and again after a failure without asking the remote again. A request
that is gone ends its fetch.
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

from konverge.clock import Clock
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_resolution.engine import ResolutionResult
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.requests.request_lifecycle import FetchPhase

__all__ = ["FetchOutcome", "FetchPool", "RequestId"]

_log = logging.getLogger("konverge.resolution")

# So long after its deadline a result that nobody has written is somebody else's, or its request is gone.
_RETENTION = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RequestId:
    """One request for ever: a name can be born again."""

    gvk: GroupVersionKind
    key: ObjectKey
    uid: str


@dataclass(frozen=True, slots=True)
class FetchOutcome:
    """What a fetch came to.

    Args:
        result: The result, or why there is none.
        started: When it was handed to the engine.
        seconds: How long it took.
    """

    result: ResolutionResult | ResolutionError
    started: datetime
    seconds: float


@dataclass(slots=True)
class _PendingFetch:
    request: RequestId
    started: datetime
    deadline: datetime
    task: asyncio.Task[None] | None = None
    outcome: FetchOutcome | None = None


class FetchPool:
    """What is fetched, and what has come and is not written yet.

    Args:
        clock: The time.
        requeue: Asks for a pass over a request.
        limit: How many at once; further requests wait for their turn. Most of them wait for a place at their remote.
        namespace_limit: How many of these one namespace may have; its further requests wait until one of them ends.
        max_pending_bytes: How much content may wait to be written, when the API server is slow, before nothing more is
            started.
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
        """How many are under way."""
        return sum(fetch.outcome is None for fetch in self._fetches.values())

    def has_slot(self, namespace: str) -> bool:
        """Tell whether another one of a namespace may start."""
        is_full = len(self._fetches) >= self._limit or self._pending_bytes > self._max_pending_bytes
        return not is_full and self._of_namespaces[namespace] < self._namespace_limit

    def notify_when_free(self, request: RequestId) -> None:
        """Wake a request when there is room for it, so that nobody has to look again and again until then."""
        namespace = request.key.namespace
        self._namespaces[request.uid] = namespace
        self._waiting.setdefault(namespace, {})[request.uid] = request

    @asynccontextmanager
    async def task_group(self) -> AsyncIterator[None]:
        """Fetch within the block; at its end what is under way is cancelled, and gone when this returns."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                for fetch in self._fetches.values():
                    if fetch.task is not None:
                        fetch.task.cancel()

    def get_phase(self, uid: str) -> FetchPhase:
        """What is done for a request."""
        fetch = self._fetches.get(uid)
        if fetch is None:
            return FetchPhase.NONE
        return FetchPhase.RUNNING if fetch.outcome is None else FetchPhase.ENDED

    def get_outcome(self, uid: str) -> FetchOutcome | None:
        """What the fetch for a request came to; None as long as there is none, or it runs."""
        fetch = self._fetches.get(uid)
        return None if fetch is None else fetch.outcome

    def get_start_time(self, uid: str) -> datetime | None:
        """When the fetch for a request began."""
        fetch = self._fetches.get(uid)
        return None if fetch is None else fetch.started

    def start(self, request: RequestId, deadline: datetime, work: Callable[[], Awaitable[ResolutionResult]]) -> None:
        """Begin a fetch for a request that has none.

        Args:
            request: The request.
            deadline: Until when it has to end.
            work: Fetches; it raises nothing but `ResolutionError`.
        """
        assert self._group is not None, "fetches are started while they are at work"
        fetch = self._fetches[request.uid] = _PendingFetch(request, self._clock.now(), deadline)
        self._of_namespaces[request.key.namespace] += 1
        # Not in the context of the pass that happens to start it: it goes on after that has ended.
        fetch.task = self._group.create_task(self._run(fetch, work), name=f"fetch for {request.key}", context=Context())

    def forget(self, uid: str) -> None:
        """A request is finished or gone: cancel its fetch, if it runs, and drop what came of it."""
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
        """Wake some that wait and have room, those of namespaces with the fewest fetches first."""
        for namespace in sorted(self._waiting, key=self._of_namespaces.__getitem__):
            room = self._namespace_limit - self._of_namespaces[namespace] if self.has_slot(namespace) else 0
            for request in list(islice(self._waiting[namespace].values(), min(room, at_most))):
                at_most -= 1
                self._remove_waiter(request.uid)
                self._requeue(request)

    def prune(self, ours: Collection[tuple[GroupVersionKind, ObjectKey]]) -> None:
        """Forget what is not among this process's requests any more, and what nobody has written in a long time."""
        now = self._clock.now()
        for uid, fetch in list(self._fetches.items()):
            if now >= fetch.deadline + _RETENTION or (fetch.request.gvk, fetch.request.key) not in ours:
                self.forget(uid)
        # What was woken before may have ended without a fetch: the room that it was woken for is for others.
        self._notify_waiters(at_most=max(0, self._limit - len(self._fetches)))

    def list_requests(self) -> Iterable[RequestId]:
        """The requests that something is done for."""
        return [fetch.request for fetch in self._fetches.values()]

    async def _run(self, fetch: _PendingFetch, work: Callable[[], Awaitable[ResolutionResult]]) -> None:
        begun = self._clock.monotonic()
        answer: ResolutionResult | ResolutionError
        try:
            answer = await work()
        except ResolutionError as error:
            answer = error
        except Exception as error:  # noqa: BLE001  # nothing may end the other fetches
            # Told by type alone: a text can have what the resolver was given.
            _log.error("a fetch for %s failed: %s", fetch.request.key, type(error).__name__)
            answer = ResolutionError(Reason.INTERNAL, f"the fetch failed: {type(error).__name__}")
        fetch.outcome = FetchOutcome(answer, fetch.started, self._clock.monotonic() - begun)
        if self._fetches.get(fetch.request.uid) is fetch:
            self._pending_bytes += _compute_size(fetch.outcome)
            self._requeue(fetch.request)


def _compute_size(ended: FetchOutcome | None) -> int:
    return len(ended.result.resolved.data) if ended is not None and isinstance(ended.result, ResolutionResult) else 0
