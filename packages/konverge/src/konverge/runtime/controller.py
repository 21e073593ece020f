"""A controller: takes keys from its queue and runs one pass for each, several at once.

A pass that fails is logged once and comes again after the key's back-off; one that takes too long is cancelled and
counts as failed; nothing that a pass does ends the controller or holds up another key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeAlias

from konverge.client.retries import Backoff
from konverge.clock import Clock, Entropy
from konverge.errors import (
    ApiError,
    ConnectionFailedError,
    KindNotServedError,
    KonvergeError,
    NoPermitError,
    TerminalError,
    format_error,
    iter_causes,
)
from konverge.kube import ObjectKey
from konverge.runtime.breaker import Breaker, BreakerOptions
from konverge.runtime.controller_observer import ControllerObserver, FailureReporter, ReconcileOutcome, ReconcileTracer
from konverge.runtime.queue import Queue
from konverge.runtime.reconciliation import Reconciliation, current_reconciliation

__all__ = [
    "DEFAULT_TIMEOUT",
    "DEFAULT_WORKERS",
    "Controller",
    "PartialFailureError",
    "Reconcile",
    "ReconcileTimeoutError",
    "Result",
]

_log = logging.getLogger("konverge.runtime")

DEFAULT_WORKERS = 10
"""How many objects of a kind are reconciled at once.

