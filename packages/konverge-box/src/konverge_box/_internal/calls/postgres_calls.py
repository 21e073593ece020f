"""One attempt of a call to PostgreSQL: one query in a read-only transaction, on its own connection.

libpq, through psycopg, gets the address and, separately, the name that the certificate must have. Other drivers use
one value for both. This module uses the non-blocking interface of libpq: the higher interface of psycopg waits for the
server when it is cancelled, and reads everything that the server sends.

The query becomes a subquery of one that returns the first row as JSON. So it must be a single query, and a row that is
too long is not transferred.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import re
import termios
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge.errors import ConfigurationError
from konverge_box._internal.calls.call_errors import CallAttemptError
from konverge_box._internal.calls.call_result import MAX_BODY_BYTES, CallResult, build_too_long_error
from konverge_box._internal.calls.requests import CallRequest
from konverge_resolution._internal.network import Lookup, resolve_permitted

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

__all__ = ["call_postgres", "load_driver", "split_query"]

_TLS_MODES = ("disable", "prefer", "require", "verify-full")
# libpq treats this path like an absent file. Instead of an empty text it would use its own default.
_NO_FILE = "/dev/null/none"
_SETTINGS = frozenset({"user", "sslmode"})
# PostgreSQL sends little besides the row: another server causes a larger amount.
_MAX_BYTES = 4 * MAX_BODY_BYTES
_ADDRESS_SECONDS = 5.0
_EXPRESSION = re.compile(r"'(\{\{(?:(?!\}\}).)*\}\})'|(\{\{.*?\}\})", re.DOTALL)
_PASSING_CLASSES = ("08", "40", "53", "55", "57")  # connections, conflicts, resources, locks, operator intervention


def load_driver() -> ModuleType:
    """Import psycopg, which has its wrapper of libpq as ``pq``.

    Raises:
        ConfigurationError: psycopg is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise ConfigurationError(
            "calls with protocol postgres require psycopg, which is not installed: pip install 'konverge[postgres]'"
        ) from error
    return psycopg


async def call_postgres(request: CallRequest, lookup: Lookup) -> CallResult:
    """Send a query: ``result`` is the first value of its first row, ``raw`` that row; null and empty without a row.

    A cancelled call closes its connection immediately. The server notices that at the latest after the timeout.

    Raises:
        CallAttemptError: The server sent no valid response.
    """
    place = request.host_port
    try:
        addresses = await resolve_permitted(place.host, place.port, lookup, request.networks)
    except OSError:
        raise CallAttemptError(f"{request.display_origin}: its name cannot be resolved", is_transient=True) from None
    for address in addresses:
        connection = _PostgresConnection(request, address)
        is_last = address == addresses[-1]
        try:
            async with asyncio.timeout(None if is_last else _ADDRESS_SECONDS):
                await connection.open()
            return await connection.read_first_row()
        except (_AddressUnreachableError, TimeoutError):
            continue
        except load_driver().OperationalError:
            raise CallAttemptError(
                f"{request.display_origin} closed the connection without a response", is_transient=True
            ) from None
        finally:
            connection.close()
    raise CallAttemptError(f"{request.display_origin} is unreachable", is_transient=True)


class _AddressUnreachableError(Exception):
    """No server accepts connections at an address."""


