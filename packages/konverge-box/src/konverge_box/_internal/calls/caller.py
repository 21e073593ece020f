"""The caller, which all calls of a process share: limits for each host, the response cache, the DNS resolver."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge_box._internal.calls.call_errors import CallAttemptError
from konverge_box._internal.calls.call_result import CallResult
from konverge_box._internal.calls.http_calls import call_http, call_prometheus
from konverge_box._internal.calls.postgres_calls import call_postgres
from konverge_box._internal.calls.redis_calls import call_redis
from konverge_box._internal.calls.requests import CallRequest, HostPort
from konverge_box._internal.calls.response_cache import ResponseCache
from konverge_resolution._internal.network import (
    ConcurrencyLimiter,
    DnsResolver,
    Lookup,
    RefusedAddressError,
    TrustStore,
)

__all__ = ["MAX_CALLS", "MAX_CALLS_PER_HOST", "Caller"]

MAX_CALLS_PER_HOST = 8
"""Maximum number of concurrent calls to one host. A host that hangs blocks no more than these."""

MAX_CALLS = 256
"""Maximum number of concurrent connections."""


class Caller:
    """The sender of external calls. A process has one, in one event loop.

    Each attempt opens and closes its own connection: its address is checked at that time, and no call fails because
    the server has closed an idle connection. Frequent calls should declare ``cacheFor``.

    Args:
        clock: Waits between attempts, and determines the age of responses.
        entropy: The source of random retry delays.
        lookup: Resolves names (default: the resolver of the system).
        environment: The environment variables for ``auth.env``; None where no request is sent and no credential is
            needed.
        tls: The trusted certificates (default: the authorities of the system).
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        lookup: Lookup | None = None,
        environment: Mapping[str, str] | None = os.environ,
        tls: TrustStore | None = None,
    ) -> None:
        self.environment = environment
        self._clock = clock or SystemClock()
        self._entropy = entropy or SystemEntropy()
        self._names: DnsResolver | None = None
        if lookup is None:
            lookup = self._names = DnsResolver()
        self._lookup = lookup
        self._tls = tls or TrustStore()
        self._memory = ResponseCache(self._clock)
        self._bounds = ConcurrencyLimiter[HostPort](MAX_CALLS_PER_HOST, MAX_CALLS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Release the threads of the resolver. Running calls belong to their callers and end with them."""
        if self._names is not None:
            self._names.close()

    async def call(self, request: CallRequest) -> CallResult:
        """Send a request and return its result, which can be a failure; use a cached result if the request allows it.

        It takes at most the timeouts and delays of all attempts together, and longer only if another call for the same
        response is cancelled. A cancelled call leaves no connection open.
        """
        if not request.cache_seconds:
            return await self._call_with_retries(request)
        return await self._memory.get_or_call(
            request.compute_fingerprint(), request.cache_seconds, lambda: self._call_with_retries(request)
        )

    async def _call_with_retries(self, request: CallRequest) -> CallResult:
        failures = 0
        while True:
            answer = await self._attempt_call(request)
            if not answer.error:
                return answer
            failures += 1
            pause = (
                request.retry_policy.compute_delay(failures, answer.retry_after, self._entropy)
                if answer.is_transient
                else None
            )
            if pause is None:
                tries = f" ({failures} attempts)" if failures > 1 else ""
                return replace(answer, error=answer.error + tries)
            await self._clock.sleep(pause)

    async def _attempt_call(self, request: CallRequest) -> CallResult:
        try:
            async with asyncio.timeout(request.timeout_seconds), self._bounds.slot(request.host_port):
                return await self._send_request(request)
        except TimeoutError:
            problem = f"{request.display_origin} did not respond within {request.timeout_seconds:g} s"
            return CallResult(error=problem, is_transient=True, is_sensitive=request.is_sensitive)
        except CallAttemptError as failure:
            return CallResult(
                error=failure.problem, is_transient=failure.is_transient, is_sensitive=request.is_sensitive
            )
        except RefusedAddressError as refused:
            problem = str(refused)
            if request.is_sensitive or request.contains_credential(problem):
                problem = (
                    f"{request.display_origin}: connecting to its address is not allowed: its network is {refused.kind}"
                )
            problem += ". Expected a public address, or one in a network of spec.allowedNetworks"
            return CallResult(error=problem, is_sensitive=request.is_sensitive)
        except Exception as error:  # noqa: BLE001  # an error of a library about a server's response fails this call
            problem = f"{request.display_origin}: the call failed: {type(error).__name__}"
            return CallResult(error=problem, is_transient=True, is_sensitive=request.is_sensitive)

    async def _send_request(self, request: CallRequest) -> CallResult:
        if request.protocol == "redis":
            return await call_redis(request, self._lookup, self._tls)
        if request.protocol == "postgres":
            return await call_postgres(request, self._lookup)
        ask = call_prometheus if request.protocol == "prometheus" else call_http
        return await ask(request, self._lookup, self._tls, self._clock.now())
