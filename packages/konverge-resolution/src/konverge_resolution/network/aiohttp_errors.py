"""What the errors of aiohttp mean: which failure of ours each of them is.

Their own texts are not passed on, nor chained to: they have URLs, headers and addresses in them.
"""

from __future__ import annotations

import os

from konverge.aiohttp_errors import FailureKind, classify_error, find_proxy_status, find_system_error
from konverge_resolution.network.errors import (
    BrokenConnectionError,
    HostUnreachableError,
    InvalidRequestError,
    MalformedResponseError,
    NetworkError,
    NoTlsError,
    UntrustedCertificateError,
)

__all__ = ["translate_error"]


def translate_error(host: str, error: Exception) -> NetworkError:
    """The failure that an error is.

    Args:
        host: Who was asked, as a message may show it.
        error: One of `AIOHTTP_ERRORS`.
    """
    match classify_error(error):
        case FailureKind.NAME_RESOLUTION:
            return HostUnreachableError(host, "has a name that cannot be resolved")
        case FailureKind.UNTRUSTED_CERTIFICATE:
            return UntrustedCertificateError(host, "has a certificate that is not trusted")
        case FailureKind.TLS:
            return NoTlsError(host, "does not speak TLS with us")
        case FailureKind.PROXY_CONNECTION:
            return HostUnreachableError(host, "is reached by a proxy, which cannot be connected to")
        case FailureKind.PROXY_REFUSAL:
            status = find_proxy_status(error)
            return HostUnreachableError(host, f"is reached by a proxy, which refuses it with status {status}")
        case FailureKind.CONNECTION:
            # Only the error number: the text contains the address, which only the resolver may see.
            number = getattr(find_system_error(error), "errno", None)
            return HostUnreachableError(
                host, f"cannot be connected to: {os.strerror(number).lower() if number else 'nothing answers'}"
            )
        case FailureKind.INVALID_URL:
            return InvalidRequestError(host, "has a host that is neither a name nor an address")
        case FailureKind.RESPONSE_BODY:
            return BrokenConnectionError(host, "broke off in the middle of its answer")
        case FailureKind.DISCONNECTED | FailureKind.CONNECTION_TIMEOUT | FailureKind.RESPONSE_TIMEOUT:
            return BrokenConnectionError(host, "hung up without an answer")
        case FailureKind.INVALID_RESPONSE:
            return MalformedResponseError(host, f"gave an answer that is no HTTP ({type(error).__name__})")
