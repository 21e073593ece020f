"""One file of an archive with many: the layer of a Flux artifact, a Helm chart or a folder that oras has pushed. Pure.

Nothing is written to disk, and only the wanted file is kept. The sizes of the archive, packed and unpacked, and the
number of its entries are limited. Absolute paths and paths with ``..`` name nothing; links are not followed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from konverge_resolution._internal.resolvers.bundles.failures import build_size_error, build_unsupported_error
from konverge_resolution._internal.resolvers.bundles.tar_headers import (
    BLOCK,
    TarHeader,
    is_end,
    parse_header,
    round_up,
)

__all__ = ["MAX_ARCHIVE_BYTES", "list_archive", "normalize_archive_path", "read_archive_file"]

MAX_ARCHIVE_BYTES = 16 << 20
"""Maximum size of a packed archive in bytes."""

_MAX_UNPACKED_BYTES = 64 << 20
_MAX_ENTRIES = 10_000
_MAX_EXTENSION_BYTES = 64 * 1024
_PIECE = 64 * 1024
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_LONG_NAME, _PAX, _GLOBAL_PAX = b"L", b"x", b"g"


def read_archive_file(data: bytes, path: str, *, max_bytes: int, what: str) -> tuple[bytes | None, dict[str, int]]:
    """Return a file of an archive, None if it has none, and the sizes of all files by path.

    Args:
        data: The bytes of the layer, with verified digest.
        path: The path of the file.
        max_bytes: The maximum size of the file.
        what: The name of the image in messages.

    Raises:
        ResolutionError: ``TooLarge``; ``UnsupportedContent``: it is not a tar, packed with gzip or not; the path is
            that of a link or of several entries.
    """
    scan = _ArchiveScan(what, normalize_archive_path(path.encode()), max_bytes)
    scan.read(_Stream(_iter_unpacked(data, what)))
    return scan.content, scan.files


def list_archive(data: bytes, *, what: str) -> dict[str, int]:
    """Return the sizes of the files of an archive by path.

    Raises:
        ResolutionError: As `read_archive_file`.
    """
    scan = _ArchiveScan(what, None, 0)
    scan.read(_Stream(_iter_unpacked(data, what)))
    return scan.files


def normalize_archive_path(name: bytes) -> str | None:
    """Return the path of an entry without ``.`` and empty parts; None for one that names no file of the archive."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return None
    parts = [part for part in text.split("/") if part not in ("", ".")]
    is_inside = parts and not text.startswith("/") and ".." not in parts and "\\" not in text and text.isprintable()
    return "/".join(parts) if is_inside else None


