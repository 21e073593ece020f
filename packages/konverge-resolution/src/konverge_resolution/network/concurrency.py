"""How much is asked at once: a little of each server, so that one that hangs holds up only those who want it.

Where several tenants ask, none of them gets all the places of a server, nor all there are: whoever has servers that
hang, or asks for a thousand things at once, delays nobody else.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

__all__ = ["ConcurrencyLimiter"]

S = TypeVar("S", bound=Hashable)
K = TypeVar("K", bound=Hashable)


class ConcurrencyLimiter(Generic[S]):
    """Places by server and tenant; a server or tenant that nobody has a place of, or waits for, takes no memory.

    A free place goes to the waiting tenant that has the fewest places; of what that waits for, to the server whose last
    turn was longest ago, and there to whoever came first.

    Args:
        per_server: How many places there are at one server.
        total: How many there are at all; what waits for a place at its server has none of these.
        per_tenant: How many one tenant may have at one server, and at all; as many as there are when not given.
    """

    def __init__(self, per_server: int, total: int, *, per_tenant: tuple[int, int] | None = None) -> None:
        self._per_server = per_server
        self._in_all = total
        self._of_a_tenant_at_server, self._of_a_tenant = per_tenant or (per_server, total)
        self._used = 0
        self._at_servers: Counter[S] = Counter()
        self._of_tenants: Counter[str] = Counter()
        self._of_tenants_at_servers: Counter[tuple[str, S]] = Counter()
        self._waiting: dict[str, dict[S, deque[asyncio.Future[None]]]] = {}

    def __len__(self) -> int:
        return len({*self._at_servers, *(server for servers in self._waiting.values() for server in servers)})

    @asynccontextmanager
    async def slot(self, server: S, tenant: str = "") -> AsyncIterator[None]:
        """Have a place within the block.

        Args:
            server: Where.
            tenant: Who asks.
        """
        # Whoever waits could not have this one: free places are given away at once.
        if self._has_free_slot(server, tenant):
            self._take_slot(server, tenant)
        else:
            await self._wait_for_slot(server, tenant)
        try:
            yield
        finally:
            self._release_slot(server, tenant)

    async def _wait_for_slot(self, server: S, tenant: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, {}).setdefault(server, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._remove_waiter(server, tenant, turn)
            else:  # it was given one just now
                self._release_slot(server, tenant)
            raise

    def _has_free_slot(self, server: S, tenant: str) -> bool:
        return (
            self._used < self._in_all
            and self._at_servers[server] < self._per_server
            and self._of_tenants[tenant] < self._of_a_tenant
            and self._of_tenants_at_servers[tenant, server] < self._of_a_tenant_at_server
        )

    def _take_slot(self, server: S, tenant: str) -> None:
        self._used += 1
        self._at_servers[server] += 1
        self._of_tenants[tenant] += 1
        self._of_tenants_at_servers[tenant, server] += 1

    def _release_slot(self, server: S, tenant: str) -> None:
        self._used -= 1
        _decrement(self._at_servers, server)
        _decrement(self._of_tenants, tenant)
        _decrement(self._of_tenants_at_servers, (tenant, server))
        while (found := next(self._iter_next_waiters(), None)) is not None:
            other, where = found
            turn = self._waiting[other][where][0]
            self._remove_waiter(where, other, turn)
            if turn.done():
                continue  # cancelled, and has not heard of it
            self._take_slot(where, other)
            turn.set_result(None)
            if where in self._waiting.get(other, {}):
                self._waiting[other][where] = self._waiting[other].pop(where)  # the others first

    def _iter_next_waiters(self) -> Iterator[tuple[str, S]]:
        """Who may have a place now, whose turn it is first. Only servers whose places are taken are passed over."""
        if self._used >= self._in_all:
            return
        for tenant in sorted(self._waiting, key=self._of_tenants.__getitem__):
            if self._of_tenants[tenant] < self._of_a_tenant:
                yield from ((tenant, server) for server in self._waiting[tenant] if self._has_free_slot(server, tenant))

    def _remove_waiter(self, server: S, tenant: str, turn: asyncio.Future[None]) -> None:
        servers = self._waiting.get(tenant, {})
        if turn not in servers.get(server, ()):
            return  # somebody has seen before that it was cancelled
        servers[server].remove(turn)
        if not servers[server]:
            del servers[server]
        if not servers:
            del self._waiting[tenant]


def _decrement(counter: Counter[K], key: K) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
