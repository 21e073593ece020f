"""One attempt of a call to Redis: one command that only reads, on its own connection."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from konverge_box._internal.calls.call_errors import CallAttemptError
from konverge_box._internal.calls.call_result import CallResult
from konverge_box._internal.calls.requests import CallRequest
from konverge_box._internal.calls.resp import RedisReplyError, encode_command, parse_reply
from konverge_resolution._internal.network import Lookup, TrustStore, open_connection

__all__ = ["call_redis"]

_BUFFER = 64 * 1024
# The first words of transient errors: the server loads its data, has too many clients, or has lost its master.
_PASSING = ("LOADING", "BUSY", "ERR max number of clients", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN")


async def call_redis(request: CallRequest, lookup: Lookup, tls: TrustStore) -> CallResult:
    """Send a command and read its reply: ``result`` is its value, ``raw`` the same, or for HGETALL a mapping.

    A cancelled call closes its connection.

    Raises:
        CallAttemptError: The server sent no valid reply.
    """
    transport: asyncio.WriteTransport | None = None
    value: Any = None
    try:
        made = await open_connection(request.host_port.host, request.host_port.port, lookup, request.networks)
        try:
            is_tls = request.url.scheme == "rediss"
            reader, writer = await asyncio.open_connection(
                sock=made,
                limit=_BUFFER,
                ssl=tls.load_context() if is_tls else None,
                server_hostname=request.host_port.host if is_tls else None,
            )
        except BaseException:
            made.close()
            raise
        transport = writer.transport
        for words in (*_build_preamble(request), request.command):
            writer.write(encode_command(words))
            value = await _read_reply(reader)
    except RedisReplyError as refusal:
        problem = f"{request.display_origin} rejects the command: {request.quote_reply(refusal.server_message)}"
        raise CallAttemptError(problem, is_transient=refusal.server_message.startswith(_PASSING)) from None
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        raise CallAttemptError(f"{request.display_origin} {_describe_failure(error)}", is_transient=True) from None
    finally:
        if transport is not None:
            transport.abort()
    raw = _to_mapping(value) if request.command[0] == "HGETALL" else value
    is_sensitive = request.is_sensitive or request.contains_credential(str(value))
    return CallResult(fields={"result": value, "raw": raw}, is_sensitive=is_sensitive, size=len(str(value)))


def _build_preamble(request: CallRequest) -> list[tuple[str, ...]]:
    """Return the commands that authenticate and that select the database."""
    words: list[tuple[str, ...]] = []
    user = request.url.query.get("user", "")
    if request.credential:
        words.append(("AUTH", user, request.credential) if user else ("AUTH", request.credential))
    database = request.url.path.strip("/")
    if database:
        if not (database.isascii() and database.isdigit()):
            raise CallAttemptError("expected a database number as the path of the URL, for example redis://host/0")
        words.append(("SELECT", database))
    return words


async def _read_reply(reader: asyncio.StreamReader) -> Any:
    parser = parse_reply()
    wanted = next(parser)
    while True:
        # Read one line, or the requested number of bytes: the parser rejects too many.
        piece = await (reader.readuntil(b"\n") if wanted is None else reader.readexactly(wanted))
        try:
            wanted = parser.send(piece)
        except StopIteration as ended:
            return ended.value


def _to_mapping(value: Any) -> Any:
    if not isinstance(value, list) or len(value) % 2 or not all(isinstance(each, str) for each in value):
        return value
    return dict(zip(value[::2], value[1::2], strict=True))


def _describe_failure(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return "has a certificate that is not trusted"
        case ConnectionRefusedError() | TimeoutError():
            return "is unreachable"
        case EOFError():
            return "closed the connection before the end of its reply"
        case asyncio.LimitOverrunError():
            return "sent a reply that is not valid in the Redis protocol"
    return f"cannot be reached ({type(error).__name__})"
