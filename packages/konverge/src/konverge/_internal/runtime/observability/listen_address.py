"""Listen addresses of servers, and their sockets."""

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
    """The address on which a server listens.

    Args:
        host: A name or an IP address; empty for all interfaces.
        port: The port; 0 for any free port.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def conflicts_with(self, other: ListenAddress) -> bool:
        """Return whether two servers cannot listen on both addresses."""
        if self.port != other.port or self.port == 0:
            return False
        return self.host == other.host or not _ALL_INTERFACES.isdisjoint((self.host, other.host))


def parse_listen_address(text: str) -> ListenAddress | None:
    """Parse an address of an option.

    ``host:port`` and ``[::1]:port`` are complete; ``:port`` listens on all interfaces, as in Go; a port alone listens
    only on loopback. ``0`` and the empty text switch the server off, as in controller-runtime.

    Raises:
        ConfigurationError: The text has none of these forms.
    """
    if text in ("", "0"):
        return None
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ConfigurationError(
            f"listen address: expected host:port, :port or a port, found {text!r}; 0 switches the server off"
        )
    host: str | None = match["host"]
    return ListenAddress(_LOOPBACK if host is None else host.strip("[]"), int(match["port"]))


async def open_listening_socket(address: ListenAddress, what: str) -> socket.socket:
    """Return a listening socket; one for all interfaces accepts IPv4 and IPv6 if the machine has both.

    A thread resolves a name. The socket is created here: a thread would leak it after a cancellation.

    Raises:
        ConfigurationError: The socket cannot be opened, for example because the port is in use.
    """
    try:
        if address.host:
            loop = asyncio.get_running_loop()
            addresses = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            family, _, _, _, socket_address = addresses[0]
            return socket.create_server(socket_address[:2], family=family, backlog=_BACKLOG)
        return _bind_all_interfaces(address.port)
    except OSError as error:
        advice = "; give each server of each process its own port" if error.errno == errno.EADDRINUSE else ""
        raise ConfigurationError(f"{what} cannot listen on {address}: {error.strerror or error}{advice}") from error


def _bind_all_interfaces(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("::", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
    return socket.create_server(("0.0.0.0", port), backlog=_BACKLOG)
