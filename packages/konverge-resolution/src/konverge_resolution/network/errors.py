"""Why nothing came of a connection: one tree, with a class for each thing that a caller may do about it.

A failure says whom it is about (`host`) and what is wrong with it (`problem`), apart: whoever tells a user of it names
the place as that user gave it. Neither has a path, a query, a header or a word of the other side's.
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
    """There is no answer that can be used.

    No `OSError`: what tries addresses one after the other must not take it for an address that does not answer.

    Args:
        host: Who was asked: a host, or scheme, host and port.
        problem: What is wrong, to be read after it: ``cannot be connected to``.
    """

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(f"{host} {problem}")
        self.host = host
        self.problem = problem

    def with_redirect(self) -> Self:
        """The same, told of the place that redirected: the one it redirected to is nothing the user has given."""
        self.problem = f"redirects to a place that {self.problem}"
        return self


class InvalidRequestError(NetworkError):
    """A request cannot be sent: its URL has another form, scheme or host than expected, or a header does."""


class RefusedAddressError(NetworkError):
    """The address of a host may not be reached.

    Args:
        host: As it was asked for.
        address: What it resolves to.
        kind: What the address's network is, for example ``link-local``.
        opened_by: How it would be allowed; empty when nobody has said so.
    """

    def __init__(self, host: str, address: str, kind: str, opened_by: str = "") -> None:
        problem = f"may not be reached: its network is {kind}{'; ' if opened_by else ''}{opened_by}"
        super().__init__(address if host == address else f"{host} ({address})", problem)
        self.kind = kind


class RefusedRedirectError(NetworkError):
    """A redirect leads where it is not followed: to another scheme, from TLS to none, with a body to someone else."""


class HostUnreachableError(NetworkError):
    """A host has no address, or nothing there answers."""


class UntrustedCertificateError(NetworkError):
    """A host has a certificate that is not trusted."""


class NoTlsError(UntrustedCertificateError):
    """A host speaks no TLS that we do."""


class BrokenConnectionError(NetworkError):
    """A connection broke before the answer was whole."""


class MalformedResponseError(NetworkError):
    """An answer is no HTTP, packed in a way that cannot be unpacked, or one redirect after another."""


class ResponseTooLargeError(NetworkError):
    """An answer is larger than it may be.

    Args:
        host: Who sent it.
        max_bytes: How large it may be.
    """

    def __init__(self, host: str, max_bytes: int) -> None:
        super().__init__(host, f"sends more than {max_bytes} bytes")
        self.max_bytes = max_bytes
