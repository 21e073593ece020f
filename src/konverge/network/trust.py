"""Whose certificates are trusted."""

from __future__ import annotations

import ssl

__all__ = ["Trust"]


class Trust:
    """The machine's authorities, and perhaps more of them; one for everything that trusts the same.

    Args:
        authorities: More of them, in PEM.

    Raises:
        ValueError: These are no certificates.
    """

    def __init__(self, authorities: str = "") -> None:
        self._context: ssl.SSLContext | None = None
        if authorities.strip():
            self._context = ssl.create_default_context()
            try:
                self._context.load_verify_locations(cadata=authorities)
            except (ssl.SSLError, ValueError):
                raise ValueError("expected certificates in PEM, found something else") from None

    def __call__(self) -> ssl.SSLContext:
        """What connections are made with; read when it is first needed, because that takes some tens of ms."""
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context
