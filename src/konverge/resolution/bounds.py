"""How much is fetched at once: a few from each remote, so that one that hangs holds up only those who want it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["RemoteBounds"]


class RemoteBounds:
    """Places by remote; a remote that nobody waits for takes no memory.

    Args:
        per_remote: How many fetches of one remote at once.
        in_all: How many at all; what waits for a place of its remote has none of these.
    """

    def __init__(self, per_remote: int = 4, in_all: int = 64) -> None:
        self._per_remote = per_remote
        self._in_all = asyncio.Semaphore(in_all)
        self._remotes: dict[str, tuple[asyncio.Semaphore, int]] = {}

    def __len__(self) -> int:
        return len(self._remotes)

    @asynccontextmanager
    async def place(self, remote: str) -> AsyncIterator[None]:
        """Have a place within the block, first come, first served."""
        semaphore, users = self._remotes.get(remote) or (asyncio.Semaphore(self._per_remote), 0)
        self._remotes[remote] = semaphore, users + 1
        try:
            async with semaphore, self._in_all:
                yield
        finally:
            semaphore, users = self._remotes[remote]
            if users == 1:
                del self._remotes[remote]
            else:
                self._remotes[remote] = semaphore, users - 1
