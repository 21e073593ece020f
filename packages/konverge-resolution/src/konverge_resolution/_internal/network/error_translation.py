"""Translation of aiohttp's errors to the errors of this package.

The texts of aiohttp's errors contain URLs, headers and addresses, so they are neither passed on nor chained.
"""

from __future__ import annotations

import os

from aiohttp.http_exceptions import HttpProcessingError

from konverge._internal.aiohttp_errors import FailureKind, classify_error, find_proxy_status, find_system_error
from konverge_resolution._internal.network.errors import (
    BrokenConnectionError,
    HostUnreachableError,
    InvalidRequestError,
    MalformedResponseError,
    NetworkError,
    NoTlsError,
    ResponseTooLargeError,
    UntrustedCertificateError,
)

__all__ = ["translate_error"]

_HEADER_LIMITS = ("Got more than ", "Too many headers")


def translate_error(host: str, error: Exception) -> NetworkError:
    """Return the network error for an error of aiohttp.

    Args:
        host: The requested host, as messages may contain it.
        error: One of `AIOHTTP_ERRORS`.
    """
    match classify_error(error):
        case FailureKind.NAME_RESOLUTION:
            return HostUnreachableError(host, "has a name that cannot be resolved")
        case FailureKind.UNTRUSTED_CERTIFICATE:
            return UntrustedCertificateError(host, "has a certificate that is not trusted")
        case FailureKind.TLS:
            return NoTlsError(host, "supports no common version of TLS")
        case FailureKind.PROXY_CONNECTION:
            return HostUnreachableError(host, "is behind a proxy that cannot be connected to")
        case FailureKind.PROXY_REFUSAL:
            status = find_proxy_status(error)
            return HostUnreachableError(host, f"is behind a proxy that refuses the connection with status {status}")
        case FailureKind.CONNECTION:
            # Only the error number: the text contains the address, which only the resolver may see.
            number = getattr(find_system_error(error), "errno", None)
            return HostUnreachableError(
                host, f"cannot be connected to: {os.strerror(number).lower() if number else 'no response'}"
            )
        case FailureKind.INVALID_URL:
            return InvalidRequestError(host, "has a host that is neither a name nor an address")
        case FailureKind.RESPONSE_BODY:
            return BrokenConnectionError(host, "closed the connection in the middle of its response")
        case FailureKind.DISCONNECTED | FailureKind.CONNECTION_TIMEOUT | FailureKind.RESPONSE_TIMEOUT:
            return BrokenConnectionError(host, "closed the connection without a response")
        case FailureKind.INVALID_RESPONSE:
            if _exceeds_header_limit(error):
                return ResponseTooLargeError(host, None)
            return MalformedResponseError(host, f"returned an invalid HTTP response ({type(error).__name__})")


def _exceeds_header_limit(error: Exception) -> bool:
    """Tell whether aiohttp stopped at its limit for headers; its parser in C has no class for that, only texts."""
    cause = error.__cause__
    return isinstance(cause, HttpProcessingError) and cause.message.startswith(_HEADER_LIMITS)
