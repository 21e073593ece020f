"""Kinds of failures of aiohttp's client, and the middleware that keeps aiohttp from sending a request twice.

The texts of aiohttp's errors are not for messages: they contain URLs, headers and addresses. Each package writes its
own message for a `FailureKind`. Importing this module imports aiohttp.
"""

from __future__ import annotations

from enum import Enum

import aiohttp

__all__ = [
    "AIOHTTP_ERRORS",
    "ConnectionBrokenError",
    "FailureKind",
    "classify_error",
    "find_proxy_status",
    "find_system_error",
    "send_once",
]


class FailureKind(Enum):
    """The step of a request that failed."""

    INVALID_URL = "invalid URL"
    NAME_RESOLUTION = "name resolution"
    PROXY_CONNECTION = "connection to the proxy"
    PROXY_REFUSAL = "the proxy refused to connect"
    UNTRUSTED_CERTIFICATE = "untrusted certificate"
    TLS = "TLS handshake"
    CONNECTION = "connection"
    CONNECTION_TIMEOUT = "no connection in time"
    RESPONSE_TIMEOUT = "no response in time"
    RESPONSE_BODY = "the response ended early"
    DISCONNECTED = "the connection broke"
    INVALID_RESPONSE = "the response is not HTTP"


class ConnectionBrokenError(Exception):
    """A connection broke while a request was sent.

    It is not one of aiohttp's errors: after those, aiohttp sends some requests again by itself.

    Attributes:
        cause: The error of aiohttp.
    """

    def __init__(self, cause: aiohttp.ClientOSError | aiohttp.ServerDisconnectedError) -> None:
        super().__init__(str(cause))
        self.cause = cause


AIOHTTP_ERRORS = (ConnectionBrokenError, aiohttp.ClientError, TimeoutError, OSError)
"""Errors of a request with `send_once` as middleware; OSError is what aiohttp passes on unchanged."""


async def send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating a PUT or a DELETE when the connection breaks, which it considers safe.

    A repeated delete would hit the next object of the name, and a write that did happen would come back as a conflict.
    Only callers decide whether to send a request again.

    Raises:
        ConnectionBrokenError: The connection broke after it was made.
        aiohttp.ClientError: The request failed in another way.
    """
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise ConnectionBrokenError(error) from error


def classify_error(error: Exception) -> FailureKind:
    """Find the step that failed; `error` is one of `AIOHTTP_ERRORS`."""
    match error:
        case ConnectionBrokenError():
            return classify_error(error.cause)
        case aiohttp.ClientConnectorDNSError():
            return FailureKind.NAME_RESOLUTION
        case aiohttp.ClientConnectorCertificateError():
            return FailureKind.UNTRUSTED_CERTIFICATE
        case aiohttp.ClientSSLError():
            return FailureKind.TLS
        case aiohttp.ClientProxyConnectionError():
            return FailureKind.PROXY_CONNECTION
        case aiohttp.ClientHttpProxyError():
            return FailureKind.PROXY_REFUSAL
        case aiohttp.ClientConnectorError():
            return FailureKind.CONNECTION
        case aiohttp.ConnectionTimeoutError():
            return FailureKind.CONNECTION_TIMEOUT
        case TimeoutError():
            return FailureKind.RESPONSE_TIMEOUT
        case aiohttp.InvalidURL():
            return FailureKind.INVALID_URL
        case aiohttp.ClientPayloadError():
            return FailureKind.RESPONSE_BODY
        case aiohttp.ServerDisconnectedError() | OSError():
            return FailureKind.DISCONNECTED
    return FailureKind.INVALID_RESPONSE


def find_system_error(error: Exception) -> OSError | None:
    """Find the operating system's error behind a failed connection; None for another failure."""
    return error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None


def find_proxy_status(error: Exception) -> int:
    """Find the HTTP status with which a proxy refused to connect; 0 for another failure."""
    return error.status if isinstance(error, aiohttp.ClientHttpProxyError) else 0
