"""One attempt of a call over HTTP, within the rules of `konverge_resolution.network`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email.message import Message
from typing import Any

from konverge_box._internal.calls.call_errors import CallAttemptError
from konverge_box._internal.calls.call_result import MAX_BODY_BYTES, CallResult, build_too_long_error, decode_body
from konverge_box._internal.calls.requests import CallRequest
from konverge_resolution._internal.network import (
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
"""The errors after which a retry can succeed."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A response of an HTTP server. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    content_type: str
    charset: str | None


async def call_http(request: CallRequest, lookup: Lookup, tls: TrustStore, now: datetime) -> CallResult:
    """Send a request and return its result, which can be a failure.

    A cancelled call closes its connection.

    Raises:
        CallAttemptError: The server sent no valid response.
    """
    return build_call_result(request, await _send_request(request, lookup, tls), now)


async def call_prometheus(request: CallRequest, lookup: Lookup, tls: TrustStore, now: datetime) -> CallResult:
    """Query Prometheus for the current value of an expression.

    ``result`` is the value of the first sample, null without one; ``raw`` is the ``data`` of the response.

    Raises:
        CallAttemptError: The server sent no valid response.
    """
    path = request.url.path.rstrip("/")
    if not path.endswith("/api/v1/query"):
        path += "/api/v1/query"
    url = request.url.with_path(path).with_query({**request.url.query, "query": request.query})
    answer = build_call_result(request, await _send_request(replace(request, url=url), lookup, tls), now)
    fields = {"status": answer.fields["status"]}
    reply = answer.fields["json"]
    outcome = isinstance(reply, dict) and reply.get("status")
    if outcome == "success" and isinstance(reply.get("data"), dict) and not answer.error:
        return replace(answer, fields={**fields, "result": _find_first_value(reply["data"]), "raw": reply["data"]})
    error = answer.error
    if outcome == "error":
        error = f"Prometheus rejects the query: {request.quote_reply(str(reply.get('error')))}"
    return replace(answer, fields=fields, error=error or "expected a Prometheus response, found another format")


def _find_first_value(data: Mapping[str, Any]) -> Any:
    """Return the value of the first sample of a vector, a scalar or a text: ``[time, "value"]``."""
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
    """Build the result of a call from the response of the server.

    Raises:
        CallAttemptError: The charset is not supported, or the JSON nests too deeply.
    """
    status = received.status
    text, parsed = decode_body(received.body, received.content_type, received.charset)
    is_success = status in request.expected if request.expected else status < 400
    error = ""
    if not is_success:
        expected = " or ".join(str(each) for each in request.expected) or "below 400"
        error = f"{request.display_origin}: expected status {expected}, found {status}"
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
        raise  # the caller names the field that would allow the address
    except NetworkError as error:
        if isinstance(error, ResponseTooLargeError) and error.max_bytes is not None:
            raise build_too_long_error() from None
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
