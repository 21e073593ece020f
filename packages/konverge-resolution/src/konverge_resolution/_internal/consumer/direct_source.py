"""Source of definitions without requests: the operator's own process fetches them in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime, timedelta

from konverge._internal.cancellation import await_shielded
from konverge._internal.kube import GroupVersionKind
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.operator.owner_context import OwnerContext
from konverge._internal.runtime import Process
from konverge.clock import Clock
from konverge_resolution._internal.consumer.requested_definition import PendingFetch
from konverge_resolution._internal.engine import Engine, Requester
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reference import Reference, build_request_name
from konverge_resolution._internal.requests.request_format import format_service_account
from konverge_resolution._internal.resolved_content import ResolvedContent

__all__ = ["DirectSource", "open_direct_source"]

_MAX_CONCURRENT, _MAX_PER_NAMESPACE = 1000, 200
_MAX_FAILURES = 5000
_RETENTION = timedelta(minutes=10)


@dataclass
class _OwnerFetch:
    """Fetch for one owner, with its result."""

    owner_uid: str
    namespace: str
    task: asyncio.Task[ResolvedContent]
    ended_at: datetime | None = None

    @property
    def has_failed(self) -> bool:
        """Tell whether it ended without content: then it needs no slot."""
        return self.task.done() and (self.task.cancelled() or self.task.exception() is not None)


class DirectSource:
    """Fetches for the owners of one run; the fetches of a deleted owner are cancelled.

    Args:
        engine: Resolves references.
        process: Requeues owners.
        clock: The clock.
        service_account_name: The ServiceAccount of the owner's namespace.
        retry: The interval of retries after transient failures.
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
        """Return the content of a reference, or the state of its fetch; its end requeues the owner.

        Raises:
            ResolutionError: It cannot be resolved.
        """
        name = _build_name(reference, ctx)
        fetch = self._fetches.get(name)
        if fetch is None:
            self._start_fetch(name, reference, ctx)
            return PendingFetch()
        if fetch.ended_at is None:
            return PendingFetch()
        try:
            return fetch.task.result()
        except ResolutionError as error:
            if error.traits.is_transient:
                if self._clock.now() >= fetch.ended_at + self._retry:
                    self._start_fetch(name, reference, ctx)
                    return PendingFetch()
                ctx.request_requeue(fetch.ended_at + self._retry)
            raise

    async def release(self, reference: Reference, ctx: OwnerContext) -> None:
        """Forget the content after it was copied."""
        self._fetches.pop(_build_name(reference, ctx), None)

    def on_owner_change(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        """Cancel the fetches of a deleted owner."""
        if old is None or new is not None:
            return
        for name in [name for name, fetch in self._fetches.items() if fetch.owner_uid == old.uid]:
            self._fetches.pop(name).task.cancel()

    async def close(self) -> None:
        """Cancel all fetches and wait for their end."""
        for fetch in self._fetches.values():
            fetch.task.cancel()
        self._fetches.clear()
        if tasks := list(self._tasks):  # including those of owners that were deleted just now
            await await_shielded(asyncio.wait(tasks))

    def _start_fetch(self, name: str, reference: Reference, ctx: OwnerContext) -> None:
        self._forget_expired()
        namespace = ctx.owner_key.namespace
        namespaces = [fetch.namespace for fetch in self._fetches.values() if not fetch.has_failed]
        if len(namespaces) >= _MAX_CONCURRENT or namespaces.count(namespace) >= _MAX_PER_NAMESPACE:
            ctx.request_requeue(self._clock.now() + self._retry)
            return
        requester = Requester(namespace, format_service_account(namespace, self._service_account_name))
        # Not in the context of the reconcile that starts it, because the fetch outlives that.
        task = asyncio.create_task(self._resolve(reference, requester), context=Context())
        fetch = self._fetches[name] = _OwnerFetch(ctx.owner_uid, namespace, task)
        self._tasks.add(task)
        gvk, key = ctx.owner_gvk, ctx.owner_key

        def on_done(done: asyncio.Task[ResolvedContent]) -> None:
            self._tasks.discard(done)
            fetch.ended_at = self._clock.now()
            if not done.cancelled():
                done.exception()  # retrieve it so that asyncio does not log it; the owner may be deleted
                self._process.enqueue(gvk, [key], reason="a definition was resolved")

        task.add_done_callback(on_done)

    async def _resolve(self, reference: Reference, requester: Requester) -> ResolvedContent:
        return (await self._engine.resolve(reference, requester)).resolved

    def _forget_expired(self) -> None:
        now = self._clock.now()
        for name, fetch in list(self._fetches.items()):
            if fetch.ended_at is not None and now >= fetch.ended_at + _RETENTION:
                del self._fetches[name]
        failures = [name for name, fetch in self._fetches.items() if fetch.has_failed]
        for name in failures[:-_MAX_FAILURES]:
            del self._fetches[name]  # its owner fetches again


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
    """Provide the fetches of one run; all have ended after the block."""
    async with make_engine() as engine:
        fetches = DirectSource(engine, process, clock, service_account_name, retry)
        unsubscribe = process.informers.subscribe(fetches.on_owner_change)
        try:
            yield fetches
        finally:
            unsubscribe()
            await fetches.close()
