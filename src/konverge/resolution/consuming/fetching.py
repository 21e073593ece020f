"""Definitions without requests: fetched by the operator's own process, beside its passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime, timedelta

from konverge.cancellation import to_its_end
from konverge.clock import Clock
from konverge.kube import GroupVersionKind
from konverge.kube.metadata import ObjectMeta
from konverge.operator.context import OwnerContext
from konverge.resolution.consuming.asked import Underway
from konverge.resolution.consuming.copies import Fetched
from konverge.resolution.engine import Engine, Requester
from konverge.resolution.errors import ResolutionError
from konverge.resolution.reference import Reference, request_name
from konverge.resolution.requests.dialect import service_account
from konverge.runtime import Process

__all__ = ["OwnerFetches", "fetches_beside"]

_AT_ONCE, _AT_ONCE_OF_A_NAMESPACE = 1000, 200
_MOST_FAILURES = 5000
_KEPT = timedelta(minutes=10)


@dataclass
class _Fetch:
    """One fetch, and what came of it."""

    owner_uid: str
    namespace: str
    task: asyncio.Task[Fetched]
    ended: datetime | None = None

    @property
    def has_failed(self) -> bool:
        """Tell whether it has ended without content: then it takes nobody's place."""
        return self.task.done() and (self.task.cancelled() or self.task.exception() is not None)


class OwnerFetches:
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
        self._found: dict[str, _Fetch] = {}
        self._tasks: set[asyncio.Task[Fetched]] = set()

    async def fetch(self, reference: Reference, ctx: OwnerContext) -> Fetched | Underway:
        """What came of a reference, as far as it has; its end wakes the owner.

        Raises:
            ResolutionError: It cannot be had.
        """
        name = _name(reference, ctx)
        found = self._found.get(name)
        if found is None:
            self._begin(name, reference, ctx)
            return Underway()
        if found.ended is None:
            return Underway()
        try:
            return found.task.result()
        except ResolutionError as error:
            if error.facts.may_pass:
                if self._clock.now() >= found.ended + self._retry:
                    self._begin(name, reference, ctx)
                    return Underway()
                ctx.request_wake(found.ended + self._retry)
            raise

    async def let_go(self, reference: Reference, ctx: OwnerContext) -> None:
        """Forget what came: it was copied."""
        self._found.pop(_name(reference, ctx), None)

    def gone(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        """Hear of a change: the fetches of an owner that is gone are ended."""
        if old is None or new is not None:
            return
        for name in [name for name, each in self._found.items() if each.owner_uid == old.uid]:
            self._found.pop(name).task.cancel()

    async def end(self) -> None:
        """End all fetches, and wait until nothing is left of them."""
        for each in self._found.values():
            each.task.cancel()
        self._found.clear()
        if tasks := list(self._tasks):  # with those of owners that went a moment ago
            await to_its_end(asyncio.wait(tasks))

    def _begin(self, name: str, reference: Reference, ctx: OwnerContext) -> None:
        self._forget_old()
        namespace = ctx.owner_key.namespace
        taken = [each.namespace for each in self._found.values() if not each.has_failed]
        if len(taken) >= _AT_ONCE or taken.count(namespace) >= _AT_ONCE_OF_A_NAMESPACE:
            ctx.request_wake(self._clock.now() + self._retry)
            return
        requester = Requester(namespace, service_account(namespace, self._service_account_name))
        # Not in the context of the pass that happens to start it: it goes on after that has ended.
        task = asyncio.create_task(self._fetched(reference, requester), context=Context())
        made = self._found[name] = _Fetch(ctx.owner_uid, namespace, task)
        self._tasks.add(task)
        gvk, key = ctx.owner_gvk, ctx.owner_key

        def ended(done: asyncio.Task[Fetched]) -> None:
            self._tasks.discard(done)
            made.ended = self._clock.now()
            if not done.cancelled():
                done.exception()  # looked at: the owner may be gone
                self._process.wake(gvk, [key], reason="a definition was resolved")

        task.add_done_callback(ended)

    async def _fetched(self, reference: Reference, requester: Requester) -> Fetched:
        outcome = await self._engine.resolve(reference, requester)
        return Fetched(outcome.resolved.data, outcome.resolved.source, outcome.resolver)

    def _forget_old(self) -> None:
        now = self._clock.now()
        for name, each in list(self._found.items()):
            if each.ended is not None and now >= each.ended + _KEPT:
                del self._found[name]
        failures = [name for name, each in self._found.items() if each.has_failed]
        for name in failures[:-_MOST_FAILURES]:
            del self._found[name]  # its owner asks again


def _name(reference: Reference, ctx: OwnerContext) -> str:
    return request_name(reference, namespace=ctx.owner_key.namespace, owner_uid=ctx.owner_uid)


@asynccontextmanager
async def fetches_beside(
    make_engine: Callable[[], AbstractAsyncContextManager[Engine]],
    process: Process,
    clock: Clock,
    service_account_name: str,
    retry: timedelta,
) -> AsyncIterator[OwnerFetches]:
    """The fetches of one run; after the block none is under way."""
    async with make_engine() as engine:
        fetches = OwnerFetches(engine, process, clock, service_account_name, retry)
        unsubscribe = process.informers.subscribe(fetches.gone)
        try:
            yield fetches
        finally:
            unsubscribe()
            await fetches.end()
