"""`Client`: one user's access to one cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from konverge.client.object_list import ListPage
from konverge.client.read_verbs import ReadVerbs
from konverge.client.request_observer import RequestObserver
from konverge.client.rest_client import RestClient
from konverge.client.rest_mapper import RestMapper
from konverge.client.sender import Sender
from konverge.client.server_text_filter import ServerTextFilter
from konverge.client.server_warnings import ServerWarning, ServerWarningLog
from konverge.client.transport import SeparableTransport, Transport
from konverge.client.write_permit import WritePermit
from konverge.client.write_verbs import WriteVerbs
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.kube import GroupVersionKind, RestMapping
from konverge.kube.secret_values import SecretValues

__all__ = ["Client", "ListPage"]


class Client(ReadVerbs, WriteVerbs):
    """One user's access to one cluster. It sends each request; it holds no objects.

    Every verb has a deadline that covers its retries, and raises `konverge.errors.ApiError` when the server refuses,
    `konverge.errors.ConnectionFailedError` when it cannot be reached or the deadline passes, and
    `konverge.errors.KindNotServedError` for a kind that it does not serve. Cancelling a write leaves open whether it
    happened.

    Args:
        transport: What carries the requests; the client closes it.
        user_agent: Who asks, as the server's audit log shows it. A field manager that is not named is its first part.
        timeout_seconds: The deadline of a verb.
        clock: Measures deadlines and waits between retries.
        entropy: Draws the jitter of those waits.
        observer: Hears of each attempt to send a request.
        permit: Is asked before each attempt to write (all but GET, dry runs included); None for writing at any time.
            A write that it forbids raises `konverge.errors.NoPermitError`, and one that it permits is given no more
            time than the permit is sure to last.
        on_warning: Hears of each warning that the server sends along; it may neither wait nor raise. Each text is
            logged besides, once.
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
        """A client that differs in its permit alone.

        Both share the transport and what they know of the server's kinds; closing one closes both.
        """
        return self._derive(replace(self._rest_client.sender, permit=permit))

    def with_observer(self, observer: RequestObserver | None) -> Client:
        """A client that differs in its observer alone; shared is what `with_permit` says."""
        return self._derive(replace(self._rest_client.sender, observer=observer))

    def with_own_connections(self) -> Client:
        """A client for the same cluster, user and settings that shares no connection with this one.

        Whoever observes this one, permits its writes or listens to its warnings has nothing to do with the other. It
        may be used in another thread's event loop, and is closed by itself: what a lease is renewed with must not wait
        for the requests of everybody else. A transport without connections (the embedded cluster in process) is shared,
        for the same event loop only.
        """
        found = self._rest_client.sender.transport
        transport = found.with_own_connections() if isinstance(found, SeparableTransport) else found
        other = copy.copy(self)
        other._is_borrowing = transport is found
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
        """Close the transport."""
        if not self._is_borrowing:
            await self._rest_client.sender.transport.close()

    @property
    def host(self) -> str:
        """The API server's host and port; empty for a transport that has none."""
        return str(getattr(self._rest_client.sender.transport, "host", ""))

    @property
    def secret_values(self) -> SecretValues:
        """The values of the Secrets that went through this client; what they are in is not shown."""
        return self._rest_client.sender.texts.values

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Where the kind is served and whether it is namespaced."""
        return await self._rest_client.mapping(gvk)

    async def mappings(self) -> list[RestMapping]:
        """Every kind that the server serves, each version of it, preferred versions first."""
        return list((await self._rest_client.mapper.fetch_served_kinds()).mappings)
