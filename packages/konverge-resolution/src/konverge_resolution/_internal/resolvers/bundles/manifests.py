"""Manifests and indexes of a registry, parsed strictly and after verification of their digest. Pure.

A document with two readings, as manifest and as index, is refused (CVE-2021-41190): the registry chooses the
``Content-Type``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge_resolution._internal.reference import Digest
from konverge_resolution._internal.resolvers.bundles.failures import build_unsupported_error

__all__ = [
    "ACCEPTED",
    "MAX_MANIFEST_BYTES",
    "OCI_INDEX",
    "Descriptor",
    "ImageIndex",
    "Manifest",
    "parse_manifest",
    "select_manifest",
]

MAX_MANIFEST_BYTES = 1 << 20
"""Maximum size of a manifest or an index; those of bundles have a few kilobytes."""

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
"""Media type of an index; a list of referrers has it too."""

_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_INDEXES = (OCI_INDEX, "application/vnd.docker.distribution.manifest.list.v2+json")
_OLD = "application/vnd.docker.distribution.manifest.v1+"
_MAX_ENTRIES = 1000
_DEFAULT_PLATFORM = ("linux", "amd64")

ACCEPTED = (*_MANIFESTS, *_INDEXES)
"""Media types that requests accept and `parse_manifest` reads."""


class Descriptor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Entry of a manifest or an index that points to content.

    Attributes:
        media_type: The media type of the content.
        digest: The digest of the content.
        size: The size of the content in bytes.
        annotations: The annotations of the entry.
        platform: The platform of an entry in an index.
        artifact_type: The artifact type of an entry in an index.
    """

    media_type: str = msgspec.field(name="mediaType")
    digest: str
    size: int
    annotations: Mapping[str, str] | None = None
    platform: Mapping[str, Any] | None = None
    artifact_type: str | None = msgspec.field(name="artifactType", default=None)

    @property
    def parsed_digest(self) -> Digest:
        """Digest as a value; `parse_manifest` has validated it."""
        return Digest.parse(self.digest)

    def get_annotation(self, name: str) -> str:
        """Return one annotation, an empty text if it is absent."""
        return (self.annotations or {}).get(name, "")


class Manifest(msgspec.Struct, frozen=True):
    """Manifest of an image.

    Attributes:
        layers: The layers in the order of the manifest.
    """

    layers: tuple[Descriptor, ...]


class ImageIndex(msgspec.Struct, frozen=True):
    """Index of several images under one name.

    Attributes:
        manifests: The entries in the order of the index.
    """

    manifests: tuple[Descriptor, ...]


class _ManifestDocument(msgspec.Struct, frozen=True):
    schema_version: int = msgspec.field(name="schemaVersion", default=0)
    media_type: str = msgspec.field(name="mediaType", default="")
    config: Descriptor | None = None  # not used here; an invalid entry makes the document invalid
    layers: tuple[Descriptor, ...] | None = None
    manifests: tuple[Descriptor, ...] | None = None


_decoder = msgspec.json.Decoder(_ManifestDocument)


def parse_manifest(data: bytes, content_type: str, *, what: str) -> Manifest | ImageIndex:
    """Parse a manifest or an index.

    Args:
        data: The bytes, with verified digest.
        content_type: The ``Content-Type`` of the response.
        what: The name of the document in messages.

    Raises:
        ResolutionError: ``UnsupportedContent``: another format, an obsolete one, or a document with two readings.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        document = _decoder.decode(data)
    except DECODE_ERRORS:
        raise build_unsupported_error(what, "a manifest or an index", "another document") from None
    if media_type in ("", "application/json", "application/octet-stream"):
        media_type = document.media_type
    if media_type.startswith(_OLD) or document.schema_version == 1:
        raise build_unsupported_error(
            what, "a manifest or an index", "a manifest of Docker's schema 1; push the image again with a current tool"
        )
    if media_type not in ACCEPTED:
        raise build_unsupported_error(what, "a manifest or an index", f"media type {media_type[:80]!r}")
    if document.media_type and document.media_type != media_type:
        raise build_unsupported_error(
            what, f"{media_type} as in the Content-Type", f"a document with mediaType {document.media_type[:80]!r}"
        )
    if document.schema_version != 2 or (document.layers is None) == (document.manifests is None):
        raise build_unsupported_error(
            what, "a document of schema version 2 with either layers or manifests", "another document"
        )
    if (document.manifests is not None) != (media_type in _INDEXES):
        expected, actual = ("manifests", "layers") if media_type in _INDEXES else ("layers", "manifests")
        raise build_unsupported_error(what, f"{expected} in a document of type {media_type}", actual)
    entries = document.layers if document.layers is not None else document.manifests or ()
    _check(entries, what)
    if document.manifests is not None:
        return ImageIndex(document.manifests)
    return Manifest(entries)


def _check(entries: Sequence[Descriptor], what: str) -> None:
    if len(entries) > _MAX_ENTRIES:
        raise build_unsupported_error(what, f"at most {_MAX_ENTRIES} entries", str(len(entries)))
    for number, entry in enumerate(entries):
        try:
            Digest.parse(entry.digest)
        except ValueError:
            raise build_unsupported_error(
                f"{what}: digest of entry {number}", "sha256: or sha512: with its digits", repr(entry.digest[:80])
            ) from None
        if entry.size < 0:
            raise build_unsupported_error(what, "entries with a size of 0 or more", str(entry.size))


def select_manifest(index: ImageIndex, *, what: str) -> Descriptor:
    """Return the entry for the manifest that an index represents.

    A definition has no platform, so its index should have one entry. Entries of other tools (attestations, artifacts,
    unknown platforms) are ignored. The order of preference: the only entry, the only entry without a platform, the
    entry for linux/amd64, which is the default of other tools.

    Args:
        index: The index.
        what: The name of the image in messages.

    Raises:
        ResolutionError: ``UnsupportedContent``: the index has no such entry, or several.
    """
    entries = [entry for entry in index.manifests if entry.media_type in _MANIFESTS and not _is_attestation(entry)]
    for among in (
        entries,
        [entry for entry in entries if not entry.platform],
        [entry for entry in entries if _get_platform(entry) == _DEFAULT_PLATFORM],
    ):
        if len(among) == 1:
            return among[0]
    found = f"{len(entries)} of {len(index.manifests)} possible entries; name one by its digest"
    raise build_unsupported_error(
        what, "an index with one manifest, one without a platform, or one for linux/amd64", found
    )


def _get_platform(entry: Descriptor) -> tuple[object, object]:
    platform = entry.platform or {}
    return platform.get("os"), platform.get("architecture")


def _is_attestation(entry: Descriptor) -> bool:
    return bool(entry.get_annotation("vnd.docker.reference.type")) or _get_platform(entry) == ("unknown", "unknown")
