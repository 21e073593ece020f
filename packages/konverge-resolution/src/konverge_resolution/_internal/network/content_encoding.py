"""Decompression of bodies in pieces of limited size. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

__all__ = ["DecompressionError", "Decompressor", "create_decompressor"]

_PIECE = 1 << 16


class DecompressionError(ValueError):
    """Body that does not match its ``Content-Encoding``; the text is a predicate: ``ends in the middle``."""


class Decompressor(Protocol):
    """Decompressor of one body, from its first piece to its last."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the content of more bytes in pieces of limited size; a caller may stop early.

        Raises:
            DecompressionError: The bytes cannot be decompressed.
        """

    def flush(self) -> None:
        """Check that the body is complete.

        Raises:
            DecompressionError: The body ends too early.
        """


def create_decompressor(encoding: str) -> Decompressor:
    """Return the decompressor for a ``Content-Encoding``; some servers send only compressed content.

    Raises:
        DecompressionError: The encoding is not supported. Only none, gzip and deflate are.
    """
    coding = encoding.strip().lower()
    if coding in ("", "identity"):
        return _IdentityDecompressor()
    if coding in ("gzip", "x-gzip", "deflate"):
        return _ZlibDecompressor(coding)
    raise DecompressionError("sends its response in an unsupported encoding; expected gzip or none")


class _IdentityDecompressor:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def flush(self) -> None:
        pass


class _ZlibDecompressor:
    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._reader = zlib.decompressobj(zlib.MAX_WBITS | 32)  # detects gzip and zlib itself

    def feed(self, data: bytes) -> Iterator[bytes]:
        while True:
            # A second member after the first is valid, but not all clients read it; so it is refused.
            if self._reader.eof and data:
                raise DecompressionError(f"sends data after the end of a response compressed with {self._coding}")
            try:
                piece = self._reader.decompress(data, _PIECE)
            except zlib.error:
                raise DecompressionError(
                    f"sends a response compressed with {self._coding} that cannot be decompressed"
                ) from None
            if piece:
                yield piece
            data = self._reader.unconsumed_tail or self._reader.unused_data
            if not data:  # a rest inside the decompressor comes with the next data: the checksum is at the end
                return

    def flush(self) -> None:
        if not self._reader.eof:
            raise DecompressionError(f"sends a response compressed with {self._coding} that ends in the middle")
