"""All observability servers of an operator, started and stopped together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

from aiohttp import web

from konverge._internal.kube import ObjectKey
from konverge._internal.runtime.background import background_task
from konverge._internal.runtime.certificate_watcher import CertificateWatcher
from konverge._internal.runtime.observability import probes
from konverge._internal.runtime.observability.authentication import (
    Authenticator,
    ClusterAuthorization,
    ReviewClient,
    TokenFileAuthenticator,
)
from konverge._internal.runtime.observability.debug_data import DebugCollector
from konverge._internal.runtime.observability.debug_page import CONTENT_SECURITY_POLICY, render_history, render_overview
from konverge._internal.runtime.observability.listen_address import ListenAddress, parse_listen_address
from konverge._internal.runtime.observability.metrics import Metrics
from konverge._internal.runtime.observability.probes import (
    DEFAULT_FRESHNESS,
    HealthCheck,
    HealthCheckResult,
    ProbeResponse,
)
from konverge._internal.runtime.observability.read_server import Handler, ReadServer, require_authentication
from konverge._internal.runtime.observability.sources import RuntimeSources
from konverge.clock import Clock, SystemClock
from konverge.errors import ConfigurationError

__all__ = ["ObservabilityOptions", "ObservabilityServers"]

_log = logging.getLogger("konverge.runtime")

_CHECK_SECONDS = 5.0
_MAX_SCRAPES = 4
_LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class ObservabilityOptions:
    """Options of the observability servers.

    Addresses are ``host:port``. ``:8080`` listens on all interfaces, which a Pod's kubelet and Prometheus need; a port
    alone listens only on loopback. ``0`` switches a server off; port 0 of a host (``127.0.0.1:0``) uses a free port.

    Args:
        metrics_address: Address of ``/metrics``, and of the debug page under ``/debug/``.
        probe_address: Address of ``/livez``, ``/healthz`` and ``/readyz``; always plain HTTP, without authentication.
        metrics_certificate: Serve metrics over HTTPS with ``tls.crt`` and ``tls.key`` of this directory; they are read
            again when they change.
        authenticate_with_cluster: Authorize clients of metrics and of the debug page through the API server: see
            `ClusterAuthorization`.
        token_file: Instead, allow clients with a token from this file (`TokenFileAuthenticator`).
        debug: Serve the debug page. It needs one of the two.
        freshness: Maximum age of the cache for the operator to be ready.
        live_checks: Additional checks of ``/livez`` and ``/healthz``. A failure restarts the process: a check must
            depend only on the process.
        ready_checks: Additional checks of ``/readyz``.
        per_owner_conditions: Export each owner's conditions as separate series; only without a `Metrics` object.

    Raises:
        ConfigurationError: An address is invalid, or the options contradict each other.
    """

    metrics_address: str = "127.0.0.1:8080"
    probe_address: str = "127.0.0.1:8081"
    metrics_certificate: str | Path | None = None
    authenticate_with_cluster: bool = False
    token_file: str | Path | None = None
    debug: bool = False
    freshness: timedelta = DEFAULT_FRESHNESS
    live_checks: Sequence[HealthCheck] = ()
    ready_checks: Sequence[HealthCheck] = ()
    per_owner_conditions: bool = False

    def __post_init__(self) -> None:
        metrics = parse_listen_address(self.metrics_address)
        probes_at = parse_listen_address(self.probe_address)
        if metrics is not None and probes_at is not None and metrics.conflicts_with(probes_at):
            raise ConfigurationError(
                f"metrics_address (--metrics) and probe_address (--probes): expected different ports, "
                f"found {probes_at} for both"
            )
        if self.authenticate_with_cluster and self.token_file is not None:
            raise ConfigurationError("authenticate_with_cluster and token_file: expected at most one, found both")
        if self.debug and not (self.authenticate_with_cluster or self.token_file is not None):
            raise ConfigurationError(
                "debug: expected authentication, found none: the debug page contains names of objects; "
                "set authenticate_with_cluster or token_file"
            )
        if self.debug and metrics is None:
            raise ConfigurationError(
                "debug: expected an enabled metrics_address, found it switched off: it serves the debug page"
            )

    @property
    def serves_metrics(self) -> bool:
        """True if metrics are switched on; probes alone need no library."""
        return parse_listen_address(self.metrics_address) is not None


class ObservabilityServers:
    """The servers of one run of an operator; ``async with`` it, around everything that they show.

    Metrics and probes respond from the start: an operator that cannot list its owners is the one that a user needs to
    inspect. It is live then, and not ready.

    Args:
        options: The options.
        sources: The operator; read anew for each response.
        metrics: The metrics of the operator, which read the sources from now on; created when not given.
        client: Sends reviews for `ObservabilityOptions.authenticate_with_cluster`; a client without a write permit.
        clock: The clock of the operator.

    Attributes:
        metrics: The metrics of the operator; None when metrics are switched off.

    Raises:
        ConfigurationError: prometheus-client is not installed, the token file is invalid, or the client is missing; on
            entry: a server cannot listen on its address, or a certificate cannot be loaded.
    """

    def __init__(
        self,
        options: ObservabilityOptions,
        sources: RuntimeSources,
        *,
        metrics: Metrics | None = None,
        client: ReviewClient | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._metrics_at = parse_listen_address(options.metrics_address)
        self._probes_at = parse_listen_address(options.probe_address)
        self.metrics = metrics
        if metrics is not None:
            metrics.set_sources(sources)
        elif self._metrics_at is not None:
            self.metrics = Metrics(sources, clock=self._clock, per_owner_conditions=options.per_owner_conditions)
        self._authenticator = _build_authenticator(options, client, self._clock)
        self._debug = DebugCollector(sources, self._clock, self.metrics)
        self._live = [*probes.build_livez_checks(sources), *options.live_checks]
        self._ready = [*probes.build_readyz_checks(sources, options.freshness), *options.ready_checks]
        self._scrapes = 0
        self._stack = AsyncExitStack()
        self._metrics_server: ReadServer | None = None
        self._probe_server: ReadServer | None = None

    @property
    def metrics_port(self) -> int | None:
        """The port of ``/metrics``; None when it is switched off or not entered."""
        return None if self._metrics_server is None else self._metrics_server.port

    @property
    def probe_port(self) -> int | None:
        """The port of the probes; None when they are switched off or not entered."""
        return None if self._probe_server is None else self._probe_server.port

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            if self._probes_at is not None:
                server = ReadServer("the server for probes", self._probes_at, self._build_probe_handlers(), self._clock)
                self._probe_server = await stack.enter_async_context(server)
            if self._metrics_at is not None and self.metrics is not None:
                await stack.enter_async_context(self.metrics.measure_process())
                self._metrics_server = await self._serve_metrics(stack, self._metrics_at, self.metrics)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._metrics_server = self._probe_server = None
        await self._stack.aclose()

    async def _serve_metrics(self, stack: AsyncExitStack, address: ListenAddress, metrics: Metrics) -> ReadServer:
        tls = None
        if self._options.metrics_certificate is not None:
            certificate = await asyncio.to_thread(CertificateWatcher, Path(self._options.metrics_certificate))
            metrics.add_certificate(certificate)
            await stack.enter_async_context(
                background_task(certificate.watch(self._clock), name="certificate of metrics")
            )
            tls = certificate.context
        elif self._authenticator is not None and address.host not in _LOOPBACK_HOSTS:
            _log.warning(
                "metrics at %s: tokens are sent in clear text; set metrics_certificate or use a loopback address",
                address,
            )
        handlers: dict[str, Handler] = {"/metrics": self._handle_scrape}
        if self._options.debug:
            handlers |= {"/debug/": self._handle_overview, "/debug/story": self._handle_history}
        guarded = {path: require_authentication(handler, self._authenticator) for path, handler in handlers.items()}
        server = ReadServer("the server for metrics", address, guarded, self._clock, tls=tls)
        return await stack.enter_async_context(server)

    async def _handle_scrape(self, request: web.Request) -> web.Response:
        assert self.metrics is not None
        if self._scrapes >= _MAX_SCRAPES:
            return web.Response(status=503, text="too many scrapes at once\n", headers={"Retry-After": "1"})
        self._scrapes += 1
        try:
            compressed = "gzip" in request.headers.get("Accept-Encoding", "")
            exposition = await self.metrics.render_exposition(compressed=compressed)
        finally:
            self._scrapes -= 1
        headers = {"Content-Type": exposition.content_type}
        if exposition.is_compressed:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=exposition.body, headers=headers)

    async def _handle_overview(self, request: web.Request) -> web.Response:
        sections = await self._debug.collect_sections()
        if _wants_json(request):
            return web.json_response(sections)
        return _to_html_response(render_overview(sections))

    async def _handle_history(self, request: web.Request) -> web.Response:
        query = request.query
        controller, key = query.get("controller", ""), ObjectKey(query.get("namespace", ""), query.get("name", ""))
        rows = self._debug.get_history(controller, key)
        if rows is None:
            return web.Response(status=404, text="no controller with this name\n")
        return (
            web.json_response(rows)
            if _wants_json(request)
            else _to_html_response(render_history(controller, key, rows))
        )

    def _build_probe_handlers(self) -> dict[str, Handler]:
        return {
            path: handler
            for name, checks in (("healthz", self._live), ("livez", self._live), ("readyz", self._ready))
            for path, handler in (
                (f"/{name}", _build_probe_handler(name, checks)),
                (f"/{name}/{{check}}", _build_check_handler(checks)),
            )
        }


def _build_authenticator(
    options: ObservabilityOptions, client: ReviewClient | None, clock: Clock
) -> Authenticator | None:
    if options.token_file is not None:
        return TokenFileAuthenticator(options.token_file)
    if not options.authenticate_with_cluster:
        return None
    if client is None:
        raise ConfigurationError("authenticate_with_cluster: expected a client, found none")
    return ClusterAuthorization(client, clock=clock)


def _build_probe_handler(name: str, checks: Sequence[HealthCheck]) -> Handler:
    async def handle_probe(request: web.Request) -> web.Response:
        excluded = set(request.query.getall("exclude", []))
        outcomes = await asyncio.gather(
            *(_exclude_check(check) if check.name in excluded else _run_check(check) for check in checks)
        )
        return _to_text_response(
            probes.build_probe_response(name, outcomes, exclude=excluded, verbose="verbose" in request.query)
        )

    return handle_probe


def _build_check_handler(checks: Sequence[HealthCheck]) -> Handler:
    by_name = {check.name: check for check in checks}

    async def handle_check(request: web.Request) -> web.Response:
        check = by_name.get(request.match_info["check"])
        if check is None:
            return web.Response(status=404, text="404 page not found\n")
        return _to_text_response(probes.build_check_response(await _run_check(check)))

    return handle_check


async def _run_check(check: HealthCheck) -> HealthCheckResult:
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            return await probes.run_check(check)
    except TimeoutError:
        return HealthCheckResult(check.name, f"no result within {_CHECK_SECONDS:g} s")


async def _exclude_check(check: HealthCheck) -> HealthCheckResult:
    return HealthCheckResult(check.name, is_excluded=True)


def _to_text_response(response: ProbeResponse) -> web.Response:
    return web.Response(status=response.status, text=response.text)


def _to_html_response(page: str) -> web.Response:
    headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Referrer-Policy": "no-referrer"}
    return web.Response(text=page, content_type="text/html", headers=headers)


def _wants_json(request: web.Request) -> bool:
    return request.query.get("format") == "json" or "application/json" in request.headers.get("Accept", "")
