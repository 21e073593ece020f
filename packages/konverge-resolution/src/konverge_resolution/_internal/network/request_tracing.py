"""Traces of requests of aiohttp: their phases, for the progress of a resolution, and the reuse of connections."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import aiohttp

from konverge_resolution._internal.fetch_progress import FetchProgress

__all__ = ["RequestTrace", "create_trace_config"]


@dataclass(slots=True)
class RequestTrace:
    """Trace of one request; the context of the request in aiohttp.

    Args:
        progress: Receives the phases.
        host: The host of the request.
        is_reused: Whether the request uses a connection that was open before.
    """

    progress: FetchProgress
    host: str
    is_reused: bool = False


def create_trace_config() -> aiohttp.TraceConfig:
    """Return the configuration of aiohttp with which each request updates its `RequestTrace`."""
    config = aiohttp.TraceConfig()

    def begin(phase: str, *, is_reused: bool = False) -> Any:
        async def record(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
            trace: RequestTrace = context.trace_request_ctx
            trace.is_reused = is_reused
            trace.progress.enter(phase, trace.host)

        return record

    config.on_connection_create_start.append(begin("connecting to"))
    config.on_dns_resolvehost_start.append(begin("resolving the name of"))
    config.on_dns_resolvehost_end.append(begin("connecting to"))
    config.on_connection_create_end.append(begin("waiting for the response of"))
    config.on_connection_reuseconn.append(begin("waiting for the response of", is_reused=True))
    return config
