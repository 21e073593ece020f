"""Undoing a compression of bodies that nobody asked for, a bounded piece at a time. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

__all__ = ["DecompressionError", "Decompressor", "create_decompressor"]

_PIECE = 1 << 16


class DecompressionError(ValueError):
    """A body is not what its ``Content-Encoding`` says; the text is a predicate: ``ends in the middle``."""


class Decompressor(Protocol):
    """Reads a body from the first piece to the last."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The content of some more bytes, in pieces of bounded size; a caller that has enough stops asking.

        Raises:
            DecompressionError: They cannot be unpacked.
        """

    def flush(self) -> None:
        """There is no more.

        Raises:
            DecompressionError: There should be.
        """


def create_decompressor(encoding: str) -> Decompressor:
    """What reads bodies of a ``Content-Encoding``; some servers keep what they have only packed.

    Raises:
        DecompressionError: It is one that is not read. Only what was asked for (none), gzip and deflate are.
    """
    coding = encoding.strip().lower()
    if coding in ("", "identity"):
        return _IdentityDecompressor()
    if coding in ("gzip", "x-gzip", "deflate"):
        return _ZlibDecompressor(coding)
    raise DecompressionError("sends its answer in an encoding that was not asked for; expected gzip or none")


class _IdentityDecompressor:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def flush(self) -> None:
        pass


class _ZlibDecompressor:
    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._reader = zlib.decompressobj(zlib.MAX_WBITS | 32)  # finds out by itself which of the two it is

    def feed(self, data: bytes) -> Iterator[bytes]:
        while True:
            # A second body after the first is allowed, and read by some and not by others; so by nobody here.
            if self._reader.eof and data:
                raise DecompressionError(f"sends something after the end of an answer packed with {self._coding}")
            try:
                piece = self._reader.decompress(data, _PIECE)
            except zlib.error:
                raise DecompressionError(
                    f"sends an answer packed with {self._coding} that cannot be unpacked"
                ) from None
            if piece:
                yield piece
            data = self._reader.unconsumed_tail or self._reader.unused_data
            if not data:  # what there may still be of a match comes with the next data: the end has a checksum
                return

    def flush(self) -> None:
        if not self._reader.eof:
            raise DecompressionError(f"sends an answer packed with {self._coding} that ends in the middle")
