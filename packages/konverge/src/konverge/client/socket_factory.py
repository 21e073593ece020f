"""The sockets of a transport: made to notice a peer that vanished, kept from sending too late, and ended together."""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

__all__ = ["SocketFactory", "send_guard"]

# A peer that vanished without a word is noticed after about a minute, and the way through a NAT stays open.
_IDLE_SECONDS, _INTERVAL_SECONDS, _PROBES = 30, 10, 3
_END_SECONDS = 1.0


_check_before_sending: ContextVar[Callable[[], None] | None] = ContextVar("_check_before_sending", default=None)


@contextmanager
def send_guard(check: Callable[[], None]) -> Iterator[None]:
    """Call a function immediately before each system call that sends what is written within the block.

    What the function raises, an OSError, breaks the connection, and the bytes stay here. That also goes for bytes that
    have to wait until the socket takes more: asyncio sends them later in the context in which they were written.
    """
    outer = _check_before_sending.set(check)
    try:
        yield
    finally:
        _check_before_sending.reset(outer)


class _GuardedSocket(socket.socket):
    """A socket that asks the guard of whoever sends.

    Between a check higher up and the system call are an encryption and turns of other threads, and a busy process is
    frozen there often enough to be seen. What remains is the moment from the check to the kernel.
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
    """Makes sockets for aiohttp, and ends those that it leaves behind.

    When a request is cancelled before its answer has begun, aiohttp closes the connection politely and forgets it. Over
    TLS that is to wait half a minute for the other side's goodbye, in which time the event loop may end.
    """

    def __init__(self) -> None:
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def __call__(self, address: tuple[Any, ...]) -> socket.socket:
        """A new socket for an address as `socket.getaddrinfo` gives it."""
        family, kind, protocol, _, _ = address
        made = _GuardedSocket(family=family, type=kind, proto=protocol)
        _enable_keep_alive(made)
        self._made.add(made)
        return made

    async def close_all(self) -> None:
        """Cut those that are open, and let the event loop close them; a second is plenty for that."""
        for left in self._list_open():
            with suppress(OSError):  # it was not connected, or has been cut
                left.shutdown(socket.SHUT_RDWR)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _END_SECONDS
        while self._list_open() and loop.time() < deadline:  # noqa: ASYNC110  # what closes them tells nobody
            await asyncio.sleep(0)  # noqa: TID251  # no time passes: the loop has its turn

    def _list_open(self) -> list[socket.socket]:
        return [made for made in self._made if made.fileno() >= 0]


def _enable_keep_alive(made: socket.socket) -> None:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _IDLE_SECONDS),
        ("TCP_KEEPINTVL", _INTERVAL_SECONDS),
        ("TCP_KEEPCNT", _PROBES),
    ):
        if hasattr(socket, name):  # the names differ between systems; keepalive itself is on everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
