"""What a registry says an image is: manifests and indexes, read strictly and after their digest was compared. Pure.

A document that can be read as either of the two is refused (CVE-2021-41190): a registry chooses the ``Content-Type``.
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
"""Of a manifest or an index; those of bundles are a few kilobytes."""

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
"""Also what a registry's list of referrers is."""

_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_INDEXES = (OCI_INDEX, "application/vnd.docker.distribution.manifest.list.v2+json")
_OLD = "application/vnd.docker.distribution.manifest.v1+"
_MAX_ENTRIES = 1000
_DEFAULT_PLATFORM = ("linux", "amd64")

ACCEPTED = (*_MANIFESTS, *_INDEXES)
"""The media types that a registry is asked for and whose documents are read."""


class Descriptor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Points to bytes.

    Attributes:
        media_type: What they are.
        digest: Theirs.
        size: How many there are.
        annotations: What the manifest says of them.
        platform: Of an entry of an index.
        artifact_type: Of an entry of an index.
    """

    media_type: str = msgspec.field(name="mediaType")
    digest: str
    size: int
    annotations: Mapping[str, str] | None = None
    platform: Mapping[str, Any] | None = None
    artifact_type: str | None = msgspec.field(name="artifactType", default=None)

    @property
    def parsed_digest(self) -> Digest:
        """The digest, as a value; it was checked when the document was read."""
        return Digest.parse(self.digest)

    def get_annotation(self, name: str) -> str:
        """One annotation, empty for none."""
        return (self.annotations or {}).get(name, "")


class Manifest(msgspec.Struct, frozen=True):
    """An image: layers.

    Attributes:
        layers: In the manifest's order.
    """

    layers: tuple[Descriptor, ...]


class ImageIndex(msgspec.Struct, frozen=True):
    """Several images under one name.

    Attributes:
        manifests: In the index's order.
    """

    manifests: tuple[Descriptor, ...]


class _ManifestDocument(msgspec.Struct, frozen=True):
    schema_version: int = msgspec.field(name="schemaVersion", default=0)
    media_type: str = msgspec.field(name="mediaType", default="")
    config: Descriptor | None = None  # of no use here; one that is damaged is a damaged document
    layers: tuple[Descriptor, ...] | None = None
    manifests: tuple[Descriptor, ...] | None = None


_decoder = msgspec.json.Decoder(_ManifestDocument)


def parse_manifest(data: bytes, content_type: str, *, what: str) -> Manifest | ImageIndex:
    """Read a manifest or an index.

    Args:
        data: The bytes, whose digest is compared already.
        content_type: As the registry says.
        what: What messages call it.

    Raises:
        ResolutionError: ``UnsupportedContent``: it is neither, or of an old form, or one that can be read as both.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        found = _decoder.decode(data)
    except DECODE_ERRORS:
        raise build_unsupported_error(what, "a manifest or an index", "something else") from None
    if media_type in ("", "application/json", "application/octet-stream"):
        media_type = found.media_type
    if media_type.startswith(_OLD) or found.schema_version == 1:
        raise build_unsupported_error(
            what, "a manifest or an index", "a manifest of Docker's schema 1, which has no layers to check"
        )
    if media_type not in ACCEPTED:
        raise build_unsupported_error(what, "a manifest or an index", f"media type {media_type[:80]!r}")
    if found.media_type and found.media_type != media_type:
        raise build_unsupported_error(
            what, f"{media_type}, as the registry says", f"a document that says {found.media_type[:80]!r}"
        )
    if found.schema_version != 2 or (found.layers is None) == (found.manifests is None):
        raise build_unsupported_error(
            what, "either layers or manifests in a document of schema version 2", "something else"
        )
    if (found.manifests is not None) != (media_type in _INDEXES):
        raise build_unsupported_error(what, f"what {media_type} is", "the other one of manifest and index")
    entries = found.layers if found.layers is not None else found.manifests or ()
    _check(entries, what)
    if found.manifests is not None:
        return ImageIndex(found.manifests)
    return Manifest(entries)


def _check(entries: Sequence[Descriptor], what: str) -> None:
    if len(entries) > _MAX_ENTRIES:
        raise build_unsupported_error(what, f"at most {_MAX_ENTRIES} entries", str(len(entries)))
    for entry in entries:
        try:
            Digest.parse(entry.digest)
        except ValueError as error:
            raise build_unsupported_error(what, "entries with digests", str(error)) from None
        if entry.size < 0:
            raise build_unsupported_error(what, "entries with sizes", "a negative one")


def select_manifest(index: ImageIndex, *, what: str) -> Descriptor:
    """The manifest that an index stands for. A definition is for no platform, so that its index should have one entry.

    Entries of other tools (attestations, artefacts, unknown platforms) do not count. The only entry is taken, else the
    only one without a platform, else that for linux/amd64, which is what others take when nobody says.

    Args:
        index: The index.
        what: What messages call the image.

    Raises:
        ResolutionError: ``UnsupportedContent``: there is none, or nothing says which.
    """
    entries = [entry for entry in index.manifests if entry.media_type in _MANIFESTS and not _is_attestation(entry)]
    for among in (
        entries,
        [entry for entry in entries if not entry.platform],
        [entry for entry in entries if _get_platform(entry) == _DEFAULT_PLATFORM],
    ):
        if len(among) == 1:
            return among[0]
    found = f"{len(entries)} of {len(index.manifests)} that could be meant; name one by its digest"
    raise build_unsupported_error(
        what, "an index with one manifest, one without a platform, or one for linux/amd64", found
    )


def _get_platform(entry: Descriptor) -> tuple[object, object]:
    platform = entry.platform or {}
    return platform.get("os"), platform.get("architecture")


def _is_attestation(entry: Descriptor) -> bool:
    return bool(entry.get_annotation("vnd.docker.reference.type")) or _get_platform(entry) == ("unknown", "unknown")
