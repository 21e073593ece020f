"""Timers and long-running tasks of owners: functions that run beside the reconciles of an owner, one for each owner.

Each registered function has its own controller, so it has the same guarantees as a reconcile: one run for each owner at
a time, a limited number of concurrent runs, a backoff after a failure, metrics. A run belongs to the replica to which
the owner is assigned. It has no state besides the queue: after a restart, it begins anew.

A timer runs again after its interval. A long-running task runs until it returns; it is cancelled when its owner is
being deleted or is assigned to another replica, when the process stops, and when the desired state of the owner
changes. In the last case it begins anew, with the changed owner.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

import msgspec

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, is_deleting
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.runtime.cached_client import CachedClient, CachedClientFactory
from konverge._internal.runtime.changes import is_edit
from konverge._internal.runtime.controller import DEFAULT_TIMEOUT, DEFAULT_WORKERS, Controller, Result
from konverge._internal.runtime.controller_observer import ControllerObserver, ReconcileTracer
from konverge._internal.runtime.owner_assignment import OwnerAssignment, OwnerFilter
from konverge._internal.runtime.owner_reconciler import OwnerReporter
from konverge._internal.runtime.read_tracking import ReadingOwner
from konverge.clock import Clock, Entropy

__all__ = ["OwnerTask", "OwnerTaskRunner", "RunOwnerTask"]

_log = logging.getLogger("konverge.runtime")

RunOwnerTask: TypeAlias = Callable[[Object, CachedClient], Awaitable[Result | None]]
"""Function that runs for one owner: receives the owner as it was read, and the client for reads and writes."""

# Behind all changes: a restart over thousands of owners must not delay the one that a user creates.
_COLD_START_PRIORITY = -100
# Limit on the random time before the first run of a timer; it spreads the runs after a restart.
_SPREAD = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class OwnerTask:
    """A function that runs for each owner of a kind.

    Args:
        name: Name of its controller in logs and metrics.
        gvk: The kind of the owners.
        run: Runs for one owner.
        interval: Time from the end of a run to the next one; None for a long-running task.
        initial_delay: Time before the first run of a timer; None for a random one, of at most the interval.
        workers: Number of owners for which it runs concurrently.
        timeout: Time limit of one run.
        reporter: Reports owners whose runs fail; None reports nothing.
    """

    name: str
    gvk: GroupVersionKind
    run: RunOwnerTask
    interval: timedelta | None = None
    initial_delay: timedelta | None = None
    workers: int = DEFAULT_WORKERS
    timeout: timedelta = DEFAULT_TIMEOUT
    reporter: OwnerReporter | None = None


class OwnerTaskRunner:
    """Runs one function for each owner of a kind that is assigned to this replica.

    Args:
        task: The function.
        clients: Builds the client of each run.
        assignment: Decides which owners are assigned to this replica; None for all.
        clock: Source of time.
        entropy: Source of jitter.
        observer: Receives the metrics of its controller; None records nothing.
        tracer: Wraps each run in a span.
    """

    def __init__(
        self,
        task: OwnerTask,
        clients: CachedClientFactory,
        assignment: OwnerAssignment | None = None,
        *,
        clock: Clock,
        entropy: Entropy,
        observer: ControllerObserver | None = None,
        tracer: ReconcileTracer | None = None,
    ) -> None:
        self._task = task
        self._clients = clients
        self._assignment = assignment
        self._entropy = entropy
        self._has_warned = False
        # Of each owner with a long-running task, as its last run began.
        self._desired_states: dict[ObjectKey, int] = {}
        self.controller = Controller(
            task.name,
            self._run,
            clock=clock,
            entropy=entropy,
            workers=task.workers,
            timeout=task.timeout,
            observer=observer,
            reporter=self,
            tracer=tracer,
            redact=clients.client.secret_values.hide,
        )
        """The controller whose keys are the owners."""

    # Methods of `runtime.controller_observer.FailureReporter`.

    def report_failure(self, key: ObjectKey, error: BaseException, times: int) -> bool:
        """Report a failed run, if the owner still exists and is assigned to this replica."""
        owner, reporter = self._get_assigned_owner(key), self._task.reporter
        return owner is not None and reporter is not None and reporter.report_failure(owner, error, times)

    def report_recovery(self, key: ObjectKey) -> None:
        """Report the first success after a reported failure, if the owner still exists."""
        owner, reporter = self._get_assigned_owner(key), self._task.reporter
        if owner is not None and reporter is not None:
            reporter.report_recovery(owner)

    def start(self, part: OwnerFilter | None = None) -> None:
        """Begin with the cached owners: all of them, or those of a part."""
        for meta in self._clients.informers.running[self._task.gvk].store.iter_metadata():
            if self._is_assigned(meta.uid) and (part is None or part(meta.uid)):
                self._enqueue(meta.key, "the owner is assigned to this replica", priority=_COLD_START_PRIORITY)

    def on_change(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        """Begin, end or restart the run of an owner after a change of its metadata."""
        meta = new or old
        if gvk != self._task.gvk or meta is None:
            return
        is_gone = new is None or new.is_deleting
        if is_gone:
            self._end(meta.key)
        elif not self._is_assigned(meta.uid):
            return  # the replica that takes the owner over begins with it then
        elif old is None or old.uid != meta.uid:
            self._cancel(meta.key)
            self._enqueue(meta.key, "the owner is new")
        elif is_edit(old, new) or not meta.generation:
            if self._task.interval is None:
                self._restart(meta.key)
            elif meta.key not in self.controller.queue:
                self._enqueue(meta.key, "the owner has changed")  # a timer that a terminal error has ended

    def abandon(self, part: OwnerFilter) -> None:
        """Cancel the runs for the owners of a part: they are no longer assigned to this replica."""
        self.controller.abandon(self._build_key_filter(part))

    async def hand_over(self, part: OwnerFilter) -> None:
        """End the runs for the owners of a part; return when none is running. Those of timers can finish."""
        if self._task.interval is None:
            self.abandon(part)
        await self.controller.wait_until_idle(self._build_key_filter(part))

    def stop(self) -> None:
        """Start no further run, and cancel long-running ones, which would not end by themselves."""
        self.controller.stop()
        if self._task.interval is None:
            self.controller.abandon(lambda _: True)

    async def _run(self, key: ObjectKey) -> Result | None:
        """Run the function for one owner; an owner that is gone, or assigned elsewhere, ends without a further run."""
        task, owner = self._task, self._get_assigned_owner(key)
        if owner is None or is_deleting(owner):
            self._desired_states.pop(key, None)
            return None
        if task.interval is None:
            self._desired_states[key] = _encode_desired_state(owner)
        self._warn_at_limit()
        permit = None if self._assignment is None else self._assignment.get_permit(owner["metadata"]["uid"])
        reader = ReadingOwner(task.gvk, key, task.name)
        client = self._clients.build_client(reader, permit).without_read_tracking()
        try:
            result = await task.run(owner, client)
        finally:
            self._clients.read_tracker.forget(reader)
        if task.interval is None or (result is not None and result.requeue_after is not None):
            return result
        return Result(requeue_after=task.interval)

    def _enqueue(self, key: ObjectKey, reason: str, *, priority: int = 0) -> None:
        self.controller.enqueue(key, priority=priority, reason=reason, after=self._compute_first_delay())
        self._warn_at_limit()

    def _warn_at_limit(self) -> None:
        """Log once that owners wait for the end of other owners' tasks, which may never come."""
        queue = self.controller.queue
        if self._has_warned or self._task.interval is not None or queue.running < self._task.workers:
            return
        if queue.count_due():
            self._has_warned = True
            _log.warning(
                "%s: %d owners have a running task, which is the limit: further owners wait for the end of one; "
                "increase it with runs_task(limit=...)",
                self._task.name,
                queue.running,
            )

    def _compute_first_delay(self) -> timedelta:
        interval = self._task.interval
        if interval is None:
            return timedelta(0)
        if self._task.initial_delay is not None:
            return self._task.initial_delay
        return min(interval, _SPREAD) * self._entropy.uniform(0.0, 1.0)

    def _restart(self, key: ObjectKey) -> None:
        """Restart the task of an owner if its desired state is another one than at the start of its last run."""
        owner = self._get_assigned_owner(key)
        # A generation alone proves nothing: that of a Deployment changes with its annotations, and few kinds without a
        # spec have one.
        if owner is not None and self._desired_states.get(key) != _encode_desired_state(owner):
            self._cancel(key)
            self._enqueue(key, "the owner has changed")

    def _end(self, key: ObjectKey) -> None:
        """Cancel the run of an owner, and remove its key from the queue: the next run finds no owner."""
        self._desired_states.pop(key, None)
        self._cancel(key)
        if key in self.controller.queue:
            self.controller.enqueue(key, reason="the owner is deleted")

    def _cancel(self, key: ObjectKey) -> None:
        self.controller.abandon(lambda other: other == key)

    def _build_key_filter(self, part: OwnerFilter) -> Callable[[ObjectKey], bool]:
        """Return a filter for the keys of the owners of a part; a deleted owner counts as in every part."""
        store = self._clients.informers.running[self._task.gvk].store

        def is_in_part(key: ObjectKey) -> bool:
            meta = store.get_metadata(key)
            return meta is None or part(meta.uid)

        return is_in_part

    def _get_assigned_owner(self, key: ObjectKey) -> Object | None:
        store = self._clients.informers.running[self._task.gvk].store
        meta = store.get_metadata(key)
        return None if meta is None or not self._is_assigned(meta.uid) else store.get(key)

    def _is_assigned(self, uid: str) -> bool:
        return self._assignment is None or self._assignment.is_ours(uid)


def _encode_desired_state(owner: Object) -> int:
    """Return a hash of everything in the owner except metadata and status."""
    fields = {name: value for name, value in owner.items() if name not in ("metadata", "status")}
    return hash(msgspec.json.encode(fields, order="sorted"))
