"""Unpacking of a layer to its one file: tar or not, gzip or not, with a size limit from the first byte on. Pure.

A size in a header is compared with the actual bytes before memory of that size is allocated. The upstream resolver
relied on the header as its limit.
"""

from __future__ import annotations

import zlib

from konverge_resolution._internal.resolvers.bundles.failures import build_size_error, build_unsupported_error
from konverge_resolution._internal.resolvers.bundles.tar_headers import (
    BLOCK,
    has_valid_checksum,
    is_end,
    parse_header,
    round_up,
)

__all__ = ["PACKING_BYTES", "unpack"]

PACKING_BYTES = 64 * 1024
"""Bytes that a tar may contain beside a file: headers, long names, padding."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_MAX_PARTS = 100


def unpack(data: bytes, media_type: str, *, max_bytes: int, what: str) -> bytes:
    """Return the file in a layer.

    Args:
        data: The bytes of the layer, with verified digest.
        media_type: The media type in the manifest.
        max_bytes: The maximum size of the file.
        what: The name of the file in messages.

    Raises:
        ResolutionError: ``TooLarge``; ``UnsupportedContent``: another compression, a damaged layer, or a tar with
            anything but one file.
    """
    if data.startswith(_ZSTD) or media_type.endswith(("+zstd", ".zstd")):
        raise build_unsupported_error(what, "a layer without compression or with gzip", "zstd")
    if data.startswith(_GZIP):
        data = _decompress(data, max_bytes + PACKING_BYTES, what)
    elif media_type.endswith(("+gzip", ".gzip")) and not data:
        raise build_unsupported_error(what, "a layer compressed with gzip", "an empty one")
    content = _read_tar_file(data, max_bytes, what) if _is_tar(data) else data
    if len(content) > max_bytes:
        raise build_size_error(what, max_bytes, str(len(content)))
    return content


def _decompress(data: bytes, limit: int, what: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while data:  # gzip can have several members; each copies the bytes after it
        if len(pieces) == _MAX_PARTS:
            raise build_unsupported_error(what, f"a layer compressed with gzip in at most {_MAX_PARTS} members", "more")
        unpacking = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        try:
            # One byte above the limit proves that there are more; the rest of a bomb is never unpacked.
            piece = unpacking.decompress(data, limit - size + 1)
        except zlib.error:
            raise build_unsupported_error(what, "a layer compressed with gzip", "a damaged one") from None
        size += len(piece)
        if size > limit:
            raise build_size_error(what, limit - PACKING_BYTES, "more after decompression")
        if not unpacking.eof:
            raise build_unsupported_error(what, "a layer compressed with gzip", "a truncated one")
        pieces.append(piece)
        data = unpacking.unused_data.lstrip(b"\0")
    return b"".join(pieces)


def _is_tar(data: bytes) -> bool:
    return data[257:262] == b"ustar" or (len(data) >= BLOCK and data[:1] != b"\0" and has_valid_checksum(data[:BLOCK]))


def _read_tar_file(data: bytes, max_bytes: int, what: str) -> bytes:
    content: bytes | None = None
    at = 0
    while not is_end(block := data[at : at + BLOCK]):
        header, start = parse_header(block, what), at + BLOCK
        if header.is_file and header.size > max_bytes:
            raise build_size_error(what, max_bytes, f"{header.size} in the header of the tar")
        if header.size > len(data) - start:
            raise build_unsupported_error(what, "a tar", "a truncated one, or one with a wrong size in a header")
        body = data[start : start + header.size]
        if header.is_file:
            if content is not None:
                raise build_unsupported_error(what, "a tar with one file", "several")
            content = body
        elif header.is_extension:
            # These records change the size or the position of the next file; no tool packs a definition this way.
            if b" size=" in body or b" GNU.sparse" in body:
                raise build_unsupported_error(
                    what, "a tar with one plain file", "a sparse file, or one with a second size"
                )
        elif not header.is_folder:
            raise build_unsupported_error(what, "a tar with one plain file", "a link, a device or a sparse file")
        at = start + round_up(header.size)
    if content is None:
        raise build_unsupported_error(what, "a tar with one file", "none")
    return content
