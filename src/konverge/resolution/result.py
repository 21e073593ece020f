"""What a resolver brings, and the record of where it came from."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from konverge.resolution.reference import Parameters

__all__ = ["MAX_CONTENT_BYTES", "Resolved", "Source"]

MAX_CONTENT_BYTES = 1 << 20
"""Of a definition. As base64 it is 1,398,104 bytes, which an object can still hold below etcd's limit of 1.5 MiB."""


class Source(msgspec.Struct, frozen=True, rename="camel"):
    """Where content came from, exactly; the shape is that of SLSA's provenance.

    Attributes:
        uri: The place, without credentials, for example ``git+https://example.com/platform/boxes``.
        digest: What it was there, by algorithm: of git the commit, of an image its manifest, else the content.
        entry_point: Which part of it; empty when it is the whole.
    """

    uri: str
    digest: Mapping[str, str]
    entry_point: str = ""


class Resolved(msgspec.Struct, frozen=True):
    """The content, as the source has it, byte for byte.

    Attributes:
        data: At most `MAX_CONTENT_BYTES`.
        source: Where it came from.
        annotations: What else the resolver tells of it; no secrets.
        pinned: Parameters that name this very content for ever; empty when the source has no such names.
    """

    data: bytes
    source: Source
    annotations: Mapping[str, str] = {}
    pinned: Parameters = {}

    def __repr__(self) -> str:
        # The content is somebody's; it has no business in a log.
        return f"Resolved({len(self.data)} bytes of {self.source.uri})"
