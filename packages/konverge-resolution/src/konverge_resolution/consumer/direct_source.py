"""Definitions without requests: fetched by the operator's own process, beside its passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime, timedelta

from konverge.cancellation import await_shielded
from konverge.clock import Clock
from konverge.kube import GroupVersionKind
from konverge.kube.metadata import ObjectMeta
from konverge.operator.owner_context import OwnerContext
from konverge.runtime import Process
from konverge_resolution.consumer.requested_definition import PendingFetch
from konverge_resolution.engine import Engine, Requester
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reference import Reference, build_request_name
from konverge_resolution.requests.request_format import format_service_account
from konverge_resolution.resolved_content import ResolvedContent

__all__ = ["DirectSource", "open_direct_source"]

_MAX_CONCURRENT, _MAX_PER_NAMESPACE = 1000, 200
_MAX_FAILURES = 5000
_RETENTION = timedelta(minutes=10)


@dataclass
class _OwnerFetch:
    """One fetch, and what came of it."""

    owner_uid: str
    namespace: str
    task: asyncio.Task[ResolvedContent]
    ended_at: datetime | None = None

    @property
    def has_failed(self) -> bool:
        """Tell whether it has ended without content: then it takes nobody's place."""
        return self.task.done() and (self.task.cancelled() or self.task.exception() is not None)


class DirectSource:
    """Fetches for the owners of one run; an owner that goes takes its fetches with it.

    Args:
        engine: Resolves.
        process: Wakes owners.
        clock: The time.
        service_account_name: For whom, of the owner's namespace.
        retry: When to ask again after a failure that may pass.
    """

    def __init__(
        self, engine: Engine, process: Process, clock: Clock, service_account_name: str, retry: timedelta
    ) -> None:
        self._engine = engine
        self._process = process
        self._clock = clock
        self._service_account_name = service_account_name
        self._retry = retry
        self._fetches: dict[str, _OwnerFetch] = {}
        self._tasks: set[asyncio.Task[ResolvedContent]] = set()

    async def fetch(self, reference: Reference, ctx: OwnerContext) -> ResolvedContent | PendingFetch:
        """What came of a reference, as far as it has; its end wakes the owner.

        Raises:
            ResolutionError: It cannot be had.
        """
        name = _build_name(reference, ctx)
        found = self._fetches.get(name)
        if found is None:
            self._start_fetch(name, reference, ctx)
            return PendingFetch()
        if found.ended_at is None:
            return PendingFetch()
        try:
            return found.task.result()
        except ResolutionError as error:
            if error.traits.is_transient:
                if self._clock.now() >= found.ended_at + self._retry:
                    self._start_fetch(name, reference, ctx)
                    return PendingFetch()
                ctx.request_requeue(found.ended_at + self._retry)
            raise

    async def release(self, reference: Reference, ctx: OwnerContext) -> None:
        """Forget what came: it was copied."""
        self._fetches.pop(_build_name(reference, ctx), None)

    def on_owner_change(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        """Hear of a change: the fetches of an owner that is gone are ended."""
        if old is None or new is not None:
            return
        for name in [name for name, each in self._fetches.items() if each.owner_uid == old.uid]:
            self._fetches.pop(name).task.cancel()

    async def close(self) -> None:
        """End all fetches, and wait until nothing is left of them."""
        for each in self._fetches.values():
            each.task.cancel()
        self._fetches.clear()
        if tasks := list(self._tasks):  # with those of owners that went a moment ago
            await await_shielded(asyncio.wait(tasks))

    def _start_fetch(self, name: str, reference: Reference, ctx: OwnerContext) -> None:
        self._forget_expired()
        namespace = ctx.owner_key.namespace
        taken = [each.namespace for each in self._fetches.values() if not each.has_failed]
        if len(taken) >= _MAX_CONCURRENT or taken.count(namespace) >= _MAX_PER_NAMESPACE:
            ctx.request_requeue(self._clock.now() + self._retry)
            return
        requester = Requester(namespace, format_service_account(namespace, self._service_account_name))
        # Not in the context of the pass that happens to start it: it goes on after that has ended.
        task = asyncio.create_task(self._resolve(reference, requester), context=Context())
        made = self._fetches[name] = _OwnerFetch(ctx.owner_uid, namespace, task)
        self._tasks.add(task)
        gvk, key = ctx.owner_gvk, ctx.owner_key

        def on_done(done: asyncio.Task[ResolvedContent]) -> None:
            self._tasks.discard(done)
            made.ended_at = self._clock.now()
            if not done.cancelled():
                done.exception()  # looked at: the owner may be gone
                self._process.enqueue(gvk, [key], reason="a definition was resolved")

        task.add_done_callback(on_done)

    async def _resolve(self, reference: Reference, requester: Requester) -> ResolvedContent:
        return (await self._engine.resolve(reference, requester)).resolved

    def _forget_expired(self) -> None:
        now = self._clock.now()
        for name, each in list(self._fetches.items()):
            if each.ended_at is not None and now >= each.ended_at + _RETENTION:
                del self._fetches[name]
        failures = [name for name, each in self._fetches.items() if each.has_failed]
        for name in failures[:-_MAX_FAILURES]:
            del self._fetches[name]  # its owner asks again


def _build_name(reference: Reference, ctx: OwnerContext) -> str:
    return build_request_name(reference, namespace=ctx.owner_key.namespace, owner_uid=ctx.owner_uid)


@asynccontextmanager
async def open_direct_source(
    make_engine: Callable[[], AbstractAsyncContextManager[Engine]],
    process: Process,
    clock: Clock,
    service_account_name: str,
    retry: timedelta,
) -> AsyncIterator[DirectSource]:
    """The fetches of one run; after the block none is under way."""
    async with make_engine() as engine:
        fetches = DirectSource(engine, process, clock, service_account_name, retry)
        unsubscribe = process.informers.subscribe(fetches.on_owner_change)
        try:
            yield fetches
        finally:
            unsubscribe()
            await fetches.close()
