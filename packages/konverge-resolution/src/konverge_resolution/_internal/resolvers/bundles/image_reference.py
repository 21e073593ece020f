"""Names of images: registry, repository, tag or digest, each in one spelling. Pure."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import urlsplit

from konverge_resolution._internal.reference import Digest
from konverge_resolution._internal.source_prefix import DOCKER_HUB, DOCKER_HUB_NAMES

__all__ = ["DEFAULT_TAG", "ImageReference", "name_source", "normalize_registry", "parse_image"]

DEFAULT_TAG = "latest"

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
    """Reference to one image; created by `parse_image`.

    Args:
        registry: Host, and port where it is not 443; ``docker.io`` for all names of Docker Hub.
        repository: For example ``team/boxes``.
        tag: Empty if the reference has a digest.
        digest: The digest of the manifest; None if the reference has a tag.
    """

    registry: str
    repository: str
    tag: str = ""
    digest: Digest | None = None

    @property
    def host(self) -> str:
        """Host of the registry for connections, with the port if it is not 443."""
        return _HUB_HOST if self.registry == DOCKER_HUB else self.registry

    @property
    def uri(self) -> str:
        """URI of the repository for policies and records, without tag and digest."""
        return f"oci://{self.registry}/{self.repository}"

    @property
    def name(self) -> str:
        """Name of the repository as in a reference."""
        return f"{self.registry}/{self.repository}"

    def with_digest(self, digest: Digest) -> ImageReference:
        """Return the image of the same repository with this digest."""
        return replace(self, tag="", digest=digest)

    def __str__(self) -> str:
        return f"{self.name}@{self.digest}" if self.digest is not None else f"{self.name}:{self.tag}"


@lru_cache(maxsize=256)  # one resolution reads the same text several times
def parse_image(text: str) -> ImageReference:
    """Parse ``host[:port]/repository[:tag][@digest]``; the prefixes ``oci://`` and ``docker://`` are ignored.

    A name without a host is an image of Docker Hub; without a slash, it is one of ``library/``. The tag beside a
    digest is ignored.

    Raises:
        ValueError: The text is not an image reference; the message has the expected form.
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
    """Return the name of a URL in policies: the repository of a manifest or blob, otherwise the URL itself.

    Args:
        url: The URL, without a query.
    """
    found = _OF_A_REPOSITORY.fullmatch(url)
    if found is None or not all(_PART.fullmatch(part) for part in found[3].split("/")):
        return url
    scheme, authority, repository = found.groups()
    port = urlsplit(url).port
    if scheme == "http" and port == 443:
        return url  # the same name as an image would mean a registry with TLS
    if scheme == "http" and port is None:
        authority += ":80"  # a registry without a port uses TLS
    try:
        return ImageReference(normalize_registry(authority), repository).uri
    except ValueError:
        return url


def normalize_registry(text: str) -> str:
    """Return the canonical spelling of a registry.

    Raises:
        ValueError: The text is not a registry, or its address has several readings.
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
            host = str(
                ipaddress.IPv4Address(host)
            )  # refuses forms like 127.1, which other software reads as an address
    except ValueError:
        raise ValueError(f"expected an IP address in canonical form, found {text[:80]!r}") from None
    if host in DOCKER_HUB_NAMES and port == 443:
        return DOCKER_HUB
    return host if port == 443 else f"{host}:{port}"
