"""Requests and responses of the two types of hub. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS

__all__ = [
    "ARTIFACT",
    "TEKTON",
    "TYPES",
    "HubPackage",
    "parse_content",
    "parse_exact_version",
    "parse_versions",
]

ARTIFACT = "artifact"
TEKTON = "tekton"
TYPES = (ARTIFACT, TEKTON)

_EXACT = re.compile(r"v?([0-9]+)(?:\.([0-9]+)(?:\.([0-9]+))?)?(-[0-9A-Za-z.-]+)?")
_MOST_VERSIONS = 10_000


@dataclass(frozen=True, slots=True)
class HubPackage:
    """Definition on a hub, of any version.

    Args:
        type: The type of the hub, one of `TYPES`.
        kind: The kind, for example ``task``.
        catalog: The catalog.
        name: The name.
    """

    type: str
    kind: str
    catalog: str
    name: str

    def build_list_url(self, hub: str) -> str:
        """Return the URL with the list of versions."""
        kind, catalog, name = (quote(segment, safe="") for segment in (self.kind, self.catalog, self.name))
        if self.type == ARTIFACT:
            return f"{hub}/api/v1/packages/tekton-{kind}/{catalog}/{name}"
        return f"{hub}/v1/resource/{catalog}/{kind}/{name}"

    def build_version_url(self, hub: str, version: str) -> str:
        """Return the URL of one version."""
        url = f"{self.build_list_url(hub)}/{quote(version, safe='')}"
        return url if self.type == ARTIFACT else f"{url}/yaml"


def parse_exact_version(text: str, hub_type: str) -> str | None:
    """Return a version as hubs of a type write it; None for a range of versions.

    Artifact Hub has three numbers (``0.7`` is 0.7.0), Tekton Hub two (0.7.0 is ``0.7``).

    Args:
        text: The version of the reference.
        hub_type: One of `TYPES`.
    """
    match = _EXACT.fullmatch(text)
    if match is None or match[2] is None:  # a single number is a range: 1 is the newest 1.x
        return None
    major, minor, patch, suffix = match[1], match[2], match[3], match[4] or ""
    if hub_type == ARTIFACT:
        return f"{major}.{minor}.{patch or 0}{suffix}"
    return f"{major}.{minor}{suffix}"


class _ListedVersion(msgspec.Struct):
    version: str
    prerelease: bool = False


class _ArtifactList(msgspec.Struct):
    available_versions: list[_ListedVersion] = []


class _TektonVersions(msgspec.Struct):
    versions: list[_ListedVersion] = []


class _TektonList(msgspec.Struct):
    data: _TektonVersions


class _ArtifactData(msgspec.Struct):
    content: str = msgspec.field(name="manifestRaw")


class _TektonData(msgspec.Struct):
    content: str = msgspec.field(name="yaml")


class _ArtifactVersion(msgspec.Struct):
    data: _ArtifactData


class _TektonVersion(msgspec.Struct):
    data: _TektonData


def parse_versions(body: bytes, hub_type: str) -> Sequence[str]:
    """Return the versions of a hub's list that are not marked as pre-releases.

    Args:
        body: The body of the response.
        hub_type: One of `TYPES`.

    Raises:
        ValueError: The content is not such a list.
    """
    if hub_type == ARTIFACT:
        listed = _decode_body(body, _ArtifactList).available_versions
    else:
        listed = _decode_body(body, _TektonList).data.versions
    return [version.version for version in listed[:_MOST_VERSIONS] if not version.prerelease]


def parse_content(body: bytes, hub_type: str) -> bytes:
    """Return the definition of a hub's response for one version.

    Args:
        body: The body of the response.
        hub_type: One of `TYPES`.

    Raises:
        ValueError: The response has no definition.
    """
    content: str = _decode_body(body, _ArtifactVersion if hub_type == ARTIFACT else _TektonVersion).data.content
    return content.encode()


def _decode_body(body: bytes, form: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=form)
    except DECODE_ERRORS:
        raise ValueError("expected a hub's response, found another format") from None
