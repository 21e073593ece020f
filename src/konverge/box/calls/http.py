"""One attempt of a call over HTTP, within the rules of `konverge.network`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email.message import Message
from typing import Any

from konverge.box.calls.answers import LARGEST_BODY, Answer, decoded, too_long
from konverge.box.calls.failures import CallFailure
from konverge.box.calls.requests import Request
from konverge.network import (
    BrokenConnectionError,
    Credential,
    GuardedHttp,
    Lookup,
    MalformedAnswerError,
    NetworkError,
    RefusedAddressError,
    TooLargeError,
    Trust,
    UnreachableError,
    UntrustedError,
    wanted_pause,
)

__all__ = ["Received", "answer_from", "ask_http", "ask_prometheus"]

_PASSING = (UnreachableError, UntrustedError, BrokenConnectionError, MalformedAnswerError)
"""After which another try may end otherwise."""


@dataclass(frozen=True, slots=True)
class Received:
    """An answer of a server. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    content_type: str
    charset: str | None


async def ask_http(request: Request, lookup: Lookup, tls: Trust, now: datetime) -> Answer:
    """Send a request and read its answer, also one that is a failure.

    Cancelled, it closes its connection.

    Raises:
        CallFailure: There is no answer that can be read.
    """
    return answer_from(request, await _received(request, lookup, tls), now)


async def ask_prometheus(request: Request, lookup: Lookup, tls: Trust, now: datetime) -> Answer:
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


async def _received(request: Request, lookup: Lookup, tls: Trust) -> Received:
    http = GuardedHttp(lookup, tls=tls, networks=request.networks)
    try:
        async with http.session() as session:
            found = await session.request(
                request.method,
                str(request.url),
                headers=_with_defaults(request),
                body=request.body,
                max_bytes=LARGEST_BODY,
                credential=_credential(request),
                unfollowed=request.expected,
            )
    except RefusedAddressError:
        raise  # whoever makes the call knows which field would allow it
    except TooLargeError:
        raise too_long() from None
    except NetworkError as error:
        raise CallFailure(f"{request.shown} {error.problem}", is_passing=isinstance(error, _PASSING)) from None
    said = Message()
    said["content-type"] = found.headers.get("content-type", "")
    kind = said.get_content_type() if "content-type" in found.headers else ""
    return Received(found.status, found.headers, found.body, kind, said.get_content_charset())


def _with_defaults(request: Request) -> Mapping[str, str]:
    if request.body is None or any(name.lower() == "content-type" for name in request.headers):
        return request.headers
    return {**request.headers, "Content-Type": "application/json"}


def _credential(request: Request) -> Credential | None:
    header, value = request.credential_header, request.credential
    if not value:
        return None
    sent = f"Bearer {value}" if header.lower() == "authorization" else value
    return Credential(sent, str(request.url.origin()), header)
