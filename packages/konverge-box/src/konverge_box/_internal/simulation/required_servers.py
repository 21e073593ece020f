"""The servers outside of the cluster that a simulation requires: are they there?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from konverge_box._internal.simulation.simulation_model import RequiredServer

__all__ = ["find_missing_servers"]

_CONNECT_SECONDS = 2.0


async def find_missing_servers(servers: Iterable[RequiredServer]) -> list[RequiredServer]:
    """Return the servers that accept no connection within two seconds. It needs an event loop in real time.

    Args:
        servers: The required servers.
    """
    servers = list(servers)
    accepted = await asyncio.gather(*(_accepts_connection(each.address) for each in servers))
    return [server for server, is_there in zip(servers, accepted, strict=True) if not is_there]


async def _accepts_connection(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, int(port))
    except (OSError, OverflowError):  # a refused connection, an unknown name, a timeout, no port
        return False
    writer.close()
    return True
