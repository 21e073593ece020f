"""The call of a webhook from its ``clientConfig``, and the review in its reply."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from konverge._internal.kube import Object, ObjectKey
from konverge_cluster._internal.embedded.validation.field_errors import quote
from konverge_cluster._internal.embedded.webhooks.pending_calls import WebhookCall, WebhookReply

__all__ = ["CallFailedError", "FindService", "build_call", "parse_review"]

FindService = Callable[[ObjectKey], Object | None]
"""Returns the Service with a key, or None."""

_PORT = 443
# The server's messages for webhook replies without a message.
_SENTENCES = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "unknown",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    415: "the server was unable to respond with a content type that the client supports",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class CallFailedError(Exception):
    """A webhook cannot be called, or its reply is invalid; the text contains the reason."""


def build_call(config: Mapping[str, Any], body: Object, timeout_seconds: int, find_service: FindService) -> WebhookCall:
    """Return the call of a webhook.

    Args:
        config: The ``clientConfig``.
        body: The review to send.
        timeout_seconds: The time limit in seconds; also sent in the query.
        find_service: Returns the Service that the configuration can name. No Service is reachable, since no process
            runs in the pods of this cluster: the call fails like that of a Service without a listener.
    """
    problem = ""
    service = config.get("service")
    if isinstance(service, Mapping):
        name, namespace = str(service.get("name", "")), str(service.get("namespace", ""))
        port = service.get("port") or _PORT
        url = f"https://{name}.{namespace}.svc:{port}{service.get('path') or ''}"
        service = find_service(ObjectKey(namespace, name))
        if service is None:
            problem = f"service {quote(name)} not found"
        else:
            problem = f"dial tcp {service['spec'].get('clusterIP', '')}:{port}: connect: connection refused"
    else:
        url = str(config.get("url", ""))
    try:
        authority = base64.b64decode(str(config.get("caBundle") or ""))
    except binascii.Error:
        authority = b""
    url = f"{url}?timeout={timeout_seconds}s"
    return WebhookCall(url, msgspec.json.encode(body), authority, timeout_seconds, problem)


def parse_review(call: WebhookCall, reply: WebhookReply) -> Mapping[str, Any]:
    """Return the review in a reply.

    Raises:
        CallFailedError: The reply contains no review.
    """
    if reply.problem:
        raise CallFailedError(f"Post {quote(call.url)}: {reply.problem}")
    try:
        body = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        body = error
    if not 200 <= reply.status < 300:
        if isinstance(body, Mapping) and body.get("kind") == "Status" and body.get("message"):
            raise CallFailedError(str(body["message"]))
        unknown = f"an error on the server ({quote(reply.body.decode(errors='replace')[:2048])}) has prevented the "
        raise CallFailedError(_SENTENCES.get(reply.status, f"{unknown}request from succeeding"))
    if not isinstance(body, Mapping):
        raise CallFailedError(f"couldn't get version/kind; json parse error: {_describe_parse_error(body)}")
    return body


def _describe_parse_error(found: Any) -> str:
    return str(found) if isinstance(found, Exception) else f"the answer is {type(found).__name__}, and no object"
