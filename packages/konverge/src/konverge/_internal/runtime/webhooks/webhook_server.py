"""The webhook server of an operator, with its certificate."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from konverge._internal.client import Client
from konverge._internal.kube import Object, ObjectKey, RestMapping
from konverge._internal.runtime.background import background_task
from konverge._internal.runtime.certificate_watcher import CertificateWatcher
from konverge._internal.runtime.webhooks.application import ServerLimits, WebhookApplication, run_server
from konverge._internal.runtime.webhooks.hooks import OperatorHooks
from konverge._internal.runtime.webhooks.registration import (
    ServiceReference,
    WebhookEndpoint,
    build_conversion_config,
    build_webhook_manifests,
    register,
)
from konverge._internal.runtime.webhooks.webhook_observer import WebhookObserver
from konverge.clock import Clock, SystemClock
from konverge.errors import ConfigurationError, KonvergeError

__all__ = ["WebhookOptions", "WebhookServer"]

_LOOPBACK = "127.0.0.1"

_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Options of the webhook server.

    Args:
        host: The address to listen on; empty for all interfaces. Loopback is for development.
        port: The port; zero for any free one.
        certificate_folder: Directory with ``tls.crt`` and ``tls.key``, and optionally ``ca.crt`` (as cert-manager fills
            a Secret).
        certificate_secret: The Secret in which replicas share a self-signed certificate, which is renewed there.
            Without directory and Secret, this process uses its own self-signed certificate: for development.
        service: The Service in front, for an operator in a cluster. None when the API server reaches `host` itself.
        ca_bundle: Authorities that the API server must trust, in PEM; the directory's ``ca.crt`` when not given.
        poll_interval: Interval of the checks of the directory.
        grace: Time for running requests to finish when the server stops.
        limits: Limits on concurrency, memory and time.
    """

    host: str = _LOOPBACK
    port: int = 9443
    certificate_folder: Path | None = None
    certificate_secret: ObjectKey | None = None
    service: ServiceReference | None = None
    ca_bundle: bytes = field(default=b"", repr=False)
    poll_interval: timedelta = timedelta(seconds=10)
    grace: timedelta = timedelta(seconds=10)
    limits: ServerLimits = field(default_factory=ServerLimits)


