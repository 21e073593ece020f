"""Connections from a host name to a permitted address.

Names are resolved only here, and a socket connects to exactly the checked address. So a name that resolves to another
address afterwards (DNS rebinding) has no effect.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from konverge._internal.client.socket_factory import SocketFactory
from konverge_resolution._internal.network.allowed_networks import AllowedNetworks, is_address
from konverge_resolution._internal.network.errors import RefusedAddressError

__all__ = ["CheckedSockets", "DnsResolver", "Lookup", "create_connector", "open_connection", "resolve_permitted"]

Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a name and a port to addresses; raises `OSError` if it cannot.
"""

_MAX_ADDRESSES = 32
_MAX_THREADS = 32
_MAX_LOOKUPS_PER_CALLER = 8
_MAX_LOOKUPS = 1024
_ADDRESS_SECONDS = 5.0


class DnsResolver:
    """Resolver that uses the system's resolver, with one running lookup per name.

    A lookup blocks a thread until the name servers respond, even if its caller is cancelled. So it has many threads of
    its own, a name uses at most one, and each caller has a share of them (`lookup_for`).
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="konverge-names")
        self._running: dict[tuple[str, int], asyncio.Future[list[str]]] = {}
        self._callers: dict[str, set[asyncio.Future[list[str]]]] = {}

    def lookup_for(self, caller: str) -> Lookup:
        """Return a lookup for one caller: slow name servers delay only the callers that need them.

        Args:
            caller: The caller.
        """

        async def lookup(host: str, port: int) -> list[str]:
            while (host, port) not in self._running and len(
                own := self._callers.get(caller, set())
            ) >= _MAX_LOOKUPS_PER_CALLER:
                await asyncio.wait(own, return_when=asyncio.FIRST_COMPLETED)
            return await self(host, port, caller)

        return lookup

    async def __call__(self, host: str, port: int, caller: str = "") -> list[str]:
        """Return the addresses of a host. After a cancellation the thread ends by itself.

        Raises:
            OSError: The host has no address.
        """
        key = (host, port)
        running = self._running.get(key)
        if running is None:
            if len(self._running) >= _MAX_LOOKUPS:
                raise OSError("too many concurrent name lookups")
            loop = asyncio.get_running_loop()
            running = self._running[key] = loop.run_in_executor(self._threads, _query_addresses, host, port)
            self._callers.setdefault(caller, set()).add(running)
            running.add_done_callback(lambda done: self._on_lookup_done(key, caller, done))
        return await asyncio.shield(running)

    def close(self) -> None:
        """Release the threads; a running lookup ends with the timeout of the system's resolver."""
        for waiting in list(self._running.values()):
            waiting.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _on_lookup_done(self, key: tuple[str, int], caller: str, done: asyncio.Future[list[str]]) -> None:
        self._running.pop(key, None)
        self._callers[caller].discard(done)
        if not self._callers[caller]:
            del self._callers[caller]
        if not done.cancelled():
            done.exception()  # retrieve it so that asyncio does not log it; the caller may be cancelled


def _query_addresses(host: str, port: int) -> list[str]:
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class CheckedResolver(AbstractResolver):
    """Resolver for aiohttp that returns only permitted addresses."""

    def __init__(self, lookup: Lookup, networks: AllowedNetworks, sockets: CheckedSockets) -> None:
        self._lookup = lookup
        self._networks = networks
        self._sockets = sockets

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the permitted addresses of a host.

        Raises:
            RefusedAddressError: None of them is permitted.
            OSError: The host has no address.
        """
        addresses = await resolve_permitted(host, port, self._lookup, self._networks)
        if (host, port) in self._networks.proxies:
            self._sockets.permit_proxy(addresses, port)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=_find_family(address),
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Do nothing: the lookup has another owner."""


class CheckedSockets(SocketFactory):
    """Factory of sockets for aiohttp that checks the address: the last check before a connection opens.

    aiohttp uses no resolver for a URL with an address instead of a name.
    """

    def __init__(self, networks: AllowedNetworks) -> None:
        super().__init__()
        self._networks = networks
        self._proxies = set(networks.proxies)

    def permit_proxy(self, addresses: Iterable[str], port: int) -> None:
        """Permit the addresses of a proxy of the user's environment, with its port."""
        self._proxies.update((address, port) for address in addresses)

    def __call__(self, address: tuple[Any, ...]) -> socket.socket:
        """Return a new socket for an address in the form of `socket.getaddrinfo`.

        Raises:
            RefusedAddressError: The address is not permitted.
        """
        reached, port = str(address[4][0]), int(address[4][1])
        kind = self._networks.find_refusal(reached)
        if kind and (reached, port) not in self._proxies:
            raise RefusedAddressError(reached, reached, kind, self._networks.opened_by)
        return super().__call__(address)


async def resolve_permitted(host: str, port: int, lookup: Lookup, networks: AllowedNetworks) -> list[str]:
    """Return the permitted addresses of a host; at least one.

    Args:
        host: A name or an address.
        port: The port of the connection; some resolvers use it.
        lookup: Resolves the name.
        networks: The permitted networks besides the public internet.

    Raises:
        RefusedAddressError: No address is permitted.
        OSError: The name cannot be resolved.
    """
    addresses = [host] if is_address(host) else list(await lookup(host, port))[:_MAX_ADDRESSES]
    is_proxy = (host, port) in networks.proxies
    kinds = {address: "" if is_proxy else networks.find_refusal(address) for address in addresses}
    permitted = [address for address, kind in kinds.items() if not kind]
    if permitted:
        return permitted
    if not kinds:
        raise OSError("no address")
    address, kind = next(iter(kinds.items()))
    raise RefusedAddressError(host, address, kind, networks.opened_by)


async def open_connection(host: str, port: int, lookup: Lookup, networks: AllowedNetworks) -> socket.socket:
    """Return a socket that is connected to an address of a host; the addresses are tried in order.

    Args:
        host: A name or an address.
        port: The port of the connection.
        lookup: Resolves the name.
        networks: The permitted networks besides the public internet.

    Raises:
        RefusedAddressError: No address is permitted.
        OSError: No connection succeeds.
    """
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for address in await resolve_permitted(host, port, lookup, networks):
        connection = socket.socket(_find_family(address), socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            async with asyncio.timeout(_ADDRESS_SECONDS):
                await loop.sock_connect(connection, (address, port))
        except OSError as error:  # includes timeouts
            connection.close()
            failure = error
        except BaseException:  # also when cancelled: nobody else would close it
            connection.close()
            raise
        else:
            return connection
    raise failure or OSError("no address")


def _find_family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def create_connector(
    lookup: Lookup, networks: AllowedNetworks, sockets: CheckedSockets, *, limit: int, idle_seconds: float
) -> aiohttp.TCPConnector:
    """Return a connector for aiohttp. It caches no lookups, so that each new connection is checked.

    Args:
        lookup: Resolves names.
        networks: The permitted networks.
        sockets: The factory of sockets.
        limit: Maximum number of connections.
        idle_seconds: A connection without requests is closed after this time.
    """
    return aiohttp.TCPConnector(
        resolver=CheckedResolver(lookup, networks, sockets),
        use_dns_cache=False,
        socket_factory=sockets,
        limit=limit,
        keepalive_timeout=idle_seconds,
    )
