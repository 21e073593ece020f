"""A controller: takes keys from its queue and runs one reconcile for each key, several keys concurrently.

A reconcile that fails is logged once and retried after the key's backoff. A reconcile that exceeds its time limit is
cancelled and counts as failed. No reconcile can end the controller or delay another key.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeAlias

from konverge._internal.backoff import Backoff
from konverge._internal.kube import ObjectKey
from konverge._internal.runtime.breaker import Breaker, BreakerOptions
from konverge._internal.runtime.controller_observer import (
    ControllerObserver,
    FailureReporter,
    ReconcileOutcome,
    ReconcileTracer,
)
from konverge._internal.runtime.queue import Queue
from konverge._internal.runtime.reconcile_failures import (
    ReconcileTimeoutError,
    classify_failure,
    explain_cancellation,
    is_author_error,
    is_cluster_error,
)
from konverge._internal.runtime.reconciliation import Reconciliation, current_reconciliation
from konverge.clock import Clock, Entropy
from konverge.errors import KonvergeError, format_error

__all__ = [
    "DEFAULT_TIMEOUT",
    "DEFAULT_WORKERS",
    "Controller",
    "PartialFailureError",
    "Reconcile",
    "Result",
]

_log = logging.getLogger("konverge.runtime")

DEFAULT_WORKERS = 10
"""Number of objects of one kind that a controller reconciles concurrently.

