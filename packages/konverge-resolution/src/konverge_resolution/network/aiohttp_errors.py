"""What the errors of aiohttp mean: which failure of ours each of them is.

Their own texts are not passed on, nor chained to: they have URLs, headers and addresses in them.
"""

from __future__ import annotations

import os

import aiohttp

from konverge_resolution.network.errors import (
    BrokenConnectionError,
    HostUnreachableError,
    InvalidRequestError,
    MalformedResponseError,
    NetworkError,
    NoTlsError,
    UntrustedCertificateError,
)

__all__ = ["AIOHTTP_ERRORS", "send_once", "translate_error"]


class _ConnectionBrokenError(Exception):
    """A connection broke. Not one of aiohttp's errors, after which it would send some requests once more by itself."""


AIOHTTP_ERRORS = (_ConnectionBrokenError, aiohttp.ClientError, OSError)
"""What `failure_of` knows, of a request that was sent by `send_once`."""


async def send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """A middleware of aiohttp: the request is sent once, whatever becomes of its connection."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _ConnectionBrokenError(error) from error


def translate_error(host: str, error: Exception) -> NetworkError:
    """The failure that an error is.

    Args:
        host: Who was asked, as a message may show it.
        error: One of `AIOHTTP_ERRORS`.
    """
    match error:
        case aiohttp.ClientConnectorDNSError():
            return HostUnreachableError(host, "has a name that cannot be resolved")
        case aiohttp.ClientConnectorCertificateError():
            return UntrustedCertificateError(host, "has a certificate that is not trusted")
        case aiohttp.ClientSSLError():
            return NoTlsError(host, "does not speak TLS with us")
        case aiohttp.ClientProxyConnectionError():
            return HostUnreachableError(host, "is reached by a proxy, which cannot be connected to")
        case aiohttp.ClientHttpProxyError():
            return HostUnreachableError(host, f"is reached by a proxy, which refuses it with status {error.status}")
        case aiohttp.ClientConnectorError():
            # By its number: the text has the address, which is nobody's business but the resolver's.
            number = error.os_error.errno
            return HostUnreachableError(
                host, f"cannot be connected to: {os.strerror(number).lower() if number else 'nothing answers'}"
            )
        case aiohttp.InvalidURL():
            return InvalidRequestError(host, "has a host that is neither a name nor an address")
        case aiohttp.ClientPayloadError():
            return BrokenConnectionError(host, "broke off in the middle of its answer")
        case _ConnectionBrokenError() | aiohttp.ClientOSError() | OSError():
            return BrokenConnectionError(host, "hung up without an answer")
    return MalformedResponseError(host, f"gave an answer that is no HTTP ({type(error).__name__})")
