"""The process of an operator: its informers, its controllers, and an orderly shutdown.

It starts in this order: the servers (probes, metrics, webhooks); the informers of the owner kinds and of the watched
kinds, until they are synced; the controllers; and last, if Leases decide, the participation in the assignment of
owners. A replica that waits for an assignment is warm: its caches are filled, and its first reconcile needs no list.

Informers of other kinds start when a reconcile first reads the kind, and stop after no owner has read it for a while.

The process stops in the reverse order. No new reconcile starts; running ones may end within the grace period; the
Leases are released; the informers stop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from konverge._internal.cache import CacheOptions, Informer, InformerFactory
from konverge._internal.client import Client
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.runtime.cached_client import CachedClientFactory
from konverge._internal.runtime.changes import is_edit
from konverge._internal.runtime.controller import Controller
from konverge._internal.runtime.controller_observer import ControllerObserver, ReconcileTracer
from konverge._internal.runtime.event_router import EventRouter, RoutedKind, WatchedKind
from konverge._internal.runtime.informer_lifecycle import InformerLifecycle
from konverge._internal.runtime.owner_assignment import OwnerAssignment, OwnerFilter
from konverge._internal.runtime.owner_reconciler import OwnerKind, OwnerReconciler
from konverge._internal.runtime.owner_tasks import OwnerTask, OwnerTaskRunner
from konverge._internal.runtime.read_tracking import ReadingOwner, ReadTracker
from konverge._internal.runtime.reconciliation import current_reconciliation
from konverge._internal.runtime.start_steps import StartSteps
from konverge._internal.runtime.stop_signals import call_on_signal
from konverge.clock import Clock, Entropy
from konverge.errors import ConfigurationError, ForbiddenError, KindNotServedError, format_error

__all__ = ["Process", "ProcessIndex", "Service"]

_log = logging.getLogger("konverge.runtime")

# Owners that existed before go behind all changes: a restart over thousands of steady owners must not delay the one
# that a user edits.
_COLD_START_PRIORITY = -100

# Seconds before a failed list of a kind is retried for owners that were taken over.
_WIDEN_RETRY_SECONDS = 2.0

Service: TypeAlias = Callable[["Process"], AbstractAsyncContextManager[object]]
"""A service that runs beside the controllers: it starts before the informers and stops after the controllers."""

ProcessIndex: TypeAlias = Callable[[Object], Sequence[str]]
"""Function that returns the values under which an index lists an object."""


class Process:
    """One run of an operator.

    Args:
        kinds: The kinds that are reconciled.
        client: The cluster; it stays open. Requests for owners use it with the permits of the assignment.
        clock: Source of time.
        entropy: Source of randomness.
        namespaces: The namespaces of the owners and objects that count; empty for all.
        grace: Time for running reconciles to finish after `stop`.
        watches: Other kinds whose changes concern owners.
        indexes: Index functions by kind and name.
        cache_options: Limits on the cached objects, by kind; a kind without options is cached completely.
        assignment: Decides which owners are assigned to this replica; None for all.
        services: Services that run beside the controllers, in the order of their start.
        writing_services: Services that write in the name of the operator; they stop before the Leases are released.
        observe: Builds the observer of a controller from its name and its number of workers; None observes nothing.
        tracer: Wraps each reconcile in a span.
        start: Runs and retries the steps of the start, with `DEFAULT_START_TIMEOUT` when not given.
        tasks: Timers and long-running tasks of owners of these kinds.
    """

    def __init__(
        self,
        kinds: Sequence[OwnerKind],
        client: Client,
        *,
        clock: Clock,
        entropy: Entropy,
        namespaces: Sequence[str] = (),
        grace: timedelta = timedelta(seconds=30),
        watches: Sequence[WatchedKind] = (),
        indexes: Mapping[tuple[GroupVersionKind, str], ProcessIndex] = {},
        cache_options: Mapping[GroupVersionKind, CacheOptions] = {},
        assignment: OwnerAssignment | None = None,
        services: Sequence[Service] = (),
        writing_services: Sequence[Service] = (),
        observe: Callable[[str, int], ControllerObserver | None] = lambda name, workers: None,
        tracer: ReconcileTracer | None = None,
        start: StartSteps | None = None,
        tasks: Sequence[OwnerTask] = (),
    ) -> None:
        self._kinds = tuple(kinds)
        self._tasks = tuple(tasks)
        self._watches = tuple(watches)
        self._indexes = dict(indexes)
        self._clock = clock
        self._entropy = entropy
        self._assignment = assignment
        self._services = tuple(services)
        self._writing_services = tuple(writing_services)
        self._observe = observe
        self._tracer = tracer
        self._grace_seconds = grace.total_seconds()
        self._deadline = asyncio.timeout(None)
        self._owners: dict[GroupVersionKind, OwnerReconciler] = {}
        self._controllers: dict[GroupVersionKind, Controller] = {}
        self._task_runners: list[OwnerTaskRunner] = []
        self._is_stopping = False
        self._read_tracker = ReadTracker()
        self.client = client
        """The client that sends all requests."""
        holds = assignment.is_cached if assignment is not None else _match_all
        self._event_router = EventRouter(self._read_tracker, lookup=self, holds=holds)
        self.informers = InformerFactory(
            client,
            namespaces=namespaces,
            options=cache_options,
            keep=self._event_router.is_needed,
            clock=clock,
            entropy=entropy,
        )
        """The informers of this run: all cached objects."""
        self.start = start or StartSteps(clock=clock, entropy=entropy)
        """The steps of the start of this run."""
        self._clients = CachedClientFactory(
            client, self.informers, self._read_tracker, self._event_router, clock, namespaces=namespaces
        )
        self._informer_lifecycle = InformerLifecycle(self._clients, self._event_router, clock=clock)

    @property
    def controllers(self) -> Mapping[GroupVersionKind, Controller]:
        """The running controllers by kind; empty before the owners are listed."""
        return MappingProxyType(self._controllers)

    def list_controllers(self) -> list[Controller]:
        """Return the running controllers: those of the kinds, then those of timers and long-running tasks."""
        return [*self._controllers.values(), *(runner.controller for runner in self._task_runners)]

    @property
    def is_stopping(self) -> bool:
        """True after `stop` was called."""
        return self._is_stopping

    async def run(self, *, stops_on_signals: bool = False) -> None:
        """Reconcile until `stop` or cancellation.

        Cancellation cancels everything at once and returns when all tasks have ended.

        Args:
            stops_on_signals: Let SIGTERM and SIGINT call `stop`. Only in a program's main thread.

        Raises:
            ConfigurationError: No kind is registered.
            konverge.errors.StartError: The owners cannot be listed within the time limit of the start.
        """
        if not self._kinds:
            raise ConfigurationError(
                "the operator has no controllers: expected at least one registered custom resource"
            )
        with ExitStack() as signals:
            if stops_on_signals:
                signals.enter_context(call_on_signal(self.stop, self._grace_seconds))
            try:
                async with self._deadline:
                    await self._run_controllers()
            except TimeoutError:
                if not self._deadline.expired():
                    raise
                _log.warning("stopped before all reconciles had ended")

    def stop(self) -> None:
        """Start no further reconcile; `run` returns when the running ones have ended, or after the grace period.

        A second call ends the grace period. A call before the owners are listed ends the run at once. Call it only
        while `run` is running.
        """
        if self._deadline.expired():
            return  # everything is already being cancelled
        now = asyncio.get_running_loop().time()
        grace_seconds = self._grace_seconds if self._controllers and not self._is_stopping else 0.0
        self._deadline.reschedule(now + grace_seconds)
        self._is_stopping = True
        running = sum(controller.queue.running for controller in self._controllers.values())
        _log.info("stopping: waiting up to %g s for %d running reconciles", grace_seconds, running)
        for controller in self._controllers.values():
            controller.stop()
        for runner in self._task_runners:
            runner.stop()

    def list_owners(self, gvk: GroupVersionKind) -> list[ObjectKey]:
        """Return the owners of a kind that are assigned to this replica; empty before they are listed."""
        return self._owners[gvk].list_keys() if gvk in self._owners else []

    def list_deletion_seconds(self) -> dict[str, list[float]]:
        """Return the seconds since the deletion timestamp of each owner that still exists, by controller name."""
        now = self._clock.now()
        return {
            owners.kind.name: [(now - at).total_seconds() for at in owners.list_deletion_times()]
            for owners in self._owners.values()
        }

    def enqueue(self, gvk: GroupVersionKind, keys: Iterable[ObjectKey], *, reason: str) -> None:
        """Queue owners behind all changes.

        Args:
            gvk: Their kind; the call has no effect before its controller runs.
            keys: The keys of the owners.
            reason: The cause, for the history of the keys.
        """
        if gvk in self._controllers:
            for key in keys:
                self._controllers[gvk].enqueue(key, priority=_COLD_START_PRIORITY, reason=reason)

    # Methods of `runtime.owner_assignment.AssignmentListener`.

    def on_assigned(self, part: OwnerFilter) -> None:
        """Reconcile these owners from now on: queue them behind all changes."""
        for gvk, controller in self._controllers.items():
            keys = [meta.key for meta in self.informers.running[gvk].store.iter_metadata() if part(meta.uid)]
            self._owners[gvk].mark_taken_over(keys)
            for key in keys:
                controller.reset_backoff(key)
                controller.enqueue(key, priority=_COLD_START_PRIORITY, reason="the operator took over")
        for runner in self._task_runners:
            runner.start(part)

    async def extend_caches(self) -> None:
        """Cache more owners and their objects than before; return when they are cached."""
        async with asyncio.TaskGroup() as widening:
            for informer in tuple(self.informers.running.values()):
                widening.create_task(self._extend_cache(informer), name=f"widen {informer.gvk}")

    async def _extend_cache(self, informer: Informer) -> None:
        while self.informers.running.get(informer.gvk) is informer:
            try:
                await informer.widen()
            except (KindNotServedError, ForbiddenError) as error:
                _log.warning("%s: the list for owners that were taken over failed, no retry: %s", informer.gvk, error)
                return  # a reconcile that needs the kind reports it; the other kinds do not wait
            except Exception as error:  # noqa: BLE001  # one kind must not prevent the takeover of owners
                _log.warning(
                    "%s: the list for owners that were taken over failed, retry in %g s: %s",
                    informer.gvk,
                    _WIDEN_RETRY_SECONDS,
                    format_error(error),
                )
                await self._clock.sleep(_WIDEN_RETRY_SECONDS)
            else:
                return

    async def on_revoked(self, part: OwnerFilter) -> None:
        """Stop reconciling these owners; return when no reconcile of them is running."""
        for gvk, controller in self._controllers.items():
            await controller.wait_until_idle(self._build_key_filter(gvk, part))
            self._owners[gvk].drop(part)
        for runner in self._task_runners:
            await runner.hand_over(part)
        self._evict_unassigned()

    def on_lost(self, part: OwnerFilter) -> None:
        """Cancel the reconciles of these owners: another replica may reconcile them already."""
        self._informer_lifecycle.keep_warm()  # a replica that gets the owners back must be as warm as before
        for gvk, controller in self._controllers.items():
            controller.abandon(self._build_key_filter(gvk, part))
            self._owners[gvk].drop(part)
        for runner in self._task_runners:
            runner.abandon(part)
        self._evict_unassigned()

    # Methods of `runtime.changes.CacheLookup`.

    def get_cached(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        """Return a fresh copy of the cached object; None if it is not cached."""
        informer = self.informers.running.get(gvk)
        return None if informer is None else informer.store.get(key)

    def get_uid(self, gvk: GroupVersionKind, key: ObjectKey) -> str:
        """Return the UID of the cached object; empty if it is not cached."""
        informer = self.informers.running.get(gvk)
        meta = None if informer is None else informer.store.get_metadata(key)
        return "" if meta is None else meta.uid

    def list_keys_by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[ObjectKey]:
        """Return the keys of the objects that an index of the kind lists under the value."""
        informer = self.informers.running.get(gvk)
        return [] if informer is None else informer.list_keys_by_index(index, value)

    async def _run_controllers(self) -> None:
        async with AsyncExitStack() as stack:
            for service in self._services:
                await stack.enter_async_context(service(self))
            mappings = [
                await self.start.run_step(f"discovery of {kind.gvk}", partial(self.client.mapping, kind.gvk))
                for kind in self._kinds
            ]
            owned = [
                RoutedKind(mapping.gvk, mapping.namespaced, kind.when)
                for mapping, kind in zip(mappings, self._kinds, strict=True)
            ]
            self._event_router.set_routes(owned, self._watches)
            for (gvk, name), values_of in self._indexes.items():
                self.informers.add_index(gvk, name, values_of)
            await stack.enter_async_context(self.informers)
            await stack.enter_async_context(self._informer_lifecycle)
            await self._informer_lifecycle.start(
                (kind.gvk for kind in self._kinds), (watch.gvk for watch in self._watches), self.start
            )
            # No await from here to the subscription: every cached owner is queued, and every later change is published.
            for kind in self._kinds:
                owners = self._owners[kind.gvk] = OwnerReconciler(kind, self._clients, self._assignment)
                controller = self._controllers[kind.gvk] = self._build_controller(owners)
                for key in owners.list_keys():
                    controller.enqueue(key, priority=_COLD_START_PRIORITY, reason="the operator started")
            self._task_runners += map(self._build_task_runner, self._tasks)
            for runner in self._task_runners:
                runner.start()
                self.informers.subscribe(runner.on_change)
            self.informers.subscribe(self._on_change)
            self._informer_lifecycle.stop_unread()
            if self._assignment is not None:
                self._informer_lifecycle.warm_up(self._kinds)
            if self._is_stopping:
                return
            if self._assignment is not None:
                await stack.enter_async_context(self._assignment.participate(self))
            for service in self._writing_services:
                await stack.enter_async_context(service(self))
            async with asyncio.TaskGroup() as controllers:
                for controller in self.list_controllers():
                    controllers.create_task(controller.run(), name=f"controller {controller.name}")

    def _build_controller(self, owners: OwnerReconciler) -> Controller:
        kind = owners.kind
        return Controller(
            kind.name,
            owners.reconcile,
            clock=self._clock,
            entropy=self._entropy,
            workers=kind.workers,
            timeout=kind.timeout,
            observer=self._observe(kind.name, kind.workers),
            reporter=owners,
            tracer=self._tracer,
            redact=self.client.secret_values.hide,
        )

    def _build_task_runner(self, task: OwnerTask) -> OwnerTaskRunner:
        return OwnerTaskRunner(
            task,
            self._clients,
            self._assignment,
            clock=self._clock,
            entropy=self._entropy,
            observer=self._observe(task.name, task.workers),
            tracer=self._tracer,
        )

    def _on_change(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        current = current_reconciliation.get()  # a write is published inside the reconcile that sent it
        for owner, reason in self._event_router.find_owners(gvk, old, new).items():
            if self._is_assigned_elsewhere(owner):
                continue  # the replica that takes the owner over reconciles it anyway
            meta = new or old
            is_owner_edit = meta is not None and owner == ReadingOwner(gvk, meta.key) and is_edit(old, new)
            controller = self._controllers[owner.gvk]
            is_own = current is not None and (current.controller, current.key) == (controller.name, owner.key)
            controller.enqueue(owner.key, reason=reason, is_edit=is_owner_edit, is_own=is_own)

    def _is_assigned_elsewhere(self, owner: ReadingOwner) -> bool:
        if self._assignment is None:
            return False
        uid = self.get_uid(owner.gvk, owner.key)
        return bool(uid) and not self._assignment.is_ours(uid)

    def _build_key_filter(self, gvk: GroupVersionKind, part: OwnerFilter) -> Callable[[ObjectKey], bool]:
        """Return a filter for the keys of the owners in a shard; a deleted owner counts as in every shard."""
        store = self.informers.running[gvk].store

        def is_in_part(key: ObjectKey) -> bool:
            meta = store.get_metadata(key)
            return meta is None or part(meta.uid)

        return is_in_part

    def _evict_unassigned(self) -> None:
        """Evict the objects of owners that are no longer to be cached."""
        if self._assignment is None:
            return
        for gvk in self._controllers:
            for meta in self.informers.running[gvk].store.iter_metadata():
                if not self._assignment.is_cached(meta.uid):
                    self._read_tracker.forget(ReadingOwner(gvk, meta.key))
        for informer in self.informers.running.values():
            informer.evict_rejected()


def _match_all(uid: str) -> bool:
    return True
