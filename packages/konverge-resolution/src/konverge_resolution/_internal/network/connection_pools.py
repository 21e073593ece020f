"""Open connections that requests of one tenant share.

A request uses an open connection only where everything that decided on it is the same: the tenant and the permitted
networks (the key of a pool), the server, the trusted certificates and the proxy (aiohttp's key within a pool). The
address of a connection was checked when it opened, and never changes. URLs are checked for each request, also on an
open connection. Without a free pool, requests have connections of their own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple, Self

import aiohttp

from konverge_resolution._internal.network.dialer import CheckedSockets

__all__ = ["IDLE_SECONDS", "ConnectionPools", "OpenConnections", "PoolKey"]

IDLE_SECONDS = 5.0
"""A connection without requests is closed after this time."""

_MAX_POOLS = 64


class PoolKey(NamedTuple):
    """Key of connections that may be shared.

    Args:
        tenant: The namespace of the requests.
        networks: The permitted networks.
    """

    tenant: str
    networks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenConnections:
    """Connections, and the sockets below them.

    Args:
        session: The client session of aiohttp, which owns its connector.
        sockets: The factory of the sockets of that connector.
    """

    session: aiohttp.ClientSession
    sockets: CheckedSockets

    async def close(self) -> None:
        """Close all connections, also those that aiohttp has forgotten."""
        try:
            await self.session.close()
        finally:
            await self.sockets.close_all()


@dataclass(slots=True)
class _Pool:
    connections: OpenConnections
    users: int = 0


class ConnectionPools:
    """Pools of open connections; an asynchronous context manager that closes them at its end.

    Args:
        max_pools: Maximum number of pools; above it, the pool that was unused for the longest time is closed.
    """

    def __init__(self, max_pools: int = _MAX_POOLS) -> None:
        self._max_pools = max_pools
        self._pools: dict[PoolKey, _Pool] = {}  # those that were used last are at the end
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_closed = True
        while self._pools:
            _, pool = self._pools.popitem()
            await pool.connections.close()

    @asynccontextmanager
    async def borrow(self, key: PoolKey, create: Callable[[], OpenConnections]) -> AsyncIterator[OpenConnections]:
        """Provide the connections of a pool; without a free pool, connections that are closed after the block.

        Args:
            key: The key of the pool.
            create: Creates connections without any open one.
        """
        pool = self._pools.pop(key, None)
        if pool is None and (self._is_closed or not await self._make_room()):
            connections = create()
            try:
                yield connections
            finally:
                await connections.close()
            return
        # Another request may have created the pool while this one made room.
        pool = self._pools.pop(key, None) or pool or _Pool(create())
        self._pools[key] = pool
        pool.users += 1
        try:
            yield pool.connections
        finally:
            pool.users -= 1

    async def _make_room(self) -> bool:
        """Close an unused pool if there are too many; return False if all are in use."""
        if len(self._pools) < self._max_pools:
            return True
        unused = next((key for key, pool in self._pools.items() if not pool.users), None)
        if unused is None:
            return False
        await self._pools.pop(unused).connections.close()
        return True
