"""Headers of tar archives. Pure.

Written here because the tar readers of some Python versions hang on or allocate what a hostile header claims
(CVE-2024-6232, CVE-2025-8194).
"""

from __future__ import annotations

from dataclasses import dataclass

from konverge_resolution._internal.resolvers.bundles.failures import build_unsupported_error

__all__ = ["BLOCK", "TarHeader", "has_valid_checksum", "is_end", "parse_header", "round_up"]

BLOCK = 512
"""Size of a header; content is padded to a multiple of it."""

_FILES = (b"0", b"\0", b"7")
_FOLDER = b"5"
_EXTENSIONS = (b"x", b"g", b"L", b"K")


@dataclass(frozen=True, slots=True)
class TarHeader:
    """Header of one entry.

    Args:
        name: The path of the entry, without those of extensions.
        type: The type of the entry.
        size: The size of its content in bytes, as the header claims.
    """

    name: bytes
    type: bytes
    size: int

    @property
    def is_file(self) -> bool:
        """Tell whether it is a plain file."""
        return self.type in _FILES

    @property
    def is_folder(self) -> bool:
        """Tell whether it is a directory."""
        return self.type == _FOLDER

    @property
    def is_extension(self) -> bool:
        """Tell whether its content describes the next entry."""
        return self.type in _EXTENSIONS


def parse_header(block: bytes, what: str) -> TarHeader:
    """Parse the header of an entry.

    Args:
        block: 512 bytes, or fewer at the end of the archive.
        what: The name of the archive in messages.

    Raises:
        ResolutionError: ``UnsupportedContent``: it is not a header.
    """
    if len(block) < BLOCK or not has_valid_checksum(block):
        raise build_unsupported_error(what, "a tar", "a damaged one")
    name = block[:100].partition(b"\0")[0]
    prefix = block[345:500].partition(b"\0")[0] if block[257:263] == b"ustar\0" else b""
    return TarHeader(prefix + b"/" + name if prefix else name, block[156:157], _parse_size(block[124:136], what))


def has_valid_checksum(block: bytes) -> bool:
    """Tell whether 512 bytes are the header of an entry."""
    field = block[148:156].strip(b"\0 ")
    try:
        return int(field, 8) == sum(block[:148]) + 8 * ord(" ") + sum(block[156:BLOCK])
    except ValueError:
        return False


def is_end(block: bytes) -> bool:
    """Tell whether a block ends the archive: it is empty or has only zeros."""
    return not block.strip(b"\0")


def round_up(size: int) -> int:
    """Return the size of content with its padding."""
    return -(-size // BLOCK) * BLOCK


def _parse_size(field: bytes, what: str) -> int:
    if field[0] & 0x80:  # sizes of 8 GiB and more are binary
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    try:
        size = int(field.strip(b"\0 ") or b"0", 8)
    except ValueError:
        size = -1
    if size < 0:
        raise build_unsupported_error(what, "a tar", "a damaged one")
    return size
