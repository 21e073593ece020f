"""How much is asked at once: a little of each server, so that one that hangs holds up only those who want it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

__all__ = ["Bounds"]

S = TypeVar("S", bound=Hashable)


class Bounds(Generic[S]):
    """Places by server; a server that nobody waits for takes no memory.

    Args:
        per_server: How many places there are at one server.
        in_all: How many there are at all; what waits for a place at its server has none of these.
    """

    def __init__(self, per_server: int, in_all: int) -> None:
        self._per_server = per_server
        self._in_all = asyncio.Semaphore(in_all)
        self._servers: dict[S, tuple[asyncio.Semaphore, int]] = {}

    def __len__(self) -> int:
        return len(self._servers)

    @asynccontextmanager
    async def place(self, server: S) -> AsyncIterator[None]:
        """Have a place within the block, first come, first served."""
        semaphore, users = self._servers.get(server) or (asyncio.Semaphore(self._per_server), 0)
        self._servers[server] = semaphore, users + 1
        try:
            async with semaphore, self._in_all:
                yield
        finally:
            semaphore, users = self._servers[server]
            if users == 1:
                del self._servers[server]
            else:
                self._servers[server] = semaphore, users - 1