class WebhookServer:
    """Serves hooks while its block runs.

    ::

        async with WebhookServer(options, registry.hooks()) as server:
            await register(client, server.build_manifests("webapp"))

    Leaving or cancelling the block lets running requests end within the grace period.

    Args:
        options: The options.
        hooks: The webhooks.
        client: The cluster; only for a certificate in a Secret.
        clock: Source of time; the system's when not given.
        observer: Receives metrics of each request.

    Attributes:
        certificate: The certificate in use; its counters are for metrics. Usable after entry.

    Raises:
        ConfigurationError: On entry: the certificate cannot be loaded, the port is in use, or a self-signed certificate
            is requested and ``cryptography`` is not installed.
    """

    certificate: CertificateWatcher

    def __init__(
        self,
        options: WebhookOptions,
        hooks: OperatorHooks,
        *,
        client: Client | None = None,
        clock: Clock | None = None,
        observer: WebhookObserver | None = None,
    ) -> None:
        self._options = options
        self._hooks = hooks
        self._client = client
        self._clock = clock or SystemClock()
        self._observer = observer
        self._running: AsyncExitStack | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._port

    @property
    def url(self) -> str:
        """The URL of the server for an API server on this machine."""
        return f"https://{_bracket_host(self._options.host or _LOOPBACK)}:{self._port}"

    @property
    def unready_reason(self) -> str:
        """The reason why the server does not respond; empty when it does. For readiness."""
        if self._running is None:
            return "the webhook server is not running"
        return ""

    @property
    def endpoint(self) -> WebhookEndpoint:
        """The location of the server for the API server, with the trusted authorities.

        Raises:
            ConfigurationError: The directory's ``ca.crt`` cannot be read.
        """
        bundle = self._options.ca_bundle or self.certificate.read_authorities()
        return WebhookEndpoint(self._options.service or self.url, bundle)

    def build_manifests(
        self,
        name: str,
        *,
        annotations: Mapping[str, str] | None = None,
        selectors: Mapping[str, Any] | None = None,
    ) -> list[Object]:
        """Return the webhook configurations for `register`; the arguments are those of `build_webhook_manifests`."""
        return build_webhook_manifests(name, self._hooks, self.endpoint, annotations=annotations, selectors=selectors)

    def build_conversion_config(self, mapping: RestMapping) -> Object | None:
        """Return the ``clientConfig`` for `konverge.crd.crd_manifest`; None for a kind without conversion functions."""
        return build_conversion_config(mapping, self._hooks, self.endpoint)

    async def keep_registered(
        self,
        client: Client,
        manifests: Callable[[], Sequence[Object]],
        *,
        applied: Sequence[Object] | None = None,
        look_seconds: float = 10.0,
    ) -> None:
        """Apply the manifests, and again whenever they change with the certificate's authorities; until cancelled.

        A failure after the first application is logged and retried.

        Args:
            client: The cluster.
            manifests: Builds them, for example with `build_manifests` and `konverge.crd.crd_manifest`.
            applied: The manifests that are already applied; None applies them at once.
            look_seconds: Interval of the checks for changes.

        Raises:
            KonvergeError: The first application fails; only without `applied`.
        """
        if applied is None:
            applied = manifests()
            await register(client, applied)
        while True:
            await self._clock.sleep(look_seconds)
            try:
                current = manifests()
                if current != applied:
                    await register(client, current)
                    applied = current
            except KonvergeError as problem:
                _log.error(
                    "registering the webhooks failed, retry follows; until then the API server may not trust them: %s",
                    problem,
                )

    async def __aenter__(self) -> Self:
        options = self._options
        async with AsyncExitStack() as stack:
            folder = options.certificate_folder
            renewing = None
            if folder is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="konverge-webhooks-")))
                renewing = await self._provision_certificate(folder)
            self.certificate = await asyncio.to_thread(CertificateWatcher, folder)
            poll_seconds = options.poll_interval.total_seconds()
            await stack.enter_async_context(
                background_task(self.certificate.watch(self._clock, poll_seconds=poll_seconds))
            )
            if renewing is not None:
                await stack.enter_async_context(background_task(renewing()))
            application = WebhookApplication(self._hooks, self._clock, limits=options.limits, observer=self._observer)
            self._port = await stack.enter_async_context(
                run_server(
                    application,
                    self.certificate.context,
                    options.host,
                    options.port,
                    grace_seconds=options.grace.total_seconds(),
                )
            )
            self._running = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.__aexit__(kind, error, traceback)

    async def _provision_certificate(self, folder: Path) -> Callable[[], Coroutine[Any, Any, None]]:
        """Write a self-signed certificate to the directory; return a function that renews it."""
        try:
            from konverge._internal.runtime.webhooks.secret_certificate import SecretCertificate
            from konverge._internal.runtime.webhooks.self_signed_certificate import SelfSignedCertificate
        except ImportError:
            raise ConfigurationError(
                "self-signed certificate: expected the library cryptography, found none; run pip install "
                "'konverge[webhooks]', or set certificate_folder"
            ) from None
        key = self._options.certificate_secret
        if key is None:
            return SelfSignedCertificate(folder, self._list_hosts(), self._clock).renew
        if self._client is None:
            raise ConfigurationError(f"certificate in Secret {key}: expected a client to read it, found none")
        shared = SecretCertificate(self._client, key, folder, self._list_hosts(), self._clock)
        await shared.refresh()
        return shared.watch

    def _list_hosts(self) -> list[str]:
        """Return the names and addresses of the server."""
        hosts = [self._options.host or _LOOPBACK, "localhost"]
        if self._options.service is not None:
            hosts.append(self._options.service.host)
        return list(dict.fromkeys(hosts))


def _bracket_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