@dataclass
class _ArchiveScan:
    """Scan of all entries.

    Args:
        what: The name of the image in messages.
        wanted: The path of the file to keep; None for none.
        max_bytes: The maximum size of that file.
    """

    what: str
    wanted: str | None
    max_bytes: int
    files: dict[str, int] = field(default_factory=dict)
    content: bytes | None = None

    def read(self, stream: _Stream) -> None:
        long_name: bytes | None = None
        entries = 0
        while not is_end(block := stream.read(BLOCK)):
            header = parse_header(block, self.what)
            if header.is_extension:
                long_name = self._read_extension(header, stream) or long_name
                continue
            entries += 1
            if entries > _MAX_ENTRIES:
                raise build_unsupported_error(self.what, f"an archive of at most {_MAX_ENTRIES} entries", "more")
            self._read_entry(header, normalize_archive_path(long_name or header.name), stream)
            long_name = None

    def _read_extension(self, header: TarHeader, stream: _Stream) -> bytes | None:
        """Return the name that a record gives the next entry; None for other records."""
        if header.size > _MAX_EXTENSION_BYTES:
            raise build_unsupported_error(self.what, "an archive with short headers", f"one of {header.size} bytes")
        body = self._read_content(header, stream)
        if header.type == _LONG_NAME:
            return body.rstrip(b"\0")
        records = dict(_iter_records(body)) if header.type in (_PAX, _GLOBAL_PAX) else {}
        if b"size" in records or any(key.startswith(b"GNU.sparse") for key in records):
            raise build_unsupported_error(self.what, "an archive of plain files", "a sparse file, or a second size")
        return records.get(b"path") if header.type == _PAX else None

    def _read_entry(self, header: TarHeader, path: str | None, stream: _Stream) -> None:
        is_wanted = path is not None and path == self.wanted
        if is_wanted and not (header.is_file or header.is_folder):
            raise build_unsupported_error(self.what, f"a plain file {path!r}", "a link or a device")
        if not header.is_file or path is None:
            self._skip_content(header, stream)
            return
        if is_wanted and path in self.files:
            raise build_unsupported_error(self.what, f"file {path!r} once", "several")
        self.files[path] = header.size
        if not is_wanted:
            self._skip_content(header, stream)
        elif header.size > self.max_bytes:
            raise build_size_error(f"file {path!r} of {self.what}", self.max_bytes, f"{header.size} in its header")
        else:
            self.content = self._read_content(header, stream)

    def _read_content(self, header: TarHeader, stream: _Stream) -> bytes:
        content = stream.read(round_up(header.size))
        if len(content) < header.size:
            raise self._build_truncated_error()
        return content[: header.size]

    def _skip_content(self, header: TarHeader, stream: _Stream) -> None:
        if stream.skip(round_up(header.size)) < header.size:
            raise self._build_truncated_error()

    def _build_truncated_error(self) -> Exception:
        return build_unsupported_error(self.what, "a tar", "a truncated one, or one with a wrong size in a header")


class _Stream:
    """Unpacked bytes of an archive.

    Args:
        pieces: The bytes in pieces.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return the next bytes; fewer at the end."""
        found: list[bytes] = []
        while size > 0 and (piece := self._next_piece(size)):
            found.append(piece)
            size -= len(piece)
        return b"".join(found)

    def skip(self, size: int) -> int:
        """Skip bytes and return their number, which is smaller at the end."""
        left = size
        while left > 0 and (piece := self._next_piece(left)):
            left -= len(piece)
        return size - left

    def _next_piece(self, size: int) -> bytes:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece


def _iter_unpacked(data: bytes, what: str) -> Iterator[bytes]:
    """Yield the unpacked bytes in pieces of limited size.

    Raises:
        ResolutionError: ``TooLarge``; ``UnsupportedContent``: the bytes cannot be unpacked.
    """
    if data.startswith(_ZSTD):
        raise build_unsupported_error(what, "an archive without compression or with gzip", "zstd")
    size = 0
    for piece in _iter_gzip(data, what) if data.startswith(_GZIP) else _iter_slices(data):
        size += len(piece)
        if size > _MAX_UNPACKED_BYTES:
            raise build_size_error(f"the archive of {what}", _MAX_UNPACKED_BYTES, "more after decompression")
        if piece:
            yield piece


def _iter_gzip(data: bytes, what: str) -> Iterator[bytes]:
    unpacking = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        for given in _iter_slices(data):
            if unpacking.eof and given.strip(b"\0"):
                raise build_unsupported_error(what, "an archive packed with gzip in one member", "several")
            pending = given
            while pending and not unpacking.eof:
                yield unpacking.decompress(pending, _PIECE)
                pending = unpacking.unconsumed_tail
            if unpacking.unused_data.strip(b"\0"):
                raise build_unsupported_error(what, "an archive packed with gzip in one member", "several")
    except zlib.error:
        raise build_unsupported_error(what, "an archive packed with gzip", "a damaged one") from None
    if not unpacking.eof:
        raise build_unsupported_error(what, "an archive packed with gzip", "a truncated one")


def _iter_slices(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))


def _iter_records(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of an extended header: ``30 path=a/long/name`` and a newline; end at the first invalid one."""
    at = 0
    while at < len(body):
        length, blank, _ = body[at : at + 8].partition(b" ")
        if not blank or not length.isdigit() or int(length) <= len(length) + 1:
            return
        key, _, value = body[at + len(length) + 1 : at + int(length) - 1].partition(b"=")
        yield key, value
        at += int(length)
