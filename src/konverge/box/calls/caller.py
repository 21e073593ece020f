"""What all calls of a process share: a limit for each host, the answers that are kept, the resolver."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from konverge.box.calls.answers import Answer
from konverge.box.calls.failures import CallFailure
from konverge.box.calls.http import ask_http, ask_prometheus
from konverge.box.calls.memory import Memory
from konverge.box.calls.postgres import ask_postgres
from konverge.box.calls.redis import ask_redis
from konverge.box.calls.requests import Place, Request
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.network import Bounds, Lookup, Names, RefusedAddressError, Trust

__all__ = ["CALLS_AT_ONCE", "CALLS_TO_A_HOST", "Caller"]

CALLS_TO_A_HOST = 8
"""How many calls one host gets at once: one that hangs holds no more than these."""

CALLS_AT_ONCE = 256
"""How many connections there are at once."""


class Caller:
    """Makes calls; one for a process, in one event loop.

    A connection is made for each attempt and closed after it: it goes to an address that is judged now, and no call
    fails because a server has closed what was left open. What asks often declares ``cacheFor``.

    Args:
        clock: Waits between attempts, and tells how old an answer is.
        entropy: Draws the pauses.
        lookup: Resolves names; the machine's resolver unless given.
        environment: Where ``auth.env`` looks; None where nothing is sent, and no call needs its credential.
        tls: Whose certificates are trusted; the machine's authorities' unless given.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        lookup: Lookup | None = None,
        environment: Mapping[str, str] | None = os.environ,
        tls: Trust | None = None,
    ) -> None:
        self.environment = environment
        self._clock = clock or SystemClock()
        self._entropy = entropy or SystemEntropy()
        self._names: Names | None = None
        if lookup is None:
            lookup = self._names = Names()
        self._lookup = lookup
        self._tls = tls or Trust()
        self._memory = Memory(self._clock)
        self._bounds = Bounds[Place](CALLS_TO_A_HOST, CALLS_AT_ONCE)

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
            async with asyncio.timeout(request.timeout_seconds), self._bounds.place(request.place):
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
            return await ask_redis(request, self._lookup, self._tls)
        if request.protocol == "postgres":
            return await ask_postgres(request, self._lookup)
        ask = ask_prometheus if request.protocol == "prometheus" else ask_http
        return await ask(request, self._lookup, self._tls, self._clock.now())
