"""An operator at work: its informers, its controllers, and an orderly end.

It starts in this order: what serves others (probes, metrics, webhooks); the informers of the owner kinds and of the
watched kinds, until they are synced; the controllers; and last, where leases decide, the right to reconcile. A process
that waits for that right is warm: its caches are filled, and its first pass needs no list. Informers of other kinds
start when a pass first reads the kind, and stop when nobody has read it for a while. It stops in the reverse order: no
new pass, those under way may end within the grace period, the right to reconcile is given back, the informers go.
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

from konverge.cache import CacheOptions, Informer, InformerFactory
from konverge.client import Client
from konverge.clock import Clock, Entropy
from konverge.errors import ConfigurationError, ForbiddenError, KindNotServedError, format_error
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.metadata import ObjectMeta
from konverge.runtime.cached_client import CachedClientFactory
from konverge.runtime.changes import is_edit
from konverge.runtime.controller import Controller
from konverge.runtime.controller_observer import ControllerObserver, ReconcileTracer
from konverge.runtime.event_router import EventRouter, RoutedKind, WatchedKind
from konverge.runtime.informer_lifecycle import InformerLifecycle
from konverge.runtime.owner_assignment import OwnerAssignment, OwnerFilter
from konverge.runtime.owner_reconciler import OwnerKind, OwnerReconciler
from konverge.runtime.read_tracking import ReadingOwner, ReadTracker
from konverge.runtime.reconciliation import current_reconciliation
from konverge.runtime.start_steps import StartSteps
from konverge.runtime.stop_signals import call_on_signal

__all__ = ["Process", "ProcessIndex", "Service"]

_log = logging.getLogger("konverge.runtime")

# Owners that were there before go behind whatever changes: a restart over thousands of settled owners must not delay
# the one that somebody edits.
_COLD_START_PRIORITY = -100

# How long to wait before a kind whose list failed is listed again for owners that were taken over.
_WIDEN_RETRY_SECONDS = 2.0

Service: TypeAlias = Callable[["Process"], AbstractAsyncContextManager[object]]
"""Something that runs beside the controllers, from before the informers start until after they have stopped."""

ProcessIndex: TypeAlias = Callable[[Object], Sequence[str]]
"""The values under which an index has an object."""


class Process:
    """One run of an operator.

    Args:
        kinds: What is reconciled.
        client: The cluster; it stays open. For what owners need it is used with the permits of the tenure.
        clock: The time.
        entropy: The randomness.
        namespaces: Only owners and objects of these namespaces; empty for all.
        grace: How long passes under way may take to end after `stop`.
        watches: What else concerns owners.
        indexes: By kind and name.
        cache_options: What of a kind the caches hold, where that is not everything.
        assignment: Decides which owners are this process's to reconcile; None for all.
        services: What runs beside the controllers, in the order in which it starts.
        writing_services: What writes in the name of the operator: it stops before the right to reconcile is given back.
        observe: Makes what hears of the controller of that name and so many workers; None hears nothing.
        tracer: Wraps each pass in a span.
        start: Runs the steps of the start, and tries them again; as long as `DEFAULT_START_TIMEOUT` when not given.
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
    ) -> None:
        self._kinds = tuple(kinds)
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
        self._is_stopping = False
        self._read_tracker = ReadTracker()
        self.client = client
        """Sends the requests."""
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
        """What is held in memory."""
        self.start = start or StartSteps(clock=clock, entropy=entropy)
        """Runs the steps of the start."""
        self._clients = CachedClientFactory(
            client, self.informers, self._read_tracker, self._event_router, clock, namespaces=namespaces
        )
        self._informer_lifecycle = InformerLifecycle(self._clients, self._event_router, clock=clock)

    @property
    def controllers(self) -> Mapping[GroupVersionKind, Controller]:
        """The controllers at work; none before the owners are listed."""
        return MappingProxyType(self._controllers)

    @property
    def is_stopping(self) -> bool:
        """Tell whether the process has been told to stop."""
        return self._is_stopping

    async def run(self, *, stops_on_signals: bool = False) -> None:
        """Work until `stop` or cancellation.

        Cancelling it cancels everything at once and returns when all has let go.

        Args:
            stops_on_signals: Let SIGTERM and SIGINT call `stop`. Only in a program's main thread.

        Raises:
            ConfigurationError: There is nothing to reconcile.
            konverge.errors.StartError: The owners cannot be listed, and the time limit of the start has passed.
        """
        if not self._kinds:
            raise ConfigurationError("the operator has nothing to do: register a custom resource")
        with ExitStack() as signals:
            if stops_on_signals:
                signals.enter_context(call_on_signal(self.stop, self._grace_seconds))
            try:
                async with self._deadline:
                    await self._run_controllers()
            except TimeoutError:
                if not self._deadline.expired():
                    raise
                _log.warning("stopped before all passes had ended")

    def stop(self) -> None:
        """Start no further pass; `run` returns when those under way have ended, or the grace period is over.

        A second call ends the grace period. Called before the owners are listed, it ends the run at once. Only while
        `run` is under way.
        """
        if self._deadline.expired():
            return  # everything is being cancelled already
        now = asyncio.get_running_loop().time()
        grace_seconds = self._grace_seconds if self._controllers and not self._is_stopping else 0.0
        self._deadline.reschedule(now + grace_seconds)
        self._is_stopping = True
        running = sum(controller.queue.running for controller in self._controllers.values())
        _log.info("stopping: %d passes may end within %g s", running, grace_seconds)
        for controller in self._controllers.values():
            controller.stop()

    def list_owners(self, gvk: GroupVersionKind) -> list[ObjectKey]:
        """The owners of a kind that there are and that are this process's; none before they are listed."""
        return self._owners[gvk].list_keys() if gvk in self._owners else []

    def list_deletion_seconds(self) -> dict[str, list[float]]:
        """For how long owners are being deleted that are still there, by the name of their controller."""
        now = self._clock.now()
        return {
            owners.kind.name: [(now - at).total_seconds() for at in owners.list_deletion_times()]
            for owners in self._owners.values()
        }

    def enqueue(self, gvk: GroupVersionKind, keys: Iterable[ObjectKey], *, reason: str) -> None:
        """Queue owners behind whatever changes.

        Args:
            gvk: Their kind; nothing happens before its controller is at work.
            keys: Which.
            reason: Why, for their stories.
        """
        if gvk in self._controllers:
            for key in keys:
                self._controllers[gvk].enqueue(key, priority=_COLD_START_PRIORITY, reason=reason)

    # What leases tell.

    def on_assigned(self, part: OwnerFilter) -> None:
        """These owners are this process's to reconcile from now on: queue them behind whatever changes."""
        for gvk, controller in self._controllers.items():
            keys = [meta.key for meta in self.informers.running[gvk].store.iter_metadata() if part(meta.uid)]
            self._owners[gvk].mark_taken_over(keys)
            for key in keys:
                controller.reset_backoff(key)
                controller.enqueue(key, priority=_COLD_START_PRIORITY, reason="the operator took over")

    async def extend_caches(self) -> None:
        """More owners are to be held than before: return when they are, and what belongs to them."""
        async with asyncio.TaskGroup() as widening:
            for informer in tuple(self.informers.running.values()):
                widening.create_task(self._extend_cache(informer), name=f"widen {informer.gvk}")

    async def _extend_cache(self, informer: Informer) -> None:
        while self.informers.running.get(informer.gvk) is informer:
            try:
                await informer.widen()
            except (KindNotServedError, ForbiddenError) as error:
                _log.warning("%s cannot be listed for the owners that were taken over: %s", informer.gvk, error)
                return  # a pass that needs it will say so; the other kinds do not wait
            except Exception as error:  # noqa: BLE001  # one kind must not keep a replica from its owners
                _log.warning(
                    "%s is listed again for the owners that were taken over: %s", informer.gvk, format_error(error)
                )
                await self._clock.sleep(_WIDEN_RETRY_SECONDS)
            else:
                return

    async def on_revoked(self, part: OwnerFilter) -> None:
        """These owners are not this process's any more: return when no pass over one of them is under way."""
        for gvk, controller in self._controllers.items():
            await controller.wait_until_idle(self._build_key_filter(gvk, part))
        self._evict_unassigned()

    def on_lost(self, part: OwnerFilter) -> None:
        """Somebody else may reconcile these owners already: cancel the passes over them."""
        self._informer_lifecycle.keep_warm()  # it may be ours again, and should then be as warm as it was
        for gvk, controller in self._controllers.items():
            controller.abandon(self._build_key_filter(gvk, part))
        self._evict_unassigned()

    # What predicates and mapping functions look up (`konverge.runtime.changes.Lookup`).

    def get_cached(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        """The object as the caches hold it, fresh; None when they do not."""
        informer = self.informers.running.get(gvk)
        return None if informer is None else informer.store.get(key)

    def get_uid(self, gvk: GroupVersionKind, key: ObjectKey) -> str:
        """The UID of the object as the caches hold it; empty when they do not."""
        informer = self.informers.running.get(gvk)
        meta = None if informer is None else informer.store.get_metadata(key)
        return "" if meta is None else meta.uid

    def list_keys_by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[ObjectKey]:
        """The objects that an index of the kind has under that value."""
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
            # Nothing is awaited from here to the subscription: what is held is queued, what comes later is told.
            for kind in self._kinds:
                owners = self._owners[kind.gvk] = OwnerReconciler(kind, self._clients, self._assignment)
                controller = self._controllers[kind.gvk] = self._build_controller(owners)
                for key in owners.list_keys():
                    controller.enqueue(key, priority=_COLD_START_PRIORITY, reason="the operator started")
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
                for controller in self._controllers.values():
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
        )

    def _on_change(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        running = current_reconciliation.get()  # the answer to a write is told within the pass that has sent it
        for owner, reason in self._event_router.find_owners(gvk, old, new).items():
            if self._is_assigned_elsewhere(owner):
                continue  # whoever takes it over looks at it then
            meta = new or old
            is_edit_of_it = meta is not None and owner == ReadingOwner(gvk, meta.key) and is_edit(old, new)
            controller = self._controllers[owner.gvk]
            is_own = running is not None and (running.controller, running.key) == (controller.name, owner.key)
            controller.enqueue(owner.key, reason=reason, is_edit=is_edit_of_it, is_own=is_own)

    def _is_assigned_elsewhere(self, owner: ReadingOwner) -> bool:
        if self._assignment is None:
            return False
        uid = self.get_uid(owner.gvk, owner.key)
        return bool(uid) and not self._assignment.is_ours(uid)

    def _build_key_filter(self, gvk: GroupVersionKind, part: OwnerFilter) -> Callable[[ObjectKey], bool]:
        """The keys of the owners of a part. One that is gone may have been of any part."""
        store = self.informers.running[gvk].store

        def is_in_part(key: ObjectKey) -> bool:
            meta = store.get_metadata(key)
            return meta is None or part(meta.uid)

        return is_in_part

    def _evict_unassigned(self) -> None:
        """Let go of what belongs to owners that are not held any more."""
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
