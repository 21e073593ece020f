"""What reading JSON from outside fails with; one list, so that none of it ever ends an operator."""

from __future__ import annotations

import msgspec

__all__ = ["DECODE_ERRORS", "check_text"]

DECODE_ERRORS: tuple[type[Exception], ...] = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""It is no JSON, or of another shape; its texts are not UTF-8; it nests deeper than the parser goes."""


def check_text(body: bytes) -> None:
    """Look at the texts of which only a part is decoded now: what is left for later is readable then.

    Raises:
        UnicodeDecodeError: They are not UTF-8.
    """
    if not body.isascii():
        body.decode()
