"""Addresses of sources in the one form that policies compare and messages print. Pure.

One source has several spellings, such as ``git+https://Git.example.com:443/team/boxes.git``. The canonical form has

* scheme and host in lower case, without a final dot of the host and without the default port
* no user, query, fragment, empty segment and final slash
* no percent-encoding of a character that needs none, and the encoding of all others
* no ``.git`` at the end of the path of a git repository: servers of git accept both names
* ``docker.io`` for the other names of Docker Hub
* kinds and names of cluster objects in lower case
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

__all__ = ["DOCKER_HUB", "DOCKER_HUB_NAMES", "SourcePrefix", "canonicalize_source"]

DOCKER_HUB = "docker.io"
"""Registry of Docker Hub in image names and policies."""

DOCKER_HUB_NAMES = frozenset({DOCKER_HUB, "index.docker.io", "registry-1.docker.io"})
"""All names of Docker Hub."""

_CLUSTER_SCHEME = "cluster"
"""Scheme of cluster objects. Their kinds are matched without case, and their names are in lower case."""
_GIT_SCHEMES = "git+"
_GIT_SUFFIX = ".git"
_DEFAULT_PORTS = {"http": 80, "https": 443, "oci": 443, "ssh": 22, "git": 9418}
_UNENCODED = "!$&'()*+,;=:@"
"""Characters of a path that need no encoding besides letters, digits and ``-._~`` (RFC 3986, "pchar")."""
_MAX_TEXT = 120


@dataclass(frozen=True, slots=True)
class SourcePrefix:
    """Prefix of addresses in canonical form; made by `parse`.

    Args:
        scheme: The full scheme, for example ``git+https``.
        host: The host in lower case; with the prefix ``*.`` all subdomains.
        port: The port; None for the default of the scheme.
        segments: The first segments of the path, without percent-encoding.
    """

    scheme: str
    host: str
    port: int | None
    segments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> SourcePrefix:
        """Parse ``https://example.com/team`` or ``https://*.example.com``.

        Raises:
            ValueError: The text is not an address, or has several readings.
        """
        prefix = _parse_address(text)
        if "*" in prefix.host.removeprefix("*.") or any("*" in segment for segment in prefix.segments):
            raise ValueError(f"expected no * but for *. before a host, found {text[:_MAX_TEXT]!r}")
        return prefix

    def matches(self, uri: str) -> bool:
        """Tell whether an address begins with this prefix; False for an ambiguous address."""
        try:
            found = _parse_address(uri)
        except ValueError:
            return False
        return self._has_origin(found) and found.segments[: len(self.segments)] == self.segments

    def may_match(self, uri: str) -> bool:
        """Tell whether a server could read an address as one that begins with this prefix.

        Some servers ignore the case of paths; an ambiguous address can mean anything.
        """
        try:
            found = _parse_address(uri)
        except ValueError:
            return True
        wanted = self._fold_segments()
        return self._has_origin(found) and found._fold_segments()[: len(wanted)] == wanted

    def _has_origin(self, found: SourcePrefix) -> bool:
        is_host = found.host.endswith(self.host[1:]) if self.host.startswith("*.") else found.host == self.host
        return is_host and (found.scheme, found.port) == (self.scheme, self.port)

    def _fold_segments(self) -> tuple[str, ...]:
        folded = (segment.casefold() for segment in self.segments)
        if not self.scheme.startswith(_GIT_SCHEMES):
            return tuple(folded)
        return tuple(_strip_git(segment) for segment in folded)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        path = "".join(f"/{quote(segment, safe=_UNENCODED, errors='surrogateescape')}" for segment in self.segments)
        return f"{self.scheme}://{host}{port}{path}"


def canonicalize_source(uri: str) -> str:
    """Return an address in the form that policies compare; unchanged if it is ambiguous or not an address."""
    try:
        return str(_parse_address(uri))
    except ValueError:
        return uri


def _parse_address(uri: str) -> SourcePrefix:
    """Parse an address; a query and a fragment are ignored.

    Raises:
        ValueError: The text is not an address, has a user, or has an ambiguous path.
    """
    parts = urlsplit(uri)
    if not parts.scheme or not parts.hostname or parts.username is not None or any(not 32 < ord(c) < 127 for c in uri):
        raise ValueError(f"expected an address such as https://example.com/team, found {uri[:_MAX_TEXT]!r}")
    path = parts.path.lower() if parts.scheme == _CLUSTER_SCHEME else parts.path
    segments = tuple(unquote(segment, errors="surrogateescape") for segment in path.split("/") if segment)
    if any(_is_ambiguous(segment) for segment in segments):
        raise ValueError(f"expected an address without . and .. in its path, found {uri[:_MAX_TEXT]!r}")
    if parts.scheme.startswith(_GIT_SCHEMES) and segments:
        segments = (*segments[:-1], _strip_git(segments[-1]))
    port = None if parts.port == _DEFAULT_PORTS.get(parts.scheme.rpartition("+")[2]) else parts.port
    host = parts.hostname.rstrip(".")
    if not host:
        raise ValueError(f"expected an address such as https://example.com/team, found {uri[:_MAX_TEXT]!r}")
    if parts.scheme == "oci" and host in DOCKER_HUB_NAMES and port is None:
        host = DOCKER_HUB
    return SourcePrefix(parts.scheme, host, port, segments)


def _strip_git(segment: str) -> str:
    while segment.endswith(_GIT_SUFFIX) and segment != _GIT_SUFFIX:
        segment = segment.removesuffix(_GIT_SUFFIX)
    return segment


def _is_ambiguous(segment: str) -> bool:
    """Tell whether a server may read a segment as several, or as the parent (some read ``..;a`` as ``..``)."""
    is_parent = segment.partition(";")[0] in (".", "..")
    return is_parent or any(c in "/\\" or ord(c) < 32 or ord(c) == 127 for c in segment)
