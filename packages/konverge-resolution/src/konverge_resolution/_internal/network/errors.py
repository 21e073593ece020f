"""Network errors: one tree, with a class for each possible reaction of a caller.

An error has the host (`host`) and its problem (`problem`) separately, so that a message can name the source as the user
gave it. Neither contains a path, a query, a header or a text of the server.
"""

from __future__ import annotations

from typing import Self

__all__ = [
    "BrokenConnectionError",
    "HostUnreachableError",
    "InvalidRequestError",
    "MalformedResponseError",
    "NetworkError",
    "NoTlsError",
    "RefusedAddressError",
    "RefusedRedirectError",
    "ResponseTooLargeError",
    "UntrustedCertificateError",
]


class NetworkError(Exception):
    """Failure without a usable response.

    It is not an `OSError`, so that code that tries several addresses does not treat it as an unreachable address.

    Args:
        host: The requested host, or scheme, host and port.
        problem: The problem as a predicate of the host: ``cannot be connected to``.

    Attributes:
        problem: The problem as a predicate of the address that the user gave. It differs behind a redirect, whose
            target only the text of the error names.
    """

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(f"{host} {problem}")
        self.host = host
        self.problem: str = problem

    def with_redirect(self) -> Self:
        """Return this error as one behind a redirect."""
        self.problem = f"redirects to an address that {self.problem}"
        return self


class InvalidRequestError(NetworkError):
    """Request that cannot be sent: its URL or a header is invalid."""


class RefusedAddressError(NetworkError):
    """Host whose address is not permitted.

    Args:
        host: The host as it was requested.
        address: The resolved address.
        kind: The kind of the network, for example ``link-local``.
        opened_by: Hint on how to permit it; empty for none.
    """

    def __init__(self, host: str, address: str, kind: str, opened_by: str = "") -> None:
        problem = f"may not be reached: its network is {kind}{'; ' if opened_by else ''}{opened_by}"
        super().__init__(address if host == address else f"{host} ({address})", problem)
        self.kind = kind


class RefusedRedirectError(NetworkError):
    """Redirect that is not followed: one too many, to another scheme, from TLS to none, or a body to another server."""


class HostUnreachableError(NetworkError):
    """Host that has no address or accepts no connection."""


class UntrustedCertificateError(NetworkError):
    """Host whose certificate is not trusted."""


class NoTlsError(UntrustedCertificateError):
    """Host without a supported version of TLS."""


class BrokenConnectionError(NetworkError):
    """Connection that closed before the response was complete."""


class MalformedResponseError(NetworkError):
    """Response with invalid HTTP or invalid compression."""


class ResponseTooLargeError(NetworkError):
    """Response whose body or headers exceed their limit.

    Args:
        host: The host of the response.
        max_bytes: The limit of the body in bytes; None for headers above the limit of the HTTP client.
    """

    def __init__(self, host: str, max_bytes: int | None) -> None:
        limit = "headers above the limit of the HTTP client" if max_bytes is None else f"more than {max_bytes} bytes"
        super().__init__(host, f"sends {limit}")
        self.max_bytes = max_bytes
