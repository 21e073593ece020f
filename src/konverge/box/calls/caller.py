"""What all calls of a process share: a limit for each host, the answers that are kept, the resolver."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Self

from konverge.box.calls.answers import Answer
from konverge.box.calls.failures import CallFailure
from konverge.box.calls.http import ask_http, ask_prometheus
from konverge.box.calls.memory import Memory
from konverge.box.calls.postgres import ask_postgres
from konverge.box.calls.redis import ask_redis
from konverge.box.calls.requests import Place, Request
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.network import Lookup, Names, RefusedAddressError

__all__ = ["CALLS_AT_ONCE", "CALLS_TO_A_HOST", "Caller"]

CALLS_TO_A_HOST = 8
"""How many calls one host gets at once: one that hangs holds no more than these."""

CALLS_AT_ONCE = 256
"""How many connections there are at once."""


@dataclass(slots=True)
class _Queue:
    """The places at one host. It is forgotten when nobody has one or waits for one."""

    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS_TO_A_HOST))
    users: int = 0


class Caller:
    """Makes calls; one for a process, in one event loop.

    A connection is made for each attempt and closed after it: it goes to an address that is judged now, and no call
    fails because a server has closed what was left open. What asks often declares ``cacheFor``.

    Args:
        clock: Waits between attempts, and tells how old an answer is.
        entropy: Draws the pauses.
        lookup: Resolves names; the machine's resolver unless given.
        environment: Where ``auth.env`` looks; None where nothing is sent, and no call needs its credential.
        tls: Which certificates are trusted; the machine's unless given.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        lookup: Lookup | None = None,
        environment: Mapping[str, str] | None = os.environ,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.environment = environment
        self._clock = clock or SystemClock()
        self._entropy = entropy or SystemEntropy()
        self._names = Names() if lookup is None else None
        self._lookup: Lookup = lookup or self._names  # type: ignore[assignment]  # one of them is there
        self._tls = tls
        self._memory = Memory(self._clock)
        self._queues: dict[Place, _Queue] = {}
        self._all = asyncio.Semaphore(CALLS_AT_ONCE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Let go of the resolver's threads. Calls belong to whoever made them, and end with them."""
        if self._names is not None:
            self._names.close()

    async def answer(self, request: Request) -> Answer:
        """The answer to a request, also one that is a failure; from memory if it may be.

        It takes at most the time-outs and the pauses of all attempts together, longer only while others who asked the
        same before are cancelled. Cancelled, it leaves no connection.
        """
        if not request.cache_seconds:
            return await self._tried(request)
        return await self._memory.answer(request.fingerprint(), request.cache_seconds, lambda: self._tried(request))

    async def _tried(self, request: Request) -> Answer:
        failures = 0
        while True:
            answer = await self._attempt(request)
            if not answer.error:
                return answer
            failures += 1
            pause = request.pauses.after(failures, answer.wanted_pause, self._entropy) if answer.is_passing else None
            if pause is None:
                tries = f" ({failures} attempts)" if failures > 1 else ""
                return replace(answer, error=answer.error + tries)
            await self._clock.sleep(pause)

    async def _attempt(self, request: Request) -> Answer:
        try:
            async with asyncio.timeout(request.timeout_seconds), self._turn(request.place):
                return await self._asked(request)
        except TimeoutError:
            problem = f"{request.shown} did not answer within {request.timeout_seconds:g} s"
            return Answer(error=problem, is_passing=True, is_sensitive=request.is_sensitive)
        except CallFailure as failure:
            return Answer(error=failure.problem, is_passing=failure.is_passing, is_sensitive=request.is_sensitive)
        except RefusedAddressError as refused:
            problem = str(refused)
            if request.is_sensitive or request.repeats(problem):
                problem = f"{request.shown}: its address may not be reached: its network is {refused.kind}"
            problem += ". Expected a public address, or one in a network of spec.allowedNetworks"
            return Answer(error=problem, is_sensitive=request.is_sensitive)
        except Exception as error:  # noqa: BLE001  # of a library, met by what some server sent: a failure of this call
            problem = f"{request.shown} cannot be asked: {type(error).__name__}"
            return Answer(error=problem, is_passing=True, is_sensitive=request.is_sensitive)

    async def _asked(self, request: Request) -> Answer:
        if request.protocol == "redis":
            return await ask_redis(request, self._lookup, self._context())
        if request.protocol == "postgres":
            return await ask_postgres(request, self._lookup)
        ask = ask_prometheus if request.protocol == "prometheus" else ask_http
        return await ask(request, self._lookup, self._context(), self._clock.now())

    def _context(self) -> ssl.SSLContext:
        # Not before it is needed: to read all trusted certificates takes some tens of milliseconds.
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    @asynccontextmanager
    async def _turn(self, place: Place) -> AsyncIterator[None]:
        queue = self._queues.setdefault(place, _Queue())
        queue.users += 1
        try:
            # The host's first: whoever waits for a host holds nothing that others wait for.
            async with queue.free, self._all:
                yield
        finally:
            queue.users -= 1
            if not queue.users:
                del self._queues[place]