A pass mostly waits for the API server, so one worker would leave both idle; ten keep a server on the same machine busy,
and stay far below the share of requests that its priority and fairness gives to one client.
"""

DEFAULT_TIMEOUT = timedelta(minutes=2)
"""How long one pass may take: several requests at their own deadline of half a minute, and still an end to a hang."""


_POLL_INTERVAL = timedelta(seconds=0.1)


@dataclass(frozen=True, slots=True)
class Result:
    """What a pass that succeeded asks for.

    Args:
        requeue_after: Another pass after so long, even if nothing changes; None waits for a change.
        priority: Where that pass goes in the line, before those with lower ones; changes come with 0, owners that were
            there when the operator started with -100.

    Raises:
        TypeError: An argument is of another type.
        ValueError: The time is negative.
    """

    requeue_after: timedelta | None = None
    priority: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.requeue_after, timedelta | None):
            raise TypeError(f"requeue_after: expected a timedelta or None, found {type(self.requeue_after).__name__}")
        if self.requeue_after is not None and self.requeue_after < timedelta(0):
            raise ValueError(f"requeue_after: expected a time from now on, found {self.requeue_after}")
        if type(self.priority) is not int:
            raise TypeError(f"priority: expected an int, found {type(self.priority).__name__}")


class PartialFailureError(KonvergeError):
    """A pass failed, and a part of it that did not fail asks for another one at some time.

    Args:
        failure: What it failed with.
        requeue_after: Another pass after so long, whatever becomes of the failure.
    """

    def __init__(self, failure: Exception, requeue_after: timedelta) -> None:
        super().__init__(format_error(failure))
        self.failure = failure
        self.requeue_after = requeue_after


class ReconcileTimeoutError(KonvergeError):
    """A pass was cancelled because it took too long."""


Reconcile: TypeAlias = Callable[[ObjectKey], Awaitable[Result | None]]


class Controller:
    """Reconciles the keys of one kind.

    Args:
        name: What the controller is called in logs.
        reconcile: One pass over one key. Returning is success; `konverge.errors.TerminalError` is not tried again
            before the next change; any other exception is. A `PartialFailureError` counts as the failure in it.
        clock: The time.
        entropy: Draws identifiers and jitter.
        workers: How many keys at once.
        timeout: How long a pass may take before it is cancelled.
        backoff: How long a key waits after a failure; 5 ms, doubling to 1000 s, when not given. What the cluster
            refused is tried again every 30 s at least (`konverge.runtime.queue.Queue.failed`).
        breaker: When a key whose passes never come to rest is slowed down.
        observer: Hears what the controller does.
        reporter: Reports which objects fail; None reports nothing.
        tracer: Wraps each pass in a span.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        clock: Clock,
        entropy: Entropy,
        workers: int = DEFAULT_WORKERS,
        timeout: timedelta = DEFAULT_TIMEOUT,
        backoff: Backoff | None = None,
        breaker: BreakerOptions | None = None,
        observer: ControllerObserver | None = None,
        reporter: FailureReporter | None = None,
        tracer: ReconcileTracer | None = None,
    ) -> None:
        self.name = name
        self.workers = workers
        self.queue: Queue[ObjectKey] = Queue(entropy, backoff=backoff)
        self._reconcile = reconcile
        self._clock = clock
        self._entropy = entropy
        self._breaker: Breaker[ObjectKey] = Breaker(breaker)
        self._observer = observer
        self._reporter = reporter
        self._reported: set[ObjectKey] = set()
        self._tracer = tracer
        # What last called for each key that waits; a key that only its own timer or back-off calls for has none.
        self._sources: dict[ObjectKey, str] = {}
        self._started_at: dict[ObjectKey, float] = {}
        self._tasks: dict[ObjectKey, asyncio.Task[None]] = {}
        self._abandoned: set[ObjectKey] = set()
        self._timeout_seconds = timeout.total_seconds()
        self._stopping = False
        self._changed = asyncio.Event()
        self._idle_waiters: list[asyncio.Future[None]] = []

    def enqueue(
        self, key: ObjectKey, *, priority: int = 0, reason: str = "", is_edit: bool = False, is_own: bool = False
    ) -> None:
        """Ask for a pass over the key as soon as a worker is free; for use in the loop that runs the controller.

        A back-off that the key is in starts from the beginning again, unless the key's own pass has made the change.

        Args:
            key: The object.
            priority: Higher goes first.
            reason: Why, for the key's story, and to name it when there is no end of it.
            is_edit: Whether something else is wanted of the object than before. While its pass is under way that counts
                as the pass's own doing: an answer to a write comes before the pass ends, and so does what a faster
                watch tells of it.
            is_own: Whether a pass over the key itself has made the change.
        """
        now = self._clock.monotonic()
        self._sources[key] = reason
        if not is_own:
            self.queue.reset_backoff(key, now)
        seconds = self._breaker.compute_delay(key, now, is_edit=is_edit and key not in self._started_at)
        self._add(key, now, priority=priority, not_before=now + seconds, reason=reason)

    def list_run_seconds(self) -> dict[ObjectKey, float]:
        """How long each pass that is under way has taken so far."""
        now = self._clock.monotonic()
        return {key: now - started for key, started in self._started_at.items()}

    async def wait_until_idle(self, keys: Callable[[ObjectKey], bool]) -> None:
        """Wait until no pass over such a key is under way; whether another one starts is the caller's to prevent."""
        while any(keys(key) for key in self._started_at):
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(ended)
            await ended

    def abandon(self, keys: Callable[[ObjectKey], bool]) -> None:
        """Cancel the passes over such keys that are under way; they are not tried again before something changes."""
        for key in [key for key in self._tasks if keys(key) and key not in self._abandoned]:
            self._abandoned.add(key)
            self._tasks[key].cancel()

    def reset_backoff(self, key: ObjectKey) -> None:
        """Forget how often the key was reconciled: what follows is another story."""
        self._breaker.forget(key)

    def stop(self) -> None:
        """Start no further pass; `run` returns when those under way have ended."""
        self._stopping = True
        self._changed.set()

    async def run(self) -> None:
        """Work until `stop`. Cancelling it cancels the passes under way and waits until they have let go."""
        async with asyncio.TaskGroup() as passes:
            while not self._stopping:
                self._changed.clear()
                self._start_due(passes)
                is_full = self.queue.running >= self.workers
                seconds = None if is_full else self.queue.compute_wait_seconds(self._clock.monotonic())
                try:
                    async with asyncio.timeout(seconds):
                        await self._changed.wait()
                except TimeoutError:
                    continue
                except asyncio.CancelledError:
                    self._stopping = True
                    raise

    def _start_due(self, passes: asyncio.TaskGroup) -> None:
        while self.queue.running < self.workers:
            key = self.queue.take(self._clock.monotonic())
            if key is None:
                return
            task = passes.create_task(self._run_reconciliation(key), name=f"reconcile {self.name} {key}")
            self._tasks[key] = task
            task.add_done_callback(partial(self._release_key, key))

    def _release_key(self, key: ObjectKey, task: asyncio.Task[None]) -> None:
        """A task that was cancelled before its first step has never told the queue that it is over."""
        if self._tasks.get(key) is task:
            del self._tasks[key]
            self._abandoned.discard(key)
            self.queue.mark_done(key, self._clock.monotonic())
            self._changed.set()

    async def _run_reconciliation(self, key: ObjectKey) -> None:
        started = self._begin_reconciliation(key)
        try:
            outcome = await self._reconcile_key(key)
        finally:
            del self._started_at[key]
            self._tasks.pop(key, None)
            self._abandoned.discard(key)
            for ended in self._idle_waiters:
                if not ended.done():
                    ended.set_result(None)
            self._idle_waiters.clear()
        if self._observer is not None:
            self._observer.on_finish(outcome, seconds=self._clock.monotonic() - started)
        self._changed.set()

    async def _reconcile_key(self, key: ObjectKey) -> ReconcileOutcome:
        """Run the pass and tell the queue how it ended, whatever an author's code raises."""
        try:
            result = await self._reconcile_with_timeout(key)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if key in self._abandoned and task is not None and not task.uncancel():
                self.queue.mark_done(key, self._clock.monotonic())
                return ReconcileOutcome.ABANDONED
            if self._stopping:
                raise
            # Its own code has cancelled the task. Passed on, this would leave the key running forever.
            return self._handle_failure(key, KonvergeError("the reconcile cancelled its own task"))
        except KeyboardInterrupt:
            raise
        except PartialFailureError as error:
            self._requeue(key, error.requeue_after, 0)
            return self._handle_failure(key, error.failure)
        except BaseException as error:  # noqa: BLE001  # also SystemExit and groups of what is no Exception
            return self._handle_failure(key, error)
        if key in self._reported:
            self._reported.remove(key)
            if self._reporter is not None:
                self._reporter.report_recovery(key)
        asks_for_another = result is not None and result.requeue_after is not None
        if result is not None and result.requeue_after is not None:
            self._requeue(key, result.requeue_after, result.priority)
        self.queue.mark_done(key, self._clock.monotonic())
        return ReconcileOutcome.REQUEUE_AFTER if asks_for_another else ReconcileOutcome.SUCCESS

    def _begin_reconciliation(self, key: ObjectKey) -> float:
        now = self._started_at[key] = self._clock.monotonic()
        source = self._sources.pop(key, None)
        # The task has a context of its own.
        current_reconciliation.set(Reconciliation(self.name, key, self._entropy.uid(), source or "a timer of its own"))
        if self._observer is not None:
            self._observer.on_start(waited_seconds=self.queue.get_queue_seconds(key))
            if source is not None:
                self._observer.on_event_latency(seconds=now - self.queue.get_addition_time(key))
        opening = None if source is None else self._breaker.record_start(key, now, source)
        if opening is not None:
            _log.warning(
                "%s %s: %d reconciles in %.3g s without coming to rest, %d of them because: %s; "
                "it gets one now and then until nothing calls for it for a while",
                self.name, key, opening.passes, opening.seconds, opening.share, opening.source,
                extra=_get_log_fields(),
            )  # fmt: skip
            if self._observer is not None:
                self._observer.on_breaker_open(key, opening.source)
        return now

    def _add(self, key: ObjectKey, now: float, *, priority: int, not_before: float, reason: str) -> None:
        is_new = self.queue.add(key, now, priority=priority, not_before=not_before, reason=reason)
        if is_new and self._observer is not None:
            self._observer.on_add(priority=priority)
        self._changed.set()

    def _requeue(self, key: ObjectKey, after: timedelta, priority: int) -> None:
        now = self._clock.monotonic()
        seconds = after.total_seconds()
        if after < _POLL_INTERVAL:
            # That is no pace that anybody chose: a loop of it is the breaker's.
            self._sources.setdefault(key, f"its own requeue_after of {seconds:g} s")
            seconds = max(seconds, self._breaker.compute_delay(key, now))
        self._add(key, now, priority=priority, not_before=now + seconds, reason="requeue_after")

    async def _reconcile_with_timeout(self, key: ObjectKey) -> Result | None:
        deadline = asyncio.timeout(self._timeout_seconds)
        try:
            async with deadline:
                if self._tracer is None:
                    return _check_result(await self._reconcile(key))
                running = current_reconciliation.get()
                with self._tracer.start_span(self.name, key, "" if running is None else running.reconcile_id):
                    return _check_result(await self._reconcile(key))
        except TimeoutError:
            if deadline.expired():
                raise ReconcileTimeoutError(f"the reconcile took longer than {self._timeout_seconds:g} s") from None
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Nobody cancelled this pass: something that it awaited was cancelled. Passed on, this would end the task
            # unseen and leave the key running forever.
            raise KonvergeError("the reconcile awaited something that was cancelled") from error

    def _handle_failure(self, key: ObjectKey, error: BaseException) -> ReconcileOutcome:
        fields = _get_log_fields()
        if _lacks_permit(error):
            # Whoever writes for the key now sees to it.
            self.queue.mark_done(key, self._clock.monotonic())
            _log.info("%s %s: not finished: %s", self.name, key, format_error(error), extra=fields)
            return ReconcileOutcome.ABANDONED
        trace = error if _is_author_error(error) else None
        now = self._clock.monotonic()
        if _is_terminal(error):
            self.queue.mark_done(key, now)
            _log.error(
                "%s %s: reconcile failed, not tried again before a change: %s",
                self.name, key, format_error(error), exc_info=trace, extra=fields,
            )  # fmt: skip
            self._report_failure(key, error, 1)
            return ReconcileOutcome.TERMINAL
        seconds = self.queue.mark_failed(key, now, reason=type(error).__name__, is_refused=_is_cluster_error(error))
        times = self.queue.count_failures(key)
        _log.warning(
            "%s %s: reconcile failed (in a row: %d), again in %.3g s: %s",
            self.name, key, times, seconds, format_error(error), exc_info=trace if times == 1 else None, extra=fields,
        )  # fmt: skip
        self._report_failure(key, error, times)
        if self._observer is not None:
            self._observer.on_retry()
        return ReconcileOutcome.TIMEOUT if isinstance(error, ReconcileTimeoutError) else ReconcileOutcome.ERROR

    def _report_failure(self, key: ObjectKey, error: BaseException, times: int) -> None:
        if self._reporter is not None and self._reporter.report_failure(key, error, times):
            self._reported.add(key)


