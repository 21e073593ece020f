"""Proxies, which are a setting: nothing is taken from the environment."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote, unquote, urlsplit

from konverge_resolution.network.errors import InvalidRequestError
from konverge_resolution.network.url_parsing import parse_url

__all__ = ["Proxy"]


@dataclass(frozen=True, slots=True)
class Proxy:
    """Who connects instead of us: by CONNECT for https, by whole URLs for http.

    Args:
        url: Without a user.
        headers: What only the proxy gets.
        direct: Hosts that are reached without it; with ``.`` before it, all hosts below one.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    direct: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, *, direct: Iterable[str] = ()) -> Self:
        """Read ``http://user:password@proxy.example:3128``.

        Args:
            text: The URL, perhaps with a user and a password.
            direct: Hosts that are reached without it; ``.example.com`` or ``*.example.com`` for all below one.

        Raises:
            ValueError: It is none; the message does not show it.
        """
        try:
            parts = urlsplit(text.strip())
            plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            url = parse_url(plain)
            if url.path not in ("", "/") or url.query_string:
                raise ValueError
        except (ValueError, InvalidRequestError):
            raise ValueError("expected a proxy such as http://proxy.example:3128 (not shown)") from None
        headers = {}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Proxy-Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        names = (each.strip().lower().removeprefix("*") for each in direct)
        return cls(str(url.origin()), headers, tuple(name for name in names if name))

    @property
    def address(self) -> tuple[str, int]:
        """Its host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def url_with_user(self) -> str:
        """The URL as programs are given it that connect by themselves, with user and password."""
        _, _, basic = self.headers.get("Proxy-Authorization", "").partition(" ")
        user, _, password = base64.b64decode(basic).decode().partition(":")
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{rest}" if basic else self.url

    def bypasses(self, host: str) -> bool:
        """Tell whether a host is reached without it."""
        found = host.lower().rstrip(".")
        return any(found.endswith(name) if name.startswith(".") else found == name for name in self.direct)
