"""Where servers listen."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
from dataclasses import dataclass

from konverge.errors import ConfigurationError

__all__ = ["ListenAddress", "open_listening_socket", "parse_listen_address"]

_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\[\]:\s]*):)?(?P<port>\d{1,5})", re.ASCII)
_BACKLOG = 64
_LOOPBACK = "127.0.0.1"
_ALL_INTERFACES = frozenset({"", "0.0.0.0", "::"})


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where a server listens.

    Args:
        host: A name or an IP address; empty for all interfaces.
        port: The port; 0 for any that is free.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def conflicts_with(self, other: ListenAddress) -> bool:
        """Tell whether a server at the one leaves no place for a server at the other."""
        if self.port != other.port or self.port == 0:
            return False
        return self.host == other.host or not _ALL_INTERFACES.isdisjoint((self.host, other.host))


def parse_listen_address(text: str) -> ListenAddress | None:
    """An address as operators' flags have it.

    ``host:port`` and ``[::1]:port`` say all; ``:port`` listens on all interfaces, as in Go; a port alone on loopback
    only. ``0`` and the empty text switch the server off, as in controller-runtime.

    Raises:
        ConfigurationError: It is none of these.
    """
    if text in ("", "0"):
        return None
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise ConfigurationError(
            f"an address is host:port, :port or a port (found {text!r}); 0 switches the server off"
        )
    host: str | None = found["host"]
    return ListenAddress(_LOOPBACK if host is None else host.strip("[]"), int(found["port"]))


async def open_listening_socket(address: ListenAddress, what: str) -> socket.socket:
    """A socket that listens there; one for all interfaces takes IPv4 and IPv6 where the machine has both.

    A name is looked up in a thread. The socket is made here: cancelled, a thread would leave it to nobody.

    Raises:
        ConfigurationError: That is not possible, for example because the port is taken.
    """
    try:
        if address.host:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            family, _, _, _, place = found[0]
            return socket.create_server(place[:2], family=family, backlog=_BACKLOG)
        return _bind_all_interfaces(address.port)
    except OSError as error:
        advice = "; each server of each process needs a port of its own" if error.errno == errno.EADDRINUSE else ""
        raise ConfigurationError(f"{what} cannot listen on {address}: {error.strerror or error}{advice}") from error


def _bind_all_interfaces(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("::", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
    return socket.create_server(("0.0.0.0", port), backlog=_BACKLOG)