def _check_result(result: object) -> Result | None:
    """Refuse what is no result here, where it is the pass's failure."""
    if result is None or isinstance(result, Result):
        return result
    raise TypeError(f"the reconcile returned a {type(result).__name__}: expected None or a konverge.Result")


def _get_log_fields() -> dict[str, str]:
    running = current_reconciliation.get()
    return {} if running is None else running.log_fields


def _is_author_error(error: BaseException) -> bool:
    """Tell whether a traceback helps: konverge's own errors say what happened, and so do those of the cluster."""
    for cause in iter_causes(error):
        if isinstance(cause, BaseExceptionGroup):
            return any(_is_author_error(single) for single in cause.exceptions)
        if not isinstance(cause, KonvergeError):
            return True
        if isinstance(cause, ApiError | ConnectionFailedError):
            return False
    return False


def _lacks_permit(error: BaseException) -> bool:
    """Tell whether the pass ended because the right to write was lost in the middle of it."""
    if isinstance(error, BaseExceptionGroup):
        return any(_lacks_permit(single) for single in error.exceptions)
    return any(isinstance(cause, NoPermitError) for cause in iter_causes(error))


def _is_cluster_error(error: BaseException) -> bool:
    """Tell whether the cluster refused something, or did not answer: no event tells when that is over."""
    if isinstance(error, BaseExceptionGroup):
        return any(_is_cluster_error(single) for single in error.exceptions)
    return any(isinstance(cause, ApiError | ConnectionFailedError | KindNotServedError) for cause in iter_causes(error))


def _is_terminal(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_terminal(single) for single in error.exceptions)
    return isinstance(error, TerminalError)
