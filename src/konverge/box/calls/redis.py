"""One attempt of a call to Redis: one command that reads, on a connection of its own."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from konverge.box.calls.answers import Answer
from konverge.box.calls.failures import CallFailure
from konverge.box.calls.requests import Request
from konverge.box.calls.resp import RedisRefusal, command, reply
from konverge.network import Lookup, Trust, connected

__all__ = ["ask_redis"]

_BUFFER = 64 * 1024
# The first word of refusals that pass: while it loads its data, when it has too many clients, without its master.
_PASSING = ("LOADING", "BUSY", "ERR max number of clients", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN")


async def ask_redis(request: Request, lookup: Lookup, tls: Trust) -> Answer:
    """Send a command and read its reply: ``result`` is its value, ``raw`` the same, or for HGETALL a mapping.

    Cancelled, it closes its connection.

    Raises:
        CallFailure: There is no reply that can be read.
    """
    transport: asyncio.WriteTransport | None = None
    value: Any = None
    try:
        made = await connected(request.place.host, request.place.port, lookup, request.networks)
        try:
            is_tls = request.url.scheme == "rediss"
            reader, writer = await asyncio.open_connection(
                sock=made,
                limit=_BUFFER,
                ssl=tls.context() if is_tls else None,
                server_hostname=request.place.host if is_tls else None,
            )
        except BaseException:
            made.close()
            raise
        transport = writer.transport
        for words in (*_preamble(request), request.command):
            writer.write(command(words))
            value = await _reply(reader)
    except RedisRefusal as refusal:
        problem = f"{request.shown} refuses: {request.quotable(refusal.said)}"
        raise CallFailure(problem, is_passing=refusal.said.startswith(_PASSING)) from None
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        raise CallFailure(f"{request.shown} {_what_broke(error)}", is_passing=True) from None
    finally:
        if transport is not None:
            transport.abort()
    raw = _mapping(value) if request.command[0] == "HGETALL" else value
    is_sensitive = request.is_sensitive or request.repeats(str(value))
    return Answer(fields={"result": value, "raw": raw}, is_sensitive=is_sensitive, size=len(str(value)))


def _preamble(request: Request) -> list[tuple[str, ...]]:
    """Who we are, and which of the server's databases is meant."""
    words: list[tuple[str, ...]] = []
    user = request.url.query.get("user", "")
    if request.credential:
        words.append(("AUTH", user, request.credential) if user else ("AUTH", request.credential))
    database = request.url.path.strip("/")
    if database:
        if not (database.isascii() and database.isdigit()):
            raise CallFailure("expected a number of a database as the path of the URL, such as redis://host/0")
        words.append(("SELECT", database))
    return words


async def _reply(reader: asyncio.StreamReader) -> Any:
    parser = reply()
    wanted = next(parser)
    while True:
        # One line at a time, or so many bytes; the parser has refused what is too much.
        piece = await (reader.readuntil(b"\n") if wanted is None else reader.readexactly(wanted))
        try:
            wanted = parser.send(piece)
        except StopIteration as ended:
            return ended.value


def _mapping(value: Any) -> Any:
    if not isinstance(value, list) or len(value) % 2 or not all(isinstance(each, str) for each in value):
        return value
    return dict(zip(value[::2], value[1::2], strict=True))


def _what_broke(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return "has a certificate that is not trusted"
        case ConnectionRefusedError() | TimeoutError():
            return "cannot be connected to"
        case EOFError():
            return "hung up in the middle of its reply"
        case asyncio.LimitOverrunError():
            return "gave a reply that is none of Redis"
    return f"cannot be talked to ({type(error).__name__})"
