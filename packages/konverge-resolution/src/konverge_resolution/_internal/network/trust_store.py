"""Trusted certificates for TLS connections to sources."""

from __future__ import annotations

import ssl

__all__ = ["TrustStore"]

_MAX_CACHED = 16


class TrustStore:
    """Certificate authorities of the system and additional ones, shared by connections with the same trust.

    Args:
        authorities: Additional certificates in PEM.

    Raises:
        ValueError: The certificates cannot be parsed.
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
                raise ValueError("expected certificates in PEM, found another format") from None

    def load_context(self) -> ssl.SSLContext:
        """Return the TLS context; it is created on first use because that takes tens of milliseconds."""
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context

    def with_authorities(self, authorities: str) -> TrustStore:
        """Return a store with more authorities. Some stores are cached for settings that every resolution repeats.

        Raises:
            ValueError: The certificates cannot be parsed.
        """
        if not authorities.strip():
            return self
        store = self._more.pop(authorities, None) or TrustStore(f"{self._authorities}\n{authorities}")
        self._more[authorities] = store
        if len(self._more) > _MAX_CACHED:
            del self._more[next(iter(self._more))]
        return store
