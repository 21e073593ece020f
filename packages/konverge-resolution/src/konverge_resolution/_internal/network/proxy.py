"""Proxies from settings; environment variables are ignored."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote, unquote, urlsplit

from konverge_resolution._internal.network.errors import InvalidRequestError
from konverge_resolution._internal.network.url_parsing import parse_url

__all__ = ["Proxy"]


@dataclass(frozen=True, slots=True)
class Proxy:
    """Proxy for connections: CONNECT for https, absolute URLs for http.

    Args:
        url: The URL without a user.
        headers: Headers for the proxy only.
        direct: Hosts without the proxy; a leading ``.`` includes all subdomains.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    direct: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, *, direct: Iterable[str] = ()) -> Self:
        """Parse ``http://user:password@proxy.example:3128``.

        Args:
            text: The URL; it may have a user and a password.
            direct: Hosts without the proxy; ``.example.com`` or ``*.example.com`` includes all subdomains.

        Raises:
            ValueError: The text is not such a URL; the message does not contain it.
        """
        try:
            parts = urlsplit(text.strip())
            plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            url = parse_url(plain)
            if url.path not in ("", "/") or url.query_string:
                raise ValueError
        except (ValueError, InvalidRequestError):
            raise ValueError(
                "expected a proxy such as http://proxy.example:3128, found another text, which may contain a password"
            ) from None
        headers = {}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Proxy-Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        names = (host.strip().lower().removeprefix("*") for host in direct)
        return cls(str(url.origin()), headers, tuple(name for name in names if name))

    @property
    def address(self) -> tuple[str, int]:
        """The host and port of the proxy."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def url_with_user(self) -> str:
        """The URL with user and password, for programs that open their own connections."""
        _, _, basic = self.headers.get("Proxy-Authorization", "").partition(" ")
        user, _, password = base64.b64decode(basic).decode().partition(":")
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{rest}" if basic else self.url

    def select(self, scheme: str, host: str, port: int) -> Self | None:
        """Return the proxy for a connection; None for a direct one."""
        return None if self.bypasses(host) else self

    def bypasses(self, host: str) -> bool:
        """Tell whether a host is connected to without the proxy."""
        name = host.lower().rstrip(".")
        return any(name.endswith(direct) if direct.startswith(".") else name == direct for direct in self.direct)
