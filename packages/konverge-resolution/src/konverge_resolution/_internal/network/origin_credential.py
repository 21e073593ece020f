"""Credentials that are sent to one origin only. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from yarl import URL

__all__ = ["OriginCredential"]


@dataclass(frozen=True, slots=True)
class OriginCredential:
    """Header with a credential for one origin.

    Args:
        value: The value of the header with its scheme: ``Bearer …``.
        origin: The origin, for example ``https://example.com``; a path is ignored.
        header: The name of the header.
    """

    value: str = field(repr=False)
    origin: str
    header: str = "Authorization"

    def is_for(self, url: URL) -> bool:
        """Tell whether the origin of a URL may receive it."""
        return URL(self.origin).origin() == url.origin()

    def add_to(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return headers with this one, which replaces another header of its name."""
        return {name: value for name, value in headers.items() if name.lower() != self.header.lower()} | {
            self.header: self.value
        }
