"""From a host's name to a connection with an address that may be reached.

Names are resolved here and nowhere else, and a socket is connected to exactly the address that was judged. A name that
resolves to something else a moment later (DNS rebinding) gains nothing by it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from konverge.client.socket_factory import SocketFactory
from konverge_resolution.network.allowed_networks import AllowedNetworks, is_address
from konverge_resolution.network.errors import RefusedAddressError

__all__ = ["CheckedSockets", "DnsResolver", "Lookup", "create_connector", "open_connection", "resolve_permitted"]

Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a name, for a port, to addresses.

It raises `OSError` if it cannot.
"""

_MAX_ADDRESSES = 32
_MAX_THREADS = 32
_MAX_LOOKUPS_PER_CALLER = 8
_MAX_LOOKUPS = 1024
_ADDRESS_SECONDS = 5.0


class DnsResolver:
    """Resolves with the machine's own resolver, each name once at a time.

    A look-up blocks a thread until the name's servers answer, even when nobody waits for it any more. So there are many
    threads for nothing else, a name has at most one of them, and where several ask, each has a share of them (`of`).
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="konverge-names")
        self._running: dict[tuple[str, int], asyncio.Future[list[str]]] = {}
        self._callers: dict[str, set[asyncio.Future[list[str]]]] = {}

    def lookup_for(self, caller: str) -> Lookup:
        """A look-up for one of several who ask: names whose servers do not answer hold up only those who ask for them.

        Args:
            caller: Who.
        """

        async def lookup(host: str, port: int) -> list[str]:
            while (host, port) not in self._running and len(
                own := self._callers.get(caller, set())
            ) >= _MAX_LOOKUPS_PER_CALLER:
                await asyncio.wait(own, return_when=asyncio.FIRST_COMPLETED)
            return await self(host, port, caller)

        return lookup

    async def __call__(self, host: str, port: int, caller: str = "") -> list[str]:
        """The addresses of a host. Cancelled, it leaves the thread to end by itself.

        Raises:
            OSError: It has none.
        """
        key = (host, port)
        found = self._running.get(key)
        if found is None:
            if len(self._running) >= _MAX_LOOKUPS:
                raise OSError("too many names wait for their servers")
            loop = asyncio.get_running_loop()
            found = self._running[key] = loop.run_in_executor(self._threads, _query_addresses, host, port)
            self._callers.setdefault(caller, set()).add(found)
            found.add_done_callback(lambda done: self._on_lookup_done(key, caller, done))
        return await asyncio.shield(found)

    def close(self) -> None:
        """Let go of the threads; one that still waits for an answer ends when the system's resolver gives up."""
        for waiting in list(self._running.values()):
            waiting.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _on_lookup_done(self, key: tuple[str, int], caller: str, done: asyncio.Future[list[str]]) -> None:
        self._running.pop(key, None)
        self._callers[caller].discard(done)
        if not self._callers[caller]:
            del self._callers[caller]
        if not done.cancelled():
            done.exception()  # looked at: whoever waited for it may be gone


def _query_addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class CheckedResolver(AbstractResolver):
    """Resolves for aiohttp, and gives it only addresses that may be reached."""

    def __init__(self, lookup: Lookup, networks: AllowedNetworks) -> None:
        self._lookup = lookup
        self._networks = networks

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host.

        Raises:
            RefusedAddressError: None of them may be reached.
            OSError: It has none.
        """
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=_find_family(address),
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in await resolve_permitted(host, port, self._lookup, self._networks)
        ]

    async def close(self) -> None:
        """Nothing: what resolves belongs to somebody else."""


class CheckedSockets(SocketFactory):
    """Makes sockets for aiohttp, for addresses that may be reached: the last word before a connection is made.

    aiohttp asks no resolver where a URL has an address in place of a name.
    """

    def __init__(self, networks: AllowedNetworks) -> None:
        super().__init__()
        self._networks = networks

    def __call__(self, address: tuple[Any, ...]) -> socket.socket:
        """A new socket for an address as `socket.getaddrinfo` gives it.

        Raises:
            RefusedAddressError: It may not be reached.
        """
        reached = str(address[4][0])
        kind = self._networks.find_refusal(reached)
        if kind:
            raise RefusedAddressError(reached, reached, kind, self._networks.opened_by)
        return super().__call__(address)


async def resolve_permitted(host: str, port: int, lookup: Lookup, networks: AllowedNetworks) -> list[str]:
    """The addresses of a host that may be reached; at least one.

    Args:
        host: A name, or an address itself.
        port: What is to be connected to; some resolvers want to know.
        lookup: Resolves the name.
        networks: What may be reached besides the public internet.

    Raises:
        RefusedAddressError: There is none.
        OSError: It cannot be resolved.
    """
    found = [host] if is_address(host) else list(await lookup(host, port))[:_MAX_ADDRESSES]
    kinds = {address: networks.find_refusal(address) for address in found}
    may = [address for address, kind in kinds.items() if not kind]
    if may:
        return may
    if not kinds:
        raise OSError("no address")
    address, kind = next(iter(kinds.items()))
    raise RefusedAddressError(host, address, kind, networks.opened_by)


async def open_connection(host: str, port: int, lookup: Lookup, networks: AllowedNetworks) -> socket.socket:
    """A socket that is connected to one of the addresses of a host, which are tried one after the other.

    Args:
        host: A name, or an address itself.
        port: Where it listens.
        lookup: Resolves the name.
        networks: What may be reached besides the public internet.

    Raises:
        RefusedAddressError: None of them may be reached.
        OSError: None of them answers.
    """
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for address in await resolve_permitted(host, port, lookup, networks):
        made = socket.socket(_find_family(address), socket.SOCK_STREAM)
        made.setblocking(False)
        try:
            async with asyncio.timeout(_ADDRESS_SECONDS):
                await loop.sock_connect(made, (address, port))
        except OSError as error:  # a time-out is one
            made.close()
            failure = error
        except BaseException:
            made.close()
            raise
        else:
            return made
    raise failure or OSError("no address")


def _find_family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def create_connector(
    lookup: Lookup, networks: AllowedNetworks, sockets: CheckedSockets, *, limit: int
) -> aiohttp.TCPConnector:
    """What aiohttp connects with for a while. What it resolved is not remembered: each connection is judged anew.

    Args:
        lookup: Resolves names.
        networks: What may be reached.
        sockets: Makes the sockets.
        limit: How many connections there may be.
    """
    return aiohttp.TCPConnector(
        resolver=CheckedResolver(lookup, networks),
        use_dns_cache=False,
        socket_factory=sockets,
        limit=limit,
    )
