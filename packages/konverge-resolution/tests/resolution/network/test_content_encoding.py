"""Bodies that are packed though nobody asked for it."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
import zlib

import pytest

from konverge_resolution._internal.network.content_encoding import DecompressionError, create_decompressor


def decompress(body: bytes, coding: str, *, by: int = 1 << 20) -> bytes:
    reader = create_decompressor(coding)
    found = [piece for at in range(0, len(body), by) for piece in reader.feed(body[at : at + by])]
    reader.flush()
    return b"".join(found)


CONTENT = hashlib.shake_256(b"").digest(1000) + b"\0" * 200_000
PACKED = {
    "gzip": gzip.compress(CONTENT),
    "X-Gzip ": gzip.compress(CONTENT),
    "deflate": zlib.compress(CONTENT),
    "": CONTENT,
    "identity": CONTENT,
}


@pytest.mark.parametrize("coding", PACKED)
@pytest.mark.parametrize("by", [1, 7, 1 << 20])
def test_what_was_packed_comes_out_in_whatever_pieces_it_came(coding: str, by: int) -> None:
    assert decompress(PACKED[coding], coding, by=by) == CONTENT


@pytest.mark.slow
def test_a_bomb_is_unpacked_no_further_than_somebody_asks() -> None:
    bomb = gzip.compress(b"\0" * (64 << 20))
    pieces = create_decompressor("gzip").feed(bomb)
    tracemalloc.start()
    read = sum(len(next(pieces)) for _ in range(32))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read == 32 << 16
    assert most < 1 << 20


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (b"plain", "gzip"),
        (gzip.compress(b"hello", mtime=0)[:-6], "gzip"),
        (gzip.compress(b"hello", mtime=0) * 2, "gzip"),
        (b"", "gzip"),
        (b"", "br"),
    ],
)
def test_what_cannot_be_unpacked_is_refused(body: bytes, coding: str) -> None:
    with pytest.raises(DecompressionError):
        decompress(body, coding)
