"""Whose certificates are trusted."""

from __future__ import annotations

import ssl

__all__ = ["TrustStore"]

_MAX_CACHED = 16


class TrustStore:
    """The machine's authorities, and perhaps more of them; one for everything in a process that trusts the same.

    Args:
        authorities: More of them, in PEM.

    Raises:
        ValueError: These are no certificates.
    """

    def __init__(self, authorities: str = "") -> None:
        self._authorities = authorities
        self._context: ssl.SSLContext | None = None
        self._more: dict[str, TrustStore] = {}
        if authorities.strip():
            self._context = ssl.create_default_context()
            try:
                self._context.load_verify_locations(cadata=authorities)
            except (ssl.SSLError, ValueError):
                raise ValueError("expected certificates in PEM, found something else") from None

    def load_context(self) -> ssl.SSLContext:
        """What connections are made with; read when it is first needed, because that takes some tens of ms."""
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context

    def with_authorities(self, authorities: str) -> TrustStore:
        """The same with more authorities. Some are remembered, for settings that come with every resolution.

        Raises:
            ValueError: These are no certificates.
        """
        if not authorities.strip():
            return self
        found = self._more.pop(authorities, None) or TrustStore(f"{self._authorities}\n{authorities}")
        self._more[authorities] = found
        if len(self._more) > _MAX_CACHED:
            del self._more[next(iter(self._more))]
        return found
