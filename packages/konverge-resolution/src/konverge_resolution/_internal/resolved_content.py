"""Content that a resolver returns, and the record of its source."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from konverge_resolution._internal.reference import Parameters

__all__ = ["MAX_CONTENT_BYTES", "AttachedSignature", "Provenance", "ResolvedContent"]

MAX_CONTENT_BYTES = 1 << 20
"""Maximum size of a definition. As base64 it is 1,398,104 bytes, which fit into an object below etcd's limit of 1.5
MiB.
"""


class Provenance(msgspec.Struct, frozen=True, rename="camel"):
    """Exact source of content, in the shape of SLSA's provenance.

    Attributes:
        uri: The address, without credentials, for example ``git+https://example.com/platform/boxes``.
        digest: The version by algorithm: the commit of git, the manifest of an image, otherwise the content.
        entry_point: The part with the definition; empty for the whole.
    """

    uri: str
    digest: Mapping[str, str]
    entry_point: str = ""

    def __str__(self) -> str:
        return f"{self.uri}#{self.entry_point}" if self.entry_point else self.uri


class AttachedSignature(msgspec.Struct, frozen=True):
    """Signature that a source keeps beside its content. It is not verified yet.

    Attributes:
        media_type: The layout of the payload.
        payload: The signed bytes, or a bundle with the signature.
        subject: The digest of the object that it is attached to and that contains the content.
        signature: The signature in base64; empty if the payload contains it.
    """

    media_type: str
    payload: bytes
    subject: str
    signature: str = ""


class ResolvedContent(msgspec.Struct, frozen=True):
    """Unverified content of a source, byte for byte.

    Attributes:
        data: The bytes; at most `MAX_CONTENT_BYTES`.
        source: The source of the content.
        annotations: Further information of the resolver, without secrets.
        pinned: Parameters that name this content as exactly as the source can; empty without a more exact name.
            `konverge_resolution.Resolver.is_pinned` tells whether they are permanent. The version of a hub is not, so
            it needs a digest besides.
        attached: The signatures beside the content, if `konverge_resolution.FetchRequest.wants_signatures`.
        found_at: The actual source as policies name it, if it differs from the requested one: the target of a redirect,
            or the canonical name of a kind. Policies check it, too.
        found_params: The parameters of the actual source, if they differ: the target path of a symbolic link. Policies
            check them, too.
    """

    data: bytes
    source: Provenance
    annotations: Mapping[str, str] = {}
    pinned: Parameters = {}
    attached: tuple[AttachedSignature, ...] = ()
    found_at: str = ""
    found_params: Parameters = {}

    def __repr__(self) -> str:
        # The content may be confidential and must not be logged.
        return f"ResolvedContent({len(self.data)} bytes of {self.source.uri})"