class _PostgresConnection:
    def __init__(self, request: CallRequest, address: str) -> None:
        self._request = request
        self._pq: Any = load_driver().pq
        self._read = 0
        self._socket = -1
        self._libpq: PGconn = self._pq.PGconn.connect_start(_build_conninfo(request, address))

    async def open(self) -> None:
        libpq, polling = self._libpq, self._pq.PollingStatus
        while True:
            if libpq.status == self._pq.ConnStatus.BAD:
                raise self._build_connect_error()
            state = libpq.connect_poll()
            if state == polling.OK:
                libpq.nonblocking = 1
                return
            if state == polling.FAILED:
                raise self._build_connect_error()
            self._count_bytes()
            await self._wait_for_socket(is_write=state == polling.WRITING)

    async def read_first_row(self) -> CallResult:
        milliseconds = max(1, int(self._request.timeout_seconds * 1000))
        self._libpq.send_query(b"BEGIN READ ONLY; SET LOCAL statement_timeout = %d" % milliseconds)
        await self._read_results()
        # Send parameters even if there are none, so that PostgreSQL accepts only one statement.
        values = [None if value is None else value.encode() for value in self._request.parameters]
        self._libpq.send_query_params(_wrap_query(self._request.query), values)
        (result,) = await self._read_results()
        row: Any = {}
        size = 0
        if result.ntuples:
            text = result.get_value(0, 0)
            if text is None:
                raise build_too_long_error()
            size = len(text)
            try:
                row = msgspec.json.decode(text)
            except DECODE_ERRORS:
                raise CallAttemptError("expected a row that can be converted to JSON, found one that cannot") from None
        first = next(iter(row.values()), None)
        is_sensitive = self._request.is_sensitive or self._request.contains_credential(str(row))
        return CallResult(fields={"result": first, "raw": row}, is_sensitive=is_sensitive, size=size)

    def close(self) -> None:
        self._libpq.finish()

    async def _read_results(self) -> list[PGresult]:
        libpq = self._libpq
        while libpq.flush():
            await self._wait_for_socket(is_write=True)
        found: list[PGresult] = []
        while True:
            while libpq.is_busy():
                await self._wait_for_socket(is_write=False)
                self._count_bytes()
                libpq.consume_input()
            result = libpq.get_result()
            if result is None:
                return found
            if result.status not in (self._pq.ExecStatus.TUPLES_OK, self._pq.ExecStatus.COMMAND_OK):
                raise self._build_query_error(result)
            found.append(result)

    async def _wait_for_socket(self, *, is_write: bool) -> None:
        """Wait until libpq's socket is readable or writable. The file descriptor can change while it connects."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        number = self._libpq.socket
        (loop.add_writer if is_write else loop.add_reader)(number, ready.set)
        try:
            await ready.wait()
        finally:
            (loop.remove_writer if is_write else loop.remove_reader)(number)

    def _count_bytes(self) -> None:
        """Count the bytes before they are read: libpq itself allocates any length that the server announces."""
        waiting = array.array("i", [0])
        fcntl.ioctl(self._libpq.socket, termios.FIONREAD, waiting)
        self._read += waiting[0]
        if self._read > _MAX_BYTES:
            raise build_too_long_error()

    def _build_connect_error(self) -> Exception:
        """Build the error of a failed connection from the text of libpq, which has no codes for it."""
        text = self._libpq.error_message.decode(errors="replace")
        for sign in ("FATAL:", "certificate", "SSL", "authentication"):
            if sign in text:
                quoted = self._request.quote_reply(text[text.index(sign) :])
                return CallAttemptError(
                    f"{self._request.display_origin} rejects the connection: {quoted}", is_transient=True
                )
        return _AddressUnreachableError()

    def _build_query_error(self, result: PGresult) -> CallAttemptError:
        code = (result.error_field(self._pq.DiagnosticField.SQLSTATE) or b"").decode(errors="replace")
        message = (result.error_field(self._pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode(errors="replace")
        problem = (
            f"{self._request.display_origin} rejects the query: {self._request.quote_reply(message)} (SQLSTATE {code})"
        )
        return CallAttemptError(problem, is_transient=code.startswith(_PASSING_CLASSES))


def _build_conninfo(request: CallRequest, address: str) -> bytes:
    """Build the connection string. It sets everything that libpq would otherwise read from its environment or files."""
    url = request.url
    unknown = sorted(set(url.query) - _SETTINGS)
    if unknown:
        raise CallAttemptError(
            f"expected only {' and '.join(sorted(_SETTINGS))} after the ? of the URL, found other settings"
        )
    mode = url.query.get("sslmode", "prefer")
    if mode not in _TLS_MODES:
        raise CallAttemptError(f"sslmode: expected one of {', '.join(_TLS_MODES)}, found another value")
    user = url.query.get("user", "postgres")
    settings = {
        "host": request.host_port.host,
        "hostaddr": address,
        "port": str(request.host_port.port),
        "user": user,
        "dbname": url.path.strip("/") or user,
        "password": request.credential,
        "passfile": _NO_FILE,
        "sslmode": mode,
        "sslcert": _NO_FILE,
        "sslkey": _NO_FILE,
        "sslrootcert": "system" if mode == "verify-full" else _NO_FILE,
        "gssencmode": "disable",
        "options": "",
        "target_session_attrs": "any",
        "client_encoding": "UTF8",
        "application_name": "konverge",
        "require_auth": "" if mode == "verify-full" else "scram-sha-256,md5,none",
    }
    return " ".join(f"{name}='{_escape_value(value)}'" for name, value in settings.items()).encode()


def _escape_value(value: str) -> str:
    if "\0" in value:
        raise CallAttemptError("expected a user, a database and a password without NUL characters, found one")
    return value.replace("\\", "\\\\").replace("'", "\\'")


def split_query(query: str) -> tuple[str, list[str]]:
    """Replace the expressions of a query by parameters: ``… WHERE id = {{ spec.id }}`` becomes ``… WHERE id = $1``.

    The values never become part of the query, so that the author of a custom resource cannot change it. Quotes around
    an expression are removed with it, and can contain nothing else.

    Returns:
        The query, and the expressions in the order of their numbers.

    Raises:
        ValueError: An expression is not in the place of a whole value.
    """
    text, expressions, end = "", [], 0
    for match in _EXPRESSION.finditer(query):
        text += query[end : match.start()]
        if text.count("'") % 2 or text.count('"') % 2:
            raise ValueError(
                "expected expressions only in place of whole values, found one inside quotes. Write "
                "'{{ … }}' or {{ … }}, and join the parts of a value inside the expression"
            )
        expressions.append(match[1] or match[2])
        text += f" ${len(expressions)} "
        end = match.end()
    text = (text + query[end:]).strip().rstrip(";").rstrip()
    if not text or "{%" in text or "\0" in text:
        raise ValueError("expected a query, for example SELECT 1, with expressions only in place of values")
    return text, expressions


def _wrap_query(query: str) -> bytes:
    # The line break terminates a comment at the end of the query.
    return (
        f"SELECT CASE WHEN octet_length(text) <= {MAX_BODY_BYTES} THEN text END FROM "
        f"(SELECT row_to_json(found)::text AS text FROM ({query}\n) AS found LIMIT 1) AS first"
    ).encode()
