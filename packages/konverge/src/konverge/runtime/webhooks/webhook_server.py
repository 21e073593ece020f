"""`WebhookServer`: the webhooks of an operator at work, with their certificate."""

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

from konverge.client import Client
from konverge.clock import Clock, SystemClock
from konverge.errors import ConfigurationError, KonvergeError
from konverge.kube import Object, ObjectKey, RestMapping
from konverge.runtime.background import background_task
from konverge.runtime.certificate_watcher import CertificateWatcher
from konverge.runtime.webhooks.application import ServerLimits, WebhookApplication, run_server
from konverge.runtime.webhooks.hooks import OperatorHooks
from konverge.runtime.webhooks.registration import (
    ServiceReference,
    WebhookEndpoint,
    build_conversion_config,
    build_webhook_manifests,
    register,
)
from konverge.runtime.webhooks.webhook_observer import WebhookObserver

__all__ = ["WebhookOptions", "WebhookServer"]

_LOOPBACK = "127.0.0.1"

_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """How webhooks are served.

    Args:
        host: The address to listen at; empty for all of the machine's. Loopback is for development.
        port: The port; zero for any free one.
        certificate_folder: Where ``tls.crt`` and ``tls.key`` are, and ``ca.crt`` if there is one (as cert-manager
            fills a Secret).
        certificate_secret: The Secret in which replicas share a certificate of our own, which is renewed there. With
            neither folder nor Secret, there is a certificate of our own for this process: for development.
        service: The Service in front, for an operator in a cluster. None when the API server reaches `host` itself.
        ca_bundle: Whom the API server is to trust, in PEM; the folder's ``ca.crt`` when not given.
        poll_interval: How often the folder is looked at.
        grace: How long requests under way may take when the server stops.
        limits: What it takes on at once.
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
            await register(client, server.manifests("webapp"))

    Leaving it, or cancelling its block, lets requests under way end within the grace.

    Args:
        options: How.
        hooks: What.
        client: The cluster; only for a certificate in a Secret.
        clock: The time; the machine's when not given.
        observer: Hears of each request.

    Attributes:
        certificate: The certificate in use; its counters are for metrics. Usable after entry.

    Raises:
        ConfigurationError: On entry: the certificate cannot be used, the port is taken, or a certificate of our own is
            asked for and ``cryptography`` is not installed.
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
        """Where it listens."""
        return self._port

    @property
    def url(self) -> str:
        """Where an API server on this machine finds it."""
        return f"https://{_bracket_host(self._options.host or _LOOPBACK)}:{self._port}"

    @property
    def unready_reason(self) -> str:
        """Why it does not answer; empty when it does. For readiness."""
        if self._running is None:
            return "the webhook server is not running"
        return ""

    @property
    def endpoint(self) -> WebhookEndpoint:
        """Where the API server finds it and whom it is to trust.

        Raises:
            ConfigurationError: The folder's ``ca.crt`` cannot be read.
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
        """The webhook configurations to apply with `register`; the arguments are those of `build_webhook_manifests`."""
        return build_webhook_manifests(name, self._hooks, self.endpoint, annotations=annotations, selectors=selectors)

    def build_conversion_config(self, mapping: RestMapping) -> Object | None:
        """The ``clientConfig`` for `konverge.crd.crd_manifest`; None for a kind without conversion functions."""
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

        What fails after the first time is logged and tried again.

        Args:
            client: The cluster.
            manifests: Makes them, for example with `manifests` and `konverge.crd.crd_manifest`.
            applied: What was applied already; None applies them at once.
            look_seconds: How often it is looked whether they have changed.

        Raises:
            KonvergeError: Nothing was applied already, and the first time a manifest cannot be.
        """
        if applied is None:
            applied = manifests()
            await register(client, applied)
        while True:
            await self._clock.sleep(look_seconds)
            try:
                wanted = manifests()
                if wanted != applied:
                    await register(client, wanted)
                    applied = wanted
            except KonvergeError as problem:
                _log.error("the webhooks cannot be registered now, and are not trusted when this lasts: %s", problem)

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
        """Put a certificate of our own into the folder; what comes back renews it."""
        try:
            from konverge.runtime.webhooks.secret_certificate import SecretCertificate
            from konverge.runtime.webhooks.self_signed_certificate import SelfSignedCertificate
        except ImportError:
            raise ConfigurationError(
                "a certificate of our own needs the library cryptography: pip install 'konverge[webhooks]', or give "
                "the folder of a certificate"
            ) from None
        key = self._options.certificate_secret
        if key is None:
            return SelfSignedCertificate(folder, self._list_hosts(), self._clock).renew
        if self._client is None:
            raise ConfigurationError(
                f"the certificate is in the Secret {key}: expected a client to read it, found none"
            )
        shared = SecretCertificate(self._client, key, folder, self._list_hosts(), self._clock)
        await shared.refresh()
        return shared.watch

    def _list_hosts(self) -> list[str]:
        """Under which names and addresses the server is met."""
        hosts = [self._options.host or _LOOPBACK, "localhost"]
        if self._options.service is not None:
            hosts.append(self._options.service.host)
        return list(dict.fromkeys(hosts))


def _bracket_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
