"""The errors of connections, with messages for users: the attempt, the finding, the next step.

The command line prints these messages unchanged. They contain no credentials, only their source.
"""

from __future__ import annotations

import errno
import re
import ssl
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urlsplit

import aiohttp

from konverge._internal.aiohttp_errors import FailureKind, classify_error, find_proxy_status, find_system_error
from konverge._internal.client.certificate_expiry import parse_certificate_expiry
from konverge._internal.client.config import ClusterConfig
from konverge._internal.client.server_url import redact_url
from konverge._internal.kube import format_time
from konverge.errors import ConnectionFailedError, NotConnectedError, UnauthorizedError, UntrustedServerError

__all__ = ["build_connection_error", "build_unauthorized_error", "may_quote_response"]

# X509_V_ERR_* of OpenSSL: the verification results that require different steps from the user.
_NOT_YET_VALID, _EXPIRED = 9, 10
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
_OTHER_NAME = frozenset({62, 64})

# The names in OpenSSL of the alerts with which a server rejects the *client* certificate.
_CLIENT_CERTIFICATE_ALERT = re.compile(
    r"ALERT_(CERTIFICATE_(EXPIRED|REQUIRED|REVOKED|UNKNOWN)|BAD_CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE)"
)


def build_connection_error(
    error: Exception, config: ClusterConfig, request: str, timeout_seconds: float, now: datetime
) -> ConnectionFailedError:
    """Build the typed error for an error of aiohttp.

    Args:
        error: The error of aiohttp.
        config: The configuration of the connection.
        request: The method and path.
        timeout_seconds: The deadline of the request.
        now: The present time, to detect an expired client certificate.
    """
    server, source = config.server, config.source
    # The innermost error first: aiohttp's own are SSL errors as well, without the details of OpenSSL.
    for cause in reversed(tuple(_iter_wrapped_errors(error))):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return UntrustedServerError(_describe_untrusted_certificate(cause, config))
        if isinstance(cause, ssl.SSLError):
            return _build_tls_error(cause, config, now)
    match classify_error(error):
        case FailureKind.PROXY_REFUSAL:
            return NotConnectedError(
                f"the proxy {redact_url(config.proxy_url)} did not connect to {server}: it answered with HTTP status "
                f"{find_proxy_status(error)} ({source}). Check proxy-url or HTTPS_PROXY"
            )
        case FailureKind.PROXY_CONNECTION:
            return NotConnectedError(
                f"cannot reach the proxy {redact_url(config.proxy_url)} on the way to {server}: "
                f"{_describe_system_error(error)} "
                f"({source}). Check proxy-url or HTTPS_PROXY"
            )
        case FailureKind.NAME_RESOLUTION:
            return NotConnectedError(
                f"cannot find the host {urlsplit(server).hostname} of the API server {server} ({source}). "
                "Check the address and the name service"
            )
        case FailureKind.CONNECTION | FailureKind.TLS | FailureKind.UNTRUSTED_CERTIFICATE:
            return NotConnectedError(
                f"cannot reach the API server {server}: {_describe_system_error(error)} ({source}). "
                "Is the cluster running, and is this its address?"
            )
        case FailureKind.CONNECTION_TIMEOUT:
            return NotConnectedError(
                f"cannot reach the API server {server}: no connection in time ({source}). "
                "Check the address, the network and firewalls"
            )
        case FailureKind.RESPONSE_TIMEOUT:
            return ConnectionFailedError(
                f"{request}: the API server {server} did not answer within {timeout_seconds:g} s ({source})"
            )
    text = type(error).__name__ if may_quote_response(error) else str(error) or type(error).__name__
    if isinstance(error, aiohttp.ServerDisconnectedError) and (advice := _describe_own_expiry(config, now)):
        # In TLS 1.3 a server checks the client certificate after the handshake, and asyncio does not report its alert.
        return UntrustedServerError(f"the API server {server} closed the connection ({source}). {advice}")
    return ConnectionFailedError(f"{request}: the connection to the API server {server} broke: {text} ({source})")


def may_quote_response(error: BaseException) -> bool:
    """Return True if the text of an error may quote received bytes: bytes that are not HTTP may be part of a Secret."""
    return isinstance(error, aiohttp.ClientResponseError | aiohttp.ClientPayloadError)


def build_unauthorized_error(config: ClusterConfig, message: str, now: datetime) -> UnauthorizedError:
    """Build the error for HTTP status 401.

    Args:
        config: The configuration with the credentials.
        message: The message of the server.
        now: The present time, to detect an expired client certificate.
    """
    advice = _describe_own_expiry(config, now) or "They may have expired, or be those of another cluster"
    return UnauthorizedError(
        f"the API server {config.server} does not accept {config.credentials.description} "
        f"({config.source}): {message}. {advice}"
    )


def _describe_untrusted_certificate(error: ssl.SSLCertVerificationError, config: ClusterConfig) -> str:
    host = config.tls.server_name or urlsplit(config.server).hostname
    if error.verify_code == _EXPIRED:
        problem = "it has expired. Renew it, or correct this machine's clock"
    elif error.verify_code == _NOT_YET_VALID:
        problem = "it is not valid yet. Correct this machine's clock"
    elif error.verify_code in _UNKNOWN_AUTHORITY:
        authority = "the certificate-authority" if config.tls.authority else "any authority that this machine trusts"
        problem = f"it is not signed by {authority}. Is this the right cluster? Check certificate-authority"
    elif error.verify_code in _OTHER_NAME:
        problem = f"it is not valid for {host}. Check the address, or set tls-server-name"
    else:
        problem = f"{error.verify_message}. Check certificate-authority"
    return f"cannot trust the certificate of the API server {config.server} ({config.source}): {problem}"


def _build_tls_error(error: ssl.SSLError, config: ClusterConfig, now: datetime) -> ConnectionFailedError:
    reason = error.reason or str(error)
    if _CLIENT_CERTIFICATE_ALERT.search(reason):
        advice = _describe_own_expiry(config, now) or "Renew it, or check that it is for this cluster"
        return UntrustedServerError(
            f"the API server {config.server} does not accept {config.credentials.description} "
            f"({config.source}): {reason}. {advice}"
        )
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        return UntrustedServerError(
            f"the server at {config.server} does not speak TLS ({config.source}). "
            "Is it the right port? A server without TLS has an http:// address"
        )
    return UntrustedServerError(f"TLS with the API server {config.server} failed: {reason} ({config.source})")


def _describe_own_expiry(config: ClusterConfig, now: datetime) -> str:
    end = parse_certificate_expiry(config.tls.certificate)
    if end is None or end > now:
        return ""
    return f"The client certificate expired at {format_time(end)}: renew it"


def _iter_wrapped_errors(error: BaseException) -> Iterator[BaseException]:
    """Iterate over the error and its causes: aiohttp wraps the errors of the operating system and OpenSSL."""
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        seen.append(current)
        yield current
        inner = getattr(current, "certificate_error", None) or getattr(current, "os_error", None)
        current = inner if isinstance(inner, BaseException) and inner is not current else current.__cause__


def _describe_system_error(error: Exception) -> str:
    cause = find_system_error(error)
    if cause is None:
        return type(error).__name__
    if cause.errno == errno.ECONNREFUSED:
        return "connection refused"
    return cause.strerror or str(cause) or "the connection was closed"
