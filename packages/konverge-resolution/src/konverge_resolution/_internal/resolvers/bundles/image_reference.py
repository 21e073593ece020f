"""What names an image: a registry, a repository, a tag or a digest, each in one spelling. Pure."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import urlsplit

from konverge_resolution._internal.reference import Digest

__all__ = ["DEFAULT_TAG", "DOCKER_HUB", "ImageReference", "name_source", "normalize_registry", "parse_image"]

DOCKER_HUB = "docker.io"
"""Whose registry has another name than its images (``registry-1.docker.io``)."""

DEFAULT_TAG = "latest"

_HUB_NAMES = {DOCKER_HUB, "index.docker.io", "registry-1.docker.io"}
_HUB_HOST = "registry-1.docker.io"
_MAX_LENGTH = 512
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?P<host>{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{{1,5}}))?")
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_OF_A_REPOSITORY = re.compile(r"(https?)://([^/]+)/v2/(.+)/(?:manifests|blobs|referrers)/[^/]+")


@dataclass(frozen=True, slots=True)
class ImageReference:
    """One image; made by `parse_image`.

    Args:
        registry: Host, and port where it is not 443; ``docker.io`` for all names of Docker Hub.
        repository: For example ``team/boxes``.
        tag: Empty when a digest names it.
        digest: What the manifest has to be; None when a tag names it.
    """

    registry: str
    repository: str
    tag: str = ""
    digest: Digest | None = None

    @property
    def host(self) -> str:
        """Where the registry answers: host, and port where it is not 443."""
        return _HUB_HOST if self.registry == DOCKER_HUB else self.registry

    @property
    def uri(self) -> str:
        """The repository, without tag and digest, as policies and records name it."""
        return f"oci://{self.registry}/{self.repository}"

    @property
    def name(self) -> str:
        """The repository as a reference writes it."""
        return f"{self.registry}/{self.repository}"

    def with_digest(self, digest: Digest) -> ImageReference:
        """The same repository's image of that digest."""
        return replace(self, tag="", digest=digest)

    def __str__(self) -> str:
        return f"{self.name}@{self.digest}" if self.digest is not None else f"{self.name}:{self.tag}"


@lru_cache(maxsize=256)  # one resolution reads the same text several times
def parse_image(text: str) -> ImageReference:
    """Read ``host[:port]/repository[:tag][@digest]``; ``oci://`` and ``docker://`` before it do not count.

    A name without a host is Docker Hub's, and one of its own (``library/``) when it has no slash. With a digest, a tag
    beside it says nothing and is left out.

    Raises:
        ValueError: It is none; the message says what was expected.
    """
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"expected at most {_MAX_LENGTH} characters, found {len(text)}")
    rest = text.removeprefix("oci://").removeprefix("docker://")
    rest, has_digest, digest_text = rest.partition("@")
    digest = Digest.parse(digest_text) if has_digest else None
    head, slash, tail = rest.partition("/")
    if slash and ("." in head or ":" in head or head == "localhost"):
        registry = normalize_registry(head)
    else:
        registry, tail = DOCKER_HUB, rest
    path, colon, tag = tail.partition(":")
    if colon and not _TAG.fullmatch(tag):
        raise ValueError(f"expected a tag of letters, digits, '.', '_' and '-', found {tag[:80]!r}")
    parts = path.split("/")
    if not all(_PART.fullmatch(part) for part in parts):
        raise ValueError(f"expected a repository such as team/boxes, in lower case, found {path[:120]!r}")
    if registry == DOCKER_HUB and len(parts) == 1:
        path = f"library/{path}"
    return ImageReference(registry, path, "" if digest else tag or DEFAULT_TAG, digest)


def name_source(url: str) -> str:
    """What policies call the place of a URL: the repository whose manifest or blob it is, else the URL itself.

    Args:
        url: The URL, without a query.
    """
    found = _OF_A_REPOSITORY.fullmatch(url)
    if found is None or not all(_PART.fullmatch(part) for part in found[3].split("/")):
        return url
    scheme, authority, repository = found.groups()
    port = urlsplit(url).port
    if scheme == "http" and port == 443:
        return url  # as an image's it would be one with TLS
    if scheme == "http" and port is None:
        authority += ":80"  # without a port, a registry is one with TLS
    try:
        return ImageReference(normalize_registry(authority), repository).uri
    except ValueError:
        return url


def normalize_registry(text: str) -> str:
    """A registry in its one spelling.

    Raises:
        ValueError: It is none, or its address can be read in several ways.
    """
    found = _HOST.fullmatch(text.lower())
    port = int(found["port"]) if found is not None and found["port"] else 443
    if found is None or not 0 < port < 65536:
        raise ValueError(
            f"expected a registry such as registry.example.com or registry.example.com:5000, found {text[:80]!r}"
        )
    host = found["host"]
    try:
        if host.startswith("["):
            host = f"[{ipaddress.IPv6Address(host[1:-1])}]"
        elif all(_NUMBER.fullmatch(label) for label in host.split(".")):
            host = str(ipaddress.IPv4Address(host))  # nothing like 127.1, which others read as an address
    except ValueError:
        raise ValueError(f"expected an address in its usual form, found {text[:80]!r}") from None
    if host in _HUB_NAMES and port == 443:
        return DOCKER_HUB
    return host if port == 443 else f"{host}:{port}"
