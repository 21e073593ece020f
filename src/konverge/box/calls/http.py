"""One attempt of a call over HTTP: redirects followed by hand, the answer read up to a limit."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import aiohttp
from yarl import URL

from konverge.box.calls.answers import LARGEST_BODY, Answer, decoded, too_long, unpacked
from konverge.box.calls.failures import CallFailure
from konverge.box.calls.requests import Request, parsed_url
from konverge.network import CheckedSockets, Lookup, connector, wanted_pause

__all__ = ["MOST_REDIRECTS", "Received", "answer_from", "ask_http", "ask_prometheus"]

MOST_REDIRECTS = 5

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BUSY = 429
_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
"""Headers that another server may see, too, when one redirects to it."""


class _BrokenError(Exception):
    """A connection broke. Not one of aiohttp's errors, after which it would send some requests once more by itself."""


@dataclass(frozen=True, slots=True)
class Received:
    """An answer of a server. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    content_type: str
    charset: str | None


async def ask_http(request: Request, lookup: Lookup, tls: ssl.SSLContext, now: datetime) -> Answer:
    """Send a request and read its answer, also one that is a failure.

    Cancelled, it closes its connection.

    Raises:
        CallFailure: There is no answer that can be read.
    """
    return answer_from(request, await _received(request, lookup, tls), now)


async def ask_prometheus(request: Request, lookup: Lookup, tls: ssl.SSLContext, now: datetime) -> Answer:
    """Ask Prometheus for the present value of a query.

    ``result`` is the number of the first sample, null if there is none; ``raw`` is the answer's ``data``.

    Raises:
        CallFailure: There is no answer that can be read.
    """
    path = request.url.path.rstrip("/")
    if not path.endswith("/api/v1/query"):
        path += "/api/v1/query"
    url = request.url.with_path(path).with_query({**request.url.query, "query": request.query})
    answer = answer_from(request, await _received(replace(request, url=url), lookup, tls), now)
    fields = {"status": answer.fields["status"]}
    told = answer.fields["json"]
    said = isinstance(told, dict) and told.get("status")
    if said == "success" and isinstance(told.get("data"), dict) and not answer.error:
        return replace(answer, fields={**fields, "result": _first_value(told["data"]), "raw": told["data"]})
    error = answer.error
    if said == "error":
        error = f"Prometheus refuses the query: {request.quotable(str(told.get('error')))}"
    return replace(answer, fields=fields, error=error or "expected an answer of Prometheus, found something else")


def _first_value(data: Mapping[str, Any]) -> Any:
    """The first sample of a vector, a scalar or a text: ``[time, "value"]``."""
    result = data.get("result")
    if data.get("resultType") == "vector" and isinstance(result, list) and result and isinstance(result[0], dict):
        result = result[0].get("value")
    if not (isinstance(result, list) and len(result) == 2 and isinstance(result[1], str)):
        return None
    if data.get("resultType") == "string":
        return result[1]
    try:
        number = float(result[1])
    except ValueError:
        return None
    if number - number != 0:  # NaN and the infinities, which JSON does not have
        return result[1]
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def answer_from(request: Request, received: Received, now: datetime) -> Answer:
    """What a server's answer is to a call.

    Raises:
        CallFailure: It is in an unknown charset, or its JSON nests too deeply.
    """
    status = received.status
    text, parsed = decoded(received.body, received.content_type, received.charset)
    is_success = status in request.expected if request.expected else status < 400
    error = ""
    if not is_success:
        wanted = " or ".join(str(each) for each in request.expected) or "below 400"
        error = f"{request.shown} answered with status {status}, expected {wanted}"
    return Answer(
        fields={"status": status, "body": text, "json": parsed},
        error=error,
        is_passing=not is_success,
        wanted_pause=wanted_pause(received.headers.get("retry-after", ""), now) if not is_success else None,
        is_sensitive=request.is_sensitive or request.repeats(text),
        size=len(received.body),
    )


async def _received(request: Request, lookup: Lookup, tls: ssl.SSLContext) -> Received:
    sent = request
    credential = request.credential
    headers = _with_defaults(request)
    for _ in range(MOST_REDIRECTS + 1):
        received = await _exchange(sent, _with_credential(headers, request, credential), lookup, tls)
        location = received.headers.get("location", "")
        if received.status not in _REDIRECTS or received.status in request.expected or not location:
            return received
        following = _redirected(sent, received.status, location)
        if following.url.origin() != sent.url.origin():
            # What was meant for one server is not shown to another, whoever says so.
            if following.body is not None:
                raise CallFailure(f"{request.shown} redirects a request with a body to another server; expected none")
            credential = ""
            headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS}
        if following.body is None:
            headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
        sent = following
    raise CallFailure(f"{request.shown} redirects more than {MOST_REDIRECTS} times")


def _redirected(sent: Request, status: int, location: str) -> Request:
    try:
        target = str(sent.url.join(URL(location)))
    except (ValueError, UnicodeError):
        target = ""
    try:
        url = parsed_url(target, "http", is_sensitive=sent.is_sensitive)
    except CallFailure as failure:
        raise CallFailure(f"{sent.shown} redirects to what cannot be followed: {failure.problem}") from None
    is_changed = status == 303 or (status in (301, 302) and sent.method == "POST")
    if is_changed and sent.method != "HEAD":
        return replace(sent, url=url, method="GET", body=None)
    return replace(sent, url=url)


def _with_defaults(request: Request) -> dict[str, str]:
    headers = dict(request.headers)
    names = {name.lower() for name in headers}
    if request.body is not None and "content-type" not in names:
        headers["Content-Type"] = "application/json"
    if "user-agent" not in names:
        headers["User-Agent"] = "konverge"
    return headers


def _with_credential(headers: Mapping[str, str], request: Request, credential: str) -> dict[str, str]:
    # Packed answers can be bombs; these are asked for by nobody, and read with care all the same.
    sent = {**headers, "Accept-Encoding": "identity"}
    if credential:
        header = request.credential_header
        sent = {name: value for name, value in sent.items() if name.lower() != header.lower()}
        sent[header] = f"Bearer {credential}" if header.lower() == "authorization" else credential
    return sent


async def _exchange(request: Request, headers: Mapping[str, str], lookup: Lookup, tls: ssl.SSLContext) -> Received:
    """One request, one answer, on a connection of its own that is closed afterwards, whatever happens."""
    sockets = CheckedSockets(request.networks)
    session = aiohttp.ClientSession(
        connector=connector(lookup, request.networks, sockets, keeps=False),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        middlewares=(_once,),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
    )
    found: aiohttp.ClientResponse | None = None
    try:
        found = await session.request(
            request.method, request.url, headers=headers, data=request.body, allow_redirects=False, ssl=tls
        )
        body = await _read(found)
        return Received(
            found.status,
            {name.lower(): value for name, value in found.headers.items()},
            unpacked(body, found.headers.get("content-encoding", "")),
            found.content_type if "content-type" in found.headers else "",
            found.charset,
        )
    except (_BrokenError, aiohttp.ClientError, OSError) as error:
        # Not chained: their texts have URLs and headers.
        raise CallFailure(f"{request.shown} {_what_broke(error)}", is_passing=True) from None
    except ValueError as error:
        raise CallFailure(f"{request.shown}: the request cannot be sent ({type(error).__name__})") from None
    finally:
        if found is not None:
            found.close()
        await session.close()
        await sockets.end()


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _BrokenError(error) from error


async def _read(found: aiohttp.ClientResponse) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := await found.content.readany():
        size += len(piece)
        if size > LARGEST_BODY:
            raise too_long()
        pieces.append(piece)
    return b"".join(pieces)


def _what_broke(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "has a name that cannot be resolved"
        case aiohttp.ClientConnectorCertificateError():
            return "has a certificate that is not trusted"
        case aiohttp.ClientSSLError():
            return "does not speak TLS with us"
        case aiohttp.ClientConnectorError():
            reason = error.os_error.strerror or type(error.os_error).__name__
            return f"cannot be connected to: {reason.lower()}"
        case aiohttp.InvalidURL():
            return "has a host that is neither a name nor an address"
        case aiohttp.ClientPayloadError():
            return "broke off in the middle of its answer"
        case _BrokenError() | aiohttp.ClientOSError() | OSError():
            return "hung up without an answer"
    return f"gave an answer that is no HTTP ({type(error).__name__})"
