"""The sockets of a transport: they detect a vanished peer, never send too late, and are closed together."""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

__all__ = ["SocketFactory", "send_guard"]

# A vanished peer is detected after about a minute, and the mapping in a NAT stays open.
_IDLE_SECONDS, _INTERVAL_SECONDS, _PROBES = 30, 10, 3
_END_SECONDS = 1.0


_check_before_sending: ContextVar[Callable[[], None] | None] = ContextVar("_check_before_sending", default=None)


@contextmanager
def send_guard(check: Callable[[], None]) -> Iterator[None]:
    """Call a function immediately before each system call that sends bytes written within the block.

    If the function raises an OSError, the connection breaks, and the bytes are not sent. This also applies to bytes
    that wait for a free send buffer: asyncio sends them later in the context in which they were written.
    """
    outer = _check_before_sending.set(check)
    try:
        yield
    finally:
        _check_before_sending.reset(outer)


class _GuardedSocket(socket.socket):
    """A socket that calls the guard of the sending task.

    Between an earlier check and the system call there are an encryption and switches to other threads, and a busy
    process is frozen there often enough to matter. Only the moment between this check and the kernel remains.
    """

    __slots__ = ()

    def send(self, data: Any, flags: int = 0, /) -> int:
        _check()
        return super().send(data, flags)

    def sendmsg(self, buffers: Iterable[Any], /, *others: Any) -> int:
        _check()
        return super().sendmsg(buffers, *others)


def _check() -> None:
    check = _check_before_sending.get()
    if check is not None:
        check()


class SocketFactory:
    """A factory of sockets for aiohttp that also closes the sockets that aiohttp leaves open.

    If a request is cancelled before its response begins, aiohttp closes the connection gracefully and forgets it. With
    TLS that waits half a minute for the other side, and the event loop may end in that time.
    """

    def __init__(self) -> None:
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def __call__(self, address: tuple[Any, ...]) -> socket.socket:
        """Create a socket for an address in the form of `socket.getaddrinfo`."""
        family, kind, protocol, _, _ = address
        guarded = _GuardedSocket(family=family, type=kind, proto=protocol)
        _enable_keep_alive(guarded)
        self._sockets.add(guarded)
        return guarded

    async def close_all(self) -> None:
        """Shut down the open sockets, and let the event loop close them for up to a second."""
        for open_socket in self._list_open():
            with suppress(OSError):  # it was not connected, or is shut down already
                open_socket.shutdown(socket.SHUT_RDWR)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _END_SECONDS
        while self._list_open() and loop.time() < deadline:  # noqa: ASYNC110  # asyncio does not report the close
            await asyncio.sleep(0)  # noqa: TID251  # no time passes: this only yields to the event loop

    def _list_open(self) -> list[socket.socket]:
        return [each for each in self._sockets if each.fileno() >= 0]


def _enable_keep_alive(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _IDLE_SECONDS),
        ("TCP_KEEPINTVL", _INTERVAL_SECONDS),
        ("TCP_KEEPCNT", _PROBES),
    ):
        if hasattr(socket, name):  # the names differ between systems; keepalive itself works on all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
