"""Whom a credential is shown to: the one origin that it is for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from yarl import URL

__all__ = ["OriginCredential"]


@dataclass(frozen=True, slots=True)
class OriginCredential:
    """A header for one origin alone.

    Args:
        value: The header's value, with its scheme: ``Bearer …``.
        origin: Who may see it, for example ``https://example.com``; a path is left out.
        header: The header.
    """

    value: str = field(repr=False)
    origin: str
    header: str = "Authorization"

    def is_for(self, url: URL) -> bool:
        """Tell whether a URL's server may see it."""
        return URL(self.origin).origin() == url.origin()

    def add_to(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Headers with this one, in place of any other of its name."""
        return {name: value for name, value in headers.items() if name.lower() != self.header.lower()} | {
            self.header: self.value
        }
