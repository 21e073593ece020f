"""The client: one user's access to one cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from konverge._internal.client.object_list import ListPage
from konverge._internal.client.read_verbs import ReadVerbs
from konverge._internal.client.request_observer import RequestObserver
from konverge._internal.client.rest_client import RestClient
from konverge._internal.client.rest_mapper import RestMapper
from konverge._internal.client.sender import Sender
from konverge._internal.client.server_text_filter import ServerTextFilter
from konverge._internal.client.server_warnings import ServerWarning, ServerWarningLog
from konverge._internal.client.transport import SeparableTransport, Transport
from konverge._internal.client.write_permit import WritePermit
from konverge._internal.client.write_verbs import WriteVerbs
from konverge._internal.kube import GroupVersionKind, RestMapping
from konverge._internal.kube.secret_values import SecretValues
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy

__all__ = ["Client", "ListPage"]


class Client(ReadVerbs, WriteVerbs):
    """One user's access to one cluster. It sends a request for each call, and stores no objects.

    Every verb has a deadline that covers its retries. It raises `konverge.errors.ApiError` if the server rejects the
    request, `konverge.errors.ConnectionFailedError` if the server is unreachable or the deadline passes, and
    `konverge.errors.KindNotServedError` for a kind that the server does not serve. After the cancellation of a write,
    its result is unknown.

    Args:
        transport: The transport for the requests; the client closes it.
        user_agent: The user agent, as in the server's audit log. Its first part is the default field manager.
        timeout_seconds: The deadline of a verb.
        clock: The source of time.
        entropy: The source of jitter.
        observer: The observer of each attempt to send a request.
        permit: The permit to check before each attempt to write (all methods except GET, dry runs included); None to
            permit all writes. A forbidden write raises `konverge.errors.NoPermitError`. The deadline of a permitted
            write is at most the guaranteed remaining time of the permit.
        on_warning: The callback for each warning of the server; it must neither block nor raise. Each text is also
            logged once.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        user_agent: str = "konverge",
        timeout_seconds: float = 30.0,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        observer: RequestObserver | None = None,
        permit: WritePermit | None = None,
        on_warning: Callable[[ServerWarning], None] | None = None,
    ) -> None:
        self._is_borrowing = False
        sender = Sender(
            transport,
            user_agent,
            timeout_seconds,
            clock or SystemClock(),
            entropy or SystemEntropy(),
            observer,
            permit,
            ServerWarningLog(on_warning),
            ServerTextFilter(),
        )
        self._rest_client = RestClient(sender, RestMapper(sender))

    def with_permit(self, permit: WritePermit | None) -> Client:
        """Return a client that differs only in its permit.

        Both share the transport and the discovery cache; closing one closes both.
        """
        return self._derive(replace(self._rest_client.sender, permit=permit))

    def with_observer(self, observer: RequestObserver | None) -> Client:
        """Return a client that differs only in its observer; it shares the same parts as with `with_permit`."""
        return self._derive(replace(self._rest_client.sender, observer=observer))

    def with_own_connections(self) -> Client:
        """Return a client for the same cluster, user and settings that shares no connection with this one.

        It has no observer, no permit and no warning callback. It may be used in the event loop of another thread, and
        must be closed separately. The renewal of a Lease uses it, because it must not wait for other requests. A
        transport without connections (the embedded cluster in process) is shared, for the same event loop only.
        """
        own = self._rest_client.sender.transport
        transport = own.with_own_connections() if isinstance(own, SeparableTransport) else own
        other = copy.copy(self)
        other._is_borrowing = transport is own
        sender = replace(
            self._rest_client.sender,
            transport=transport,
            observer=None,
            permit=None,
            warnings=ServerWarningLog(),
            texts=ServerTextFilter(),
        )
        other._rest_client = self._rest_client.clone(sender)
        return other

    def _derive(self, sender: Sender) -> Client:
        other = copy.copy(self)
        other._rest_client = self._rest_client.with_sender(sender)
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the transport, unless another client owns it."""
        if not self._is_borrowing:
            await self._rest_client.sender.transport.close()

    @property
    def host(self) -> str:
        """The host and port of the API server; empty for a transport without them."""
        return str(getattr(self._rest_client.sender.transport, "host", ""))

    @property
    def secret_values(self) -> SecretValues:
        """The values of all Secrets that passed through this client, for redaction."""
        return self._rest_client.sender.texts.values

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the REST mapping of the kind."""
        return await self._rest_client.mapping(gvk)

    async def mappings(self) -> list[RestMapping]:
        """Return the mappings of all served kinds in each version, preferred versions first."""
        return list((await self._rest_client.mapper.fetch_served_kinds()).mappings)
