"""The errors of decoding JSON from outside, in one list, so that none of them ends an operator."""

from __future__ import annotations

import msgspec

__all__ = ["DECODE_ERRORS", "check_text"]

DECODE_ERRORS: tuple[type[Exception], ...] = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors for text that is not JSON, has another shape, is not UTF-8, or nests too deeply for the parser."""


def check_text(body: bytes) -> None:
    """Check the encoding of a body that is decoded only in part now, so that the rest can be decoded later.

    Raises:
        UnicodeDecodeError: The body is not UTF-8.
    """
    if not body.isascii():
        body.decode()
