"""One attempt of a call over HTTP, within the rules of `konverge_resolution.network`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email.message import Message
from typing import Any

from konverge_box.calls.call_errors import CallAttemptError
from konverge_box.calls.call_result import MAX_BODY_BYTES, CallResult, build_too_long_error, decode_body
from konverge_box.calls.requests import CallRequest
from konverge_resolution.network import (
    BrokenConnectionError,
    GuardedHttp,
    HostUnreachableError,
    Lookup,
    MalformedResponseError,
    NetworkError,
    OriginCredential,
    RefusedAddressError,
    ResponseTooLargeError,
    TrustStore,
    UntrustedCertificateError,
    parse_retry_after,
)

__all__ = ["HttpReply", "build_call_result", "call_http", "call_prometheus"]

_PASSING = (HostUnreachableError, UntrustedCertificateError, BrokenConnectionError, MalformedResponseError)
"""After which another try may end otherwise."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An answer of a server. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    content_type: str
    charset: str | None


async def call_http(request: CallRequest, lookup: Lookup, tls: TrustStore, now: datetime) -> CallResult:
    """Send a request and read its answer, also one that is a failure.

    Cancelled, it closes its connection.

    Raises:
        CallAttemptError: There is no answer that can be read.
    """
    return build_call_result(request, await _send_request(request, lookup, tls), now)


async def call_prometheus(request: CallRequest, lookup: Lookup, tls: TrustStore, now: datetime) -> CallResult:
    """Ask Prometheus for the present value of a query.

    ``result`` is the number of the first sample, null if there is none; ``raw`` is the answer's ``data``.

    Raises:
        CallAttemptError: There is no answer that can be read.
    """
    path = request.url.path.rstrip("/")
    if not path.endswith("/api/v1/query"):
        path += "/api/v1/query"
    url = request.url.with_path(path).with_query({**request.url.query, "query": request.query})
    answer = build_call_result(request, await _send_request(replace(request, url=url), lookup, tls), now)
    fields = {"status": answer.fields["status"]}
    told = answer.fields["json"]
    said = isinstance(told, dict) and told.get("status")
    if said == "success" and isinstance(told.get("data"), dict) and not answer.error:
        return replace(answer, fields={**fields, "result": _find_first_value(told["data"]), "raw": told["data"]})
    error = answer.error
    if said == "error":
        error = f"Prometheus refuses the query: {request.quote_reply(str(told.get('error')))}"
    return replace(answer, fields=fields, error=error or "expected an answer of Prometheus, found something else")


def _find_first_value(data: Mapping[str, Any]) -> Any:
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


def build_call_result(request: CallRequest, received: HttpReply, now: datetime) -> CallResult:
    """What a server's answer is to a call.

    Raises:
        CallAttemptError: It is in an unknown charset, or its JSON nests too deeply.
    """
    status = received.status
    text, parsed = decode_body(received.body, received.content_type, received.charset)
    is_success = status in request.expected if request.expected else status < 400
    error = ""
    if not is_success:
        wanted = " or ".join(str(each) for each in request.expected) or "below 400"
        error = f"{request.display_origin} answered with status {status}, expected {wanted}"
    return CallResult(
        fields={"status": status, "body": text, "json": parsed},
        error=error,
        is_transient=not is_success,
        retry_after=parse_retry_after(received.headers.get("retry-after", ""), now) if not is_success else None,
        is_sensitive=request.is_sensitive or request.contains_credential(text),
        size=len(received.body),
    )


async def _send_request(request: CallRequest, lookup: Lookup, tls: TrustStore) -> HttpReply:
    http = GuardedHttp(lookup, tls=tls, networks=request.networks)
    try:
        async with http.session() as session:
            found = await session.request(
                request.method,
                str(request.url),
                headers=_with_defaults(request),
                body=request.body,
                max_bytes=MAX_BODY_BYTES,
                credential=_build_credential(request),
                unfollowed=request.expected,
            )
    except RefusedAddressError:
        raise  # whoever makes the call knows which field would allow it
    except ResponseTooLargeError:
        raise build_too_long_error() from None
    except NetworkError as error:
        raise CallAttemptError(
            f"{request.display_origin} {error.problem}", is_transient=isinstance(error, _PASSING)
        ) from None
    said = Message()
    said["content-type"] = found.headers.get("content-type", "")
    kind = said.get_content_type() if "content-type" in found.headers else ""
    return HttpReply(found.status, found.headers, found.body, kind, said.get_content_charset())


def _with_defaults(request: CallRequest) -> Mapping[str, str]:
    if request.body is None or any(name.lower() == "content-type" for name in request.headers):
        return request.headers
    return {**request.headers, "Content-Type": "application/json"}


def _build_credential(request: CallRequest) -> OriginCredential | None:
    header, value = request.credential_header, request.credential
    if not value:
        return None
    sent = f"Bearer {value}" if header.lower() == "authorization" else value
    return OriginCredential(sent, str(request.url.origin()), header)