A reconcile mostly waits for the API server, so one worker leaves both idle. Ten workers keep a server on the same
machine busy, and stay far below the share of requests that API Priority and Fairness gives to one client.
"""

DEFAULT_TIMEOUT = timedelta(minutes=2)
"""Time limit of one reconcile: enough for several requests at their own limit of 30 s, and an end to a hang."""

# Interval of the cancellations of an abandoned reconcile that does not end; the second one is reported.
_CANCELLATION_SECONDS = 10.0
_REPORTED_CANCELLATION = 2

# A requeue_after below this is a loop, not an interval for polling.
_POLL_INTERVAL = timedelta(seconds=0.1)


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a successful reconcile.

    Args:
        requeue_after: Time until the next reconcile, even if nothing changes; None waits for a change.
        priority: Priority of that reconcile in the queue; a higher one goes first. Changes have priority 0, owners
            that existed when the operator started have -100.

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
            raise ValueError(f"requeue_after: expected zero or a positive time, found {self.requeue_after}")
        if type(self.priority) is not int:
            raise TypeError(f"priority: expected an int, found {type(self.priority).__name__}")


class PartialFailureError(KonvergeError):
    """A reconcile failed, and a part of it that succeeded requests another reconcile.

    Args:
        failure: The exception of the failed part.
        requeue_after: Time until the next reconcile, independent of the backoff after the failure.
    """

    def __init__(self, failure: Exception, requeue_after: timedelta) -> None:
        super().__init__(format_error(failure))
        self.failure = failure
        self.requeue_after = requeue_after


Reconcile: TypeAlias = Callable[[ObjectKey], Awaitable[Result | None]]


class Controller:
    """Worker loop that reconciles the keys of one kind.

    Args:
        name: Name of the controller in logs.
        reconcile: Reconciles one key. A return is success. A `konverge.errors.TerminalError` is not retried before the
            next change; any other exception is retried. A `PartialFailureError` counts as the failure that it wraps.
        clock: Source of time.
        entropy: Source of identifiers and jitter.
        workers: Number of keys that are reconciled concurrently.
        timeout: Time limit of one reconcile; a longer one is cancelled.
        backoff: Delay of a key after a failure (default: 5 ms, doubling up to 1000 s). A key that the cluster refused
            is retried at least every 30 s (`runtime.queue.Queue.mark_failed`).
        breaker: Limits for a key whose reconciles never reach a steady state.
        observer: Receives the controller's metrics; None records nothing.
        reporter: Reports objects whose reconciles fail; None reports nothing.
        tracer: Wraps each reconcile in a span.
        redact: Returns a text without values of Secrets, for errors of author code in the log.
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
        redact: Callable[[str], str] = str,
    ) -> None:
        self.name = name
        self.workers = workers
        self.queue: Queue[ObjectKey] = Queue(entropy, backoff=backoff, group=lambda key: key.namespace)
        self._reconcile = reconcile
        self._clock = clock
        self._entropy = entropy
        self._breaker: Breaker[ObjectKey] = Breaker(breaker)
        self._observer = observer
        self._reporter = reporter
        self._reported: set[ObjectKey] = set()
        self._tracer = tracer
        self._redact = redact
        # The latest event that requested each waiting key. A key that waits only for its timer or backoff has none.
        self._sources: dict[ObjectKey, str] = {}
        self._started_at: dict[ObjectKey, float] = {}
        self._tasks: dict[ObjectKey, asyncio.Task[None]] = {}
        self._abandoned: dict[ObjectKey, int] = {}  # with the number of cancellations
        self._timeout_seconds = timeout.total_seconds()
        self._stopping = False
        self._changed = asyncio.Event()
        self._idle_waiters: list[asyncio.Future[None]] = []

    def enqueue(
        self,
        key: ObjectKey,
        *,
        priority: int = 0,
        reason: str = "",
        is_edit: bool = False,
        is_own: bool = False,
        after: timedelta = timedelta(0),
    ) -> None:
        """Request a reconcile of the key as soon as a worker is free. Call it in the event loop of the controller.

        This resets the backoff of the key, unless a reconcile of the same key made the change.

        Args:
            key: The object.
            priority: Priority in the queue; a higher one goes first.
            reason: The cause, for the history of the key and for the message of the breaker.
            is_edit: Whether the desired state of the object changed. During a reconcile of the key the change counts
                as made by that reconcile: the response to a write, and an event of a fast watch, arrive before it ends.
            is_own: Whether a reconcile of the key itself made the change.
            after: The time before the reconcile, at least.
        """
        now = self._clock.monotonic()
        self._sources[key] = reason
        if not is_own:
            self.queue.reset_backoff(key, now)
        delay = self._breaker.compute_delay(key, now, is_edit=is_edit and key not in self._started_at)
        seconds = max(delay, after.total_seconds())
        is_new = self.queue.add(key, now, priority=priority, not_before=now + seconds, reason=reason)
        self._signal_addition(priority, is_new=is_new)

    def list_run_seconds(self) -> dict[ObjectKey, float]:
        """Return the seconds since the start of each running reconcile, by key."""
        now = self._clock.monotonic()
        return {key: now - started for key, started in self._started_at.items()}

    async def wait_until_idle(self, keys: Callable[[ObjectKey], bool]) -> None:
        """Wait until no reconcile of a matching key is running. The caller must prevent the start of new ones."""
        while any(keys(key) for key in self._started_at):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            await waiter

    def abandon(self, keys: Callable[[ObjectKey], bool]) -> None:
        """Cancel the running reconciles of matching keys; they are not retried before the next change."""
        for key in [key for key in self._tasks if keys(key) and key not in self._abandoned]:
            self._cancel_abandoned(key, self._tasks[key])

    def _cancel_abandoned(self, key: ObjectKey, task: asyncio.Task[None]) -> None:
        """Cancel the reconcile, and again after a while if author code has caught the cancellation."""
        if self._tasks.get(key) is not task:
            return
        times = self._abandoned[key] = self._abandoned.get(key, 0) + 1
        if times == _REPORTED_CANCELLATION:
            _log.warning(
                "%s %s: still running %g s after it was cancelled; a function must not catch asyncio.CancelledError",
                self.name, key, _CANCELLATION_SECONDS,
            )  # fmt: skip
        task.cancel()
        asyncio.get_running_loop().call_later(_CANCELLATION_SECONDS, self._cancel_abandoned, key, task)

    def _uncancel(self, key: ObjectKey, task: asyncio.Task[None]) -> bool:
        """Take back the own cancellations of a task; return True if nobody else has cancelled it."""
        left = 0
        for _ in range(self._abandoned[key]):
            left = task.uncancel()
        return left == 0

    def reset_backoff(self, key: ObjectKey) -> None:
        """Forget how often the key was reconciled, so that its breaker starts anew."""
        self._breaker.forget(key)

    def stop(self) -> None:
        """Start no further reconcile; `run` returns when the running ones have ended."""
        self._stopping = True
        self._changed.set()

    async def run(self) -> None:
        """Reconcile keys until `stop`. Cancelling it cancels the running reconciles and waits for their end."""
        async with asyncio.TaskGroup() as reconciles:
            while not self._stopping:
                self._changed.clear()
                self._start_due(reconciles)
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

    def _start_due(self, reconciles: asyncio.TaskGroup) -> None:
        while self.queue.running < self.workers:
            key = self.queue.take(self._clock.monotonic())
            if key is None:
                return
            task = reconciles.create_task(self._reconcile_key(key), name=f"reconcile {self.name} {key}")
            self._tasks[key] = task
            task.add_done_callback(partial(self._release_key, key))

    def _release_key(self, key: ObjectKey, task: asyncio.Task[None]) -> None:
        """Release the key of a task that was cancelled before its first step and therefore released nothing itself."""
        if self._tasks.get(key) is task:
            del self._tasks[key]
            self._abandoned.pop(key, None)
            self.queue.mark_done(key, self._clock.monotonic())
            self._changed.set()

    async def _reconcile_key(self, key: ObjectKey) -> None:
        """Run one reconcile of a key that was taken from the queue, and requeue the key as the outcome requires.

        Author code may raise anything. Only the cancellation of the controller and Ctrl-C leave this coroutine.
        """
        started, task = self._record_start(key), self._tasks[key]
        deadline = asyncio.timeout(self._timeout_seconds)
        try:
            async with deadline:
                with self._start_span(key):
                    result = _check_result(await self._reconcile(key))
        except asyncio.CancelledError as error:
            is_requested = task.cancelling() > 0
            if is_requested and key in self._abandoned and self._uncancel(key, task):
                outcome = self._handle_abandonment(key)
            elif is_requested and self._stopping:
                raise
            else:
                # A CancelledError that leaves the task ends it silently, and the key stays in state "running" forever.
                outcome = self._handle_failure(key, explain_cancellation(error, is_requested=is_requested))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # includes SystemExit and BaseExceptionGroup
            if isinstance(error, TimeoutError) and deadline.expired():
                timeout = ReconcileTimeoutError(f"the reconcile took longer than {self._timeout_seconds:g} s")
                outcome = self._handle_failure(key, timeout)
            else:
                outcome = self._handle_failure(key, error)
        else:
            outcome = self._handle_success(key, result)
        finally:
            self._record_end(key)
        if self._observer is not None:
            self._observer.on_finish(outcome, seconds=self._clock.monotonic() - started)
        self._changed.set()

    def _record_start(self, key: ObjectKey) -> float:
        now = self._started_at[key] = self._clock.monotonic()
        source = self._sources.pop(key, None)
        # The task has its own context, so this value ends with the task.
        current_reconciliation.set(Reconciliation(self.name, key, self._entropy.uid(), source or "a timer of its own"))
        if self._observer is not None:
            self._observer.on_start(waited_seconds=self.queue.get_queue_seconds(key))
            if source is not None:
                self._observer.on_event_latency(seconds=now - self.queue.get_addition_time(key))
        opening = None if source is None else self._breaker.record_start(key, now, source)
        if opening is not None:
            _log.warning(
                "%s %s: %d reconciles in %.3g s without reaching a steady state, %d of them because: %s; "
                "reconciles of this object are slowed down until no event requests one for a while",
                self.name, key, opening.reconciles, opening.seconds, opening.share, opening.source,
                extra=_get_log_fields(),
            )  # fmt: skip
            if self._observer is not None:
                self._observer.on_breaker_open(key, opening.source)
        return now

    def _start_span(self, key: ObjectKey) -> AbstractContextManager[None]:
        reconciliation = current_reconciliation.get()
        if self._tracer is None or reconciliation is None:
            return nullcontext()
        return self._tracer.start_span(self.name, key, reconciliation.reconcile_id)

    def _record_end(self, key: ObjectKey) -> None:
        del self._started_at[key]
        del self._tasks[key]
        self._abandoned.pop(key, None)
        for waiter in self._idle_waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._idle_waiters.clear()

    def _handle_success(self, key: ObjectKey, result: Result | None) -> ReconcileOutcome:
        if key in self._reported:
            self._reported.remove(key)
            if self._reporter is not None:
                self._reporter.report_recovery(key)
        has_requeue = result is not None and result.requeue_after is not None
        if result is not None and result.requeue_after is not None:
            self._requeue(key, result.requeue_after, result.priority)
        self.queue.mark_done(key, self._clock.monotonic())
        return ReconcileOutcome.REQUEUE_AFTER if has_requeue else ReconcileOutcome.SUCCESS

    def _handle_abandonment(self, key: ObjectKey) -> ReconcileOutcome:
        self.queue.mark_done(key, self._clock.monotonic())
        return ReconcileOutcome.ABANDONED

    def _handle_failure(self, key: ObjectKey, error: BaseException) -> ReconcileOutcome:
        if isinstance(error, PartialFailureError):
            self._requeue(key, error.requeue_after, 0)
            error = error.failure
        now, fields = self._clock.monotonic(), _get_log_fields()
        problem, cause = self._describe_failure(error)
        outcome = classify_failure(error)
        match outcome:
            case ReconcileOutcome.ABANDONED:
                self.queue.mark_done(key, now)
                _log.info("%s %s: not finished: %s", self.name, key, problem, extra=fields)
            case ReconcileOutcome.TERMINAL:
                self.queue.mark_done(key, now)
                _log.error(
                    "%s %s: reconcile failed, no retry before the next change: %s",
                    self.name, key, problem, exc_info=cause, extra=fields,
                )  # fmt: skip
                self._report_failure(key, error, 1)
            case _:
                reason = type(error).__name__
                seconds = self.queue.mark_failed(key, now, reason=reason, is_refused=is_cluster_error(error))
                times = self.queue.count_failures(key)
                _log.warning(
                    "%s %s: reconcile failed (in a row: %d), retry in %.3g s: %s",
                    self.name, key, times, seconds, problem,
                    exc_info=cause if times == 1 else None, extra=fields,
                )  # fmt: skip
                self._report_failure(key, error, times)
                if self._observer is not None:
                    self._observer.on_retry()
        return outcome

    def _describe_failure(self, error: BaseException) -> tuple[str, BaseException | None]:
        """Return the text of the failure for the log, and the error whose traceback helps.

        A traceback repeats the texts of its errors. Of one with a value of a Secret, only the position is logged.
        """
        text = format_error(error)
        if not is_author_error(error):
            return text, None
        whole = "".join(traceback.format_exception(error))
        if self._redact(whole) == whole:
            return text, error
        frames = traceback.extract_tb(error.__traceback__)
        position = f" ({frames[-1].filename}:{frames[-1].lineno} {frames[-1].name})" if frames else ""
        return f"{self._redact(text)}{position}", None

    def _report_failure(self, key: ObjectKey, error: BaseException, times: int) -> None:
        if self._reporter is not None and self._reporter.report_failure(key, error, times):
            self._reported.add(key)

    def _requeue(self, key: ObjectKey, after: timedelta, priority: int) -> None:
        now = self._clock.monotonic()
        seconds = after.total_seconds()
        if after < _POLL_INTERVAL:
            # No author chooses such an interval on purpose: the breaker counts it as a loop.
            self._sources.setdefault(key, f"its own requeue_after of {seconds:g} s")
            seconds = max(seconds, self._breaker.compute_delay(key, now))
        is_new = self.queue.add(key, now, priority=priority, not_before=now + seconds, reason="requeue_after")
        self._signal_addition(priority, is_new=is_new)

    def _signal_addition(self, priority: int, *, is_new: bool) -> None:
        if is_new and self._observer is not None:
            self._observer.on_add(priority=priority)
        self._changed.set()


def _check_result(result: object) -> Result | None:
    """Return the result of author code; raise `TypeError` inside the reconcile if it has another type."""
    if result is None or isinstance(result, Result):
        return result
    raise TypeError(f"the reconcile returned a {type(result).__name__}: expected None or a konverge.Result")


def _get_log_fields() -> dict[str, str]:
    reconciliation = current_reconciliation.get()
    return {} if reconciliation is None else reconciliation.log_fields
