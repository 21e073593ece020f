"""An operator at work: its informers, its controllers, and an orderly end.

It starts in this order: the informers of the owner kinds are synced; every owner is queued, behind whatever changes
from now on; the controllers run. Informers of other kinds start when a pass first reads the kind. It stops in the
reverse order: no new pass, those under way may end within the grace period, then the informers go.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from konverge.cache import Informers
from konverge.client import Client
from konverge.clock import Clock, Entropy
from konverge.errors import ConfigurationError
from konverge.kube import GroupVersionKind
from konverge.runtime.cached_client import CachedClients
from konverge.runtime.controller import Controller
from konverge.runtime.owners import OwnerKind, Owners
from konverge.runtime.reads import Reader, Reads
from konverge.runtime.routing import OwnedKind, Routing
from konverge.runtime.waking import Waking

__all__ = ["Process"]

_log = logging.getLogger("konverge.runtime")

# Owners that were there before go behind whatever changes: a restart over thousands of settled owners must not delay
# the one that somebody edits.
_COLD_START_PRIORITY = -100


class Process:
    """One run of an operator.

    Args:
        kinds: What is reconciled.
        client: The cluster; it stays open.
        clock: The time.
        entropy: The randomness.
        namespace: Only owners and objects of this namespace; empty for all.
        grace: How long passes under way may take to end after `stop`.
    """

    def __init__(
        self,
        kinds: Sequence[OwnerKind],
        client: Client,
        *,
        clock: Clock,
        entropy: Entropy,
        namespace: str = "",
        grace: timedelta = timedelta(seconds=30),
    ) -> None:
        self._kinds = tuple(kinds)
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._namespace = namespace
        self._grace_seconds = grace.total_seconds()
        self._deadline = asyncio.timeout(None)
        self._controllers: dict[GroupVersionKind, Controller] = {}
        self._is_stopping = False

    async def run(self, *, stops_on_signals: bool = False) -> None:
        """Work until `stop` or cancellation.

        Cancelling it cancels everything at once and returns when all has let go.

        Args:
            stops_on_signals: Let SIGTERM and SIGINT call `stop`. Only in a program's main thread.

        Raises:
            ConfigurationError: There is nothing to reconcile.
            KonvergeError: The owners cannot be listed.
        """
        if not self._kinds:
            raise ConfigurationError("the operator has nothing to do: register a custom resource")
        with ExitStack() as signals:
            if stops_on_signals:
                signals.enter_context(_signals_call(self.stop))
            try:
                async with self._deadline:
                    await self._work()
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

    async def _work(self) -> None:
        reads = Reads()
        mappings = [await self._client.mapping(kind.gvk) for kind in self._kinds]
        routing = Routing((OwnedKind(mapping.gvk, mapping.namespaced) for mapping in mappings), reads)
        async with Informers(
            self._client, namespace=self._namespace, keep=routing.keeps, clock=self._clock, entropy=self._entropy
        ) as informers:
            waking = Waking(routing, self._wake)
            clients = CachedClients(self._client, informers, reads, waking, namespace=self._namespace)
            owners = [Owners(kind, clients, self._entropy) for kind in self._kinds]
            for kind in self._kinds:
                await clients.started(kind.gvk)
            # Nothing is awaited from here to the subscription: what is held is queued, what comes later is told.
            for each in owners:
                controller = self._controllers[each.kind.gvk] = self._controller(each)
                for key in each.existing():
                    controller.wake(key, priority=_COLD_START_PRIORITY, reason="the operator started")
            informers.subscribe(waking.changed)
            async with asyncio.TaskGroup() as controllers:
                for controller in self._controllers.values():
                    controllers.create_task(controller.run(), name=f"controller {controller.name}")

    def _controller(self, owners: Owners) -> Controller:
        kind = owners.kind
        return Controller(
            kind.name,
            owners.reconcile,
            clock=self._clock,
            entropy=self._entropy,
            workers=kind.workers,
            timeout=kind.timeout,
        )

    def _wake(self, owner: Reader, reason: str) -> None:
        self._controllers[owner.gvk].wake(owner.key, reason=reason)


@contextmanager
def _signals_call(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and SIGINT call the function within the block."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])
