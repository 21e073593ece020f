"""The embedded cluster: the API server, the controllers that it plays, and the ways to reach it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Literal, Self, TypeAlias

from konverge.clock import Clock, Entropy
from konverge_cluster.embedded.access.access_filter import AccessFilter
from konverge_cluster.embedded.access.authorization import AlwaysAllowAuthorizer, RbacAuthorizer
from konverge_cluster.embedded.access.default_roles import build_default_roles
from konverge_cluster.embedded.access.service_account_tokens import ServiceAccountTokens
from konverge_cluster.embedded.access.users import User
from konverge_cluster.embedded.apiserver import ApiServer
from konverge_cluster.embedded.audit_log import AuditLog
from konverge_cluster.embedded.controllers import ControllerManager, ImageRules
from konverge_cluster.embedded.http_server import serve_http
from konverge_cluster.embedded.in_process_transport import InProcessTransport
from konverge_cluster.embedded.request_handler import RequestHandler
from konverge_cluster.embedded.webhooks.webhook_caller import WebhookCaller

__all__ = ["Authorization", "LocalCluster"]

Authorization: TypeAlias = Literal["none", "rbac"]


class LocalCluster:
    """A Kubernetes cluster in this process. Use it as an async context manager; leaving it stops everything.

    Args:
        clock: Its time; a `konverge.clock.SimulatedClock` on a simulated loop makes hours pass at once.
        entropy: Its randomness: UIDs, generated names, addresses, back-off.
        controllers: Whether the built-in controllers, the scheduler and the kubelet are played. Without them it is an
        API
            server alone: objects are stored, and nothing happens to them.
        history: How many changes the server remembers for watches and paged lists.
        authorization: ``none``: everybody may do everything, whoever they are. ``rbac``: Roles and bindings decide;
            over HTTP users show a token, that of a ServiceAccount or one of `tokens`, and a transport within this
            process that shows none is an administrator's.
        tokens: Tokens that are known beforehand, and whose they are.
        requires_token: Whether requests over HTTP without a token are answered 401.

    Attributes:
        api: The server's Python interface.
        images: What becomes of containers, by image.
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
    ) -> None:
        self._clock = clock
        self._entropy = entropy
        self._runs_controllers = controllers
        self._running: AsyncExitStack | None = None
        self._url = ""
        self.api = ApiServer(clock=clock, entropy=entropy, history=history)
        self.images = ImageRules()
        self.requests = AuditLog()
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
                players = ControllerManager(self.api, self._clock, self._entropy, self.images, caller=self._caller)
                playing = group.create_task(players.run(), name="players")
                stack.callback(playing.cancel)
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
        """A transport that reaches the cluster without a network.

        Args:
            user_agent: What requests say that have no user agent of their own.
        """
        return InProcessTransport(self._handler, self._clock, user_agent=user_agent)

    async def serve(self, port: int = 0, context: ssl.SSLContext | None = None) -> str:
        """Serve HTTP on loopback until the cluster is left, and answer the URL; a second call answers the same.

        Args:
            port: The port, zero for any free one.
            context: The server's certificate; None for HTTP without TLS.

        Raises:
            RuntimeError: The cluster is not running.
            OSError: The port is taken.
        """
        if self._running is None:
            raise RuntimeError("the cluster is not running: enter it first (async with LocalCluster(...) as cluster)")
        if not self._url:
            self._url = await self._running.enter_async_context(serve_http(self._handler, port, context))
        return self._url
