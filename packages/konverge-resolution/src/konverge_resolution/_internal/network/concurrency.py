"""Limits on concurrent requests: few for each server, so that a slow server delays only its own requests.

With several tenants, none of them can use all slots of a server, or all slots in total. A tenant with slow servers or a
thousand requests does not delay the others.
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
    """Limiter of slots by server and tenant; unused servers and tenants take no memory.

    A free slot goes to the waiting tenant with the fewest slots. Among the servers that it waits for, the least
    recently served one comes first, and there the longest waiting request.

    Args:
        per_server: Maximum number of slots at one server.
        total: Maximum number of slots in total; a request that waits for a slot at its server uses none.
        per_tenant: Maximum number of slots of one tenant at one server, and in total; unlimited when None.
    """

    def __init__(self, per_server: int, total: int, *, per_tenant: tuple[int, int] | None = None) -> None:
        self._per_server = per_server
        self._total = total
        self._per_tenant_and_server, self._per_tenant = per_tenant or (per_server, total)
        self._used = 0
        self._used_at_servers: Counter[S] = Counter()
        self._used_by_tenants: Counter[str] = Counter()
        self._used_by_tenants_at_servers: Counter[tuple[str, S]] = Counter()
        self._waiting: dict[str, dict[S, deque[asyncio.Future[None]]]] = {}

    def __len__(self) -> int:
        return len({*self._used_at_servers, *(server for servers in self._waiting.values() for server in servers)})

    @asynccontextmanager
    async def slot(self, server: S, tenant: str = "") -> AsyncIterator[None]:
        """Hold a slot within the block.

        Args:
            server: The server.
            tenant: The tenant.
        """
        # A waiting request cannot use this slot: free slots are assigned at once.
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
            else:  # the slot was assigned just now
                self._release_slot(server, tenant)
            raise

    def _has_free_slot(self, server: S, tenant: str) -> bool:
        return (
            self._used < self._total
            and self._used_at_servers[server] < self._per_server
            and self._used_by_tenants[tenant] < self._per_tenant
            and self._used_by_tenants_at_servers[tenant, server] < self._per_tenant_and_server
        )

    def _take_slot(self, server: S, tenant: str) -> None:
        self._used += 1
        self._used_at_servers[server] += 1
        self._used_by_tenants[tenant] += 1
        self._used_by_tenants_at_servers[tenant, server] += 1

    def _release_slot(self, server: S, tenant: str) -> None:
        self._used -= 1
        _decrement(self._used_at_servers, server)
        _decrement(self._used_by_tenants, tenant)
        _decrement(self._used_by_tenants_at_servers, (tenant, server))
        while (waiter := next(self._iter_next_waiters(), None)) is not None:
            other, where = waiter
            turn = self._waiting[other][where][0]
            self._remove_waiter(where, other, turn)
            if turn.done():
                continue  # cancelled, but its task has not run since
            self._take_slot(where, other)
            turn.set_result(None)
            if where in self._waiting.get(other, {}):
                self._waiting[other][where] = self._waiting[other].pop(where)  # move it behind the other servers

    def _iter_next_waiters(self) -> Iterator[tuple[str, S]]:
        """Yield the waiting tenants and servers that may get a slot, in the order of their turn."""
        if self._used >= self._total:
            return
        for tenant in sorted(self._waiting, key=self._used_by_tenants.__getitem__):
            if self._used_by_tenants[tenant] < self._per_tenant:
                yield from ((tenant, server) for server in self._waiting[tenant] if self._has_free_slot(server, tenant))

    def _remove_waiter(self, server: S, tenant: str, turn: asyncio.Future[None]) -> None:
        servers = self._waiting.get(tenant, {})
        if turn not in servers.get(server, ()):
            return  # already removed as cancelled
        servers[server].remove(turn)
        if not servers[server]:
            del servers[server]
        if not servers:
            del self._waiting[tenant]


def _decrement(counter: Counter[K], key: K) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
