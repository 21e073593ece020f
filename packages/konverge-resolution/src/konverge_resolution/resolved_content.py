"""What a resolver brings, and the record of where it came from."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from konverge_resolution.reference import Parameters

__all__ = ["MAX_CONTENT_BYTES", "AttachedSignature", "Provenance", "ResolvedContent"]

MAX_CONTENT_BYTES = 1 << 20
"""Of a definition. As base64 it is 1,398,104 bytes, which an object can still hold below etcd's limit of 1.5 MiB."""


class Provenance(msgspec.Struct, frozen=True, rename="camel"):
    """Where content came from, exactly; the shape is that of SLSA's provenance.

    Attributes:
        uri: The place, without credentials, for example ``git+https://example.com/platform/boxes``.
        digest: What it was there, by algorithm: of git the commit, of an image its manifest, else the content.
        entry_point: Which part of it; empty when it is the whole.
    """

    uri: str
    digest: Mapping[str, str]
    entry_point: str = ""

    def __str__(self) -> str:
        return f"{self.uri}#{self.entry_point}" if self.entry_point else self.uri


class AttachedSignature(msgspec.Struct, frozen=True):
    """A signature that a source keeps beside its content. Nobody has looked yet at whether it is right.

    Attributes:
        media_type: The layout of the payload.
        payload: What was signed, or the signature with everything around it.
        subject: The digest of what it is attached to, which the content is a part of.
        signature: In base64; empty when the payload has it.
    """

    media_type: str
    payload: bytes
    subject: str
    signature: str = ""


class ResolvedContent(msgspec.Struct, frozen=True):
    """The content, as the source has it, byte for byte.

    Attributes:
        data: At most `MAX_CONTENT_BYTES`.
        source: Where it came from.
        annotations: What else the resolver tells of it; no secrets.
        pinned: Parameters that name this very content as closely as the source can; empty when it has no closer name.
            Whether they do so for ever, `konverge_resolution.Resolver.is_pinned` says of them: the version of a hub
            does not, and is of use beside a digest only.
        attached: The signatures beside it, when `konverge_resolution.FetchRequest.wants_signatures`.
        found_at: Where it was in the end, as policies name it, when that is not what was asked for: the place to which
            a redirect led, a kind's own name. Policies judge that, too.
        found_params: Parameters by which it would have been asked for where it was, when they are other ones: the path
            to which a symbolic link led. Policies judge these, too.
    """

    data: bytes
    source: Provenance
    annotations: Mapping[str, str] = {}
    pinned: Parameters = {}
    attached: tuple[AttachedSignature, ...] = ()
    found_at: str = ""
    found_params: Parameters = {}

    def __repr__(self) -> str:
        # The content is somebody's; it has no business in a log.
        return f"Resolved({len(self.data)} bytes of {self.source.uri})"
