"""The embedded cluster: the API server, its simulated controllers, and its transports."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Literal, Self, TypeAlias

from konverge.clock import Clock, Entropy
from konverge_cluster._internal.embedded.access.access_filter import AccessFilter
from konverge_cluster._internal.embedded.access.authorization import AlwaysAllowAuthorizer, RbacAuthorizer
from konverge_cluster._internal.embedded.access.default_roles import build_default_roles
from konverge_cluster._internal.embedded.access.service_account_tokens import ServiceAccountTokens
from konverge_cluster._internal.embedded.access.users import User
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.audit_log import AuditLog
from konverge_cluster._internal.embedded.controllers import DEFAULT_INTEGRATIONS, ControllerManager, ImageRules
from konverge_cluster._internal.embedded.http_server import serve_http
from konverge_cluster._internal.embedded.in_process_transport import InProcessTransport
from konverge_cluster._internal.embedded.request_handler import RequestHandler
from konverge_cluster._internal.embedded.webhooks.webhook_caller import WebhookCaller

__all__ = ["Authorization", "LocalCluster"]

Authorization: TypeAlias = Literal["none", "rbac"]


class LocalCluster:
    """A Kubernetes cluster in this process. Use it as an async context manager; the exit stops everything.

    Args:
        clock: The clock of the cluster; with a `konverge.clock.SimulatedClock` on a simulated loop, hours pass at once.
        entropy: The source of randomness for UIDs, generated names, addresses and backoff.
        controllers: True to simulate the built-in controllers, the scheduler and the kubelet. Otherwise the cluster is
            only an API server, which stores objects.
        history: The number of changes that the server keeps for watches and paged lists.
        authorization: With ``none``, every client may do everything. With ``rbac``, Roles and bindings decide. Over
            HTTP, users send a token of a ServiceAccount or one of `tokens`; a transport of this process without a token
            is an administrator's.
        tokens: Predefined tokens and their users.
        requires_token: True to answer requests over HTTP without a token with 401.
        integrations: The kinds that become ready although the cluster has no cloud, ingress controller, metrics or
            storage: any of ``HorizontalPodAutoscaler``, ``Ingress``, ``PersistentVolume`` (the binding of claims, and
            new volumes for those of the class ``standard``) and ``Service`` (its type LoadBalancer).

    Attributes:
        api: The Python interface of the server.
        images: The behavior of containers by image.
        requests: The last requests, oldest first.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        entropy: Entropy,
        controllers: bool = True,
        history: int = 20_000,
        authorization: Authorization = "none",
        tokens: Mapping[str, User] | None = None,
        requires_token: bool = False,
        integrations: Collection[str] = DEFAULT_INTEGRATIONS,
    ) -> None:
        self._clock = clock
        self._integrations = integrations
        self._entropy = entropy
        self._runs_controllers = controllers
        self._running: AsyncExitStack | None = None
        self._url = ""
        self.api: ApiServer = ApiServer(clock=clock, entropy=entropy, history=history)
        self.images: ImageRules = ImageRules()
        self.requests: AuditLog = AuditLog()
        self._caller = WebhookCaller(clock)
        is_open = authorization == "none"
        if not is_open:
            for gvk, obj in build_default_roles():
                self.api.create(gvk, obj, manager="kube-apiserver")
        gate = AccessFilter(
            ServiceAccountTokens(self.api.storage, clock, entropy, tokens or {}),
            AlwaysAllowAuthorizer() if is_open else RbacAuthorizer(self.api.storage),
            is_open=is_open and not requires_token,
            requires_token=requires_token,
        )
        self._handler = RequestHandler(
            self.api, clock=clock, entropy=entropy, audit=self.requests, caller=self._caller, gate=gate
        )

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            if self._runs_controllers:
                group = await stack.enter_async_context(asyncio.TaskGroup())
                manager = ControllerManager(
                    self.api,
                    self._clock,
                    self._entropy,
                    self.images,
                    integrations=self._integrations,
                    caller=self._caller,
                )
                running = group.create_task(manager.run(), name="controllers")
                stack.callback(running.cancel)
            stack.callback(self._handler.close)
            self._running = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.__aexit__(kind, error, trace)

    def transport(self, user_agent: str = "") -> InProcessTransport:
        """Return a transport that calls the cluster without a network.

        Args:
            user_agent: The user agent of requests that have none.
        """
        return InProcessTransport(self._handler, self._clock, user_agent=user_agent)

    async def serve(self, port: int = 0, context: ssl.SSLContext | None = None) -> str:
        """Serve HTTP on loopback until the cluster stops, and return the URL; a second call returns the same URL.

        Args:
            port: The port; zero for any free port.
            context: The TLS context with the server's certificate; None for HTTP without TLS.

        Raises:
            RuntimeError: The cluster is not running.
            OSError: The port is in use.
        """
        if self._running is None:
            raise RuntimeError("the cluster is not running: enter it first (async with LocalCluster(...) as cluster)")
        if not self._url:
            self._url = await self._running.enter_async_context(serve_http(self._handler, port, context))
        return self._url
