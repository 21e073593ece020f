"""Bytes in JSON: base64 text (Secret ``data``, ConfigMap ``binaryData``, certificates)."""

from __future__ import annotations

import binascii

__all__ = ["canonicalize_base64"]

_LINE_ENDS = str.maketrans("", "", "\r\n")


def canonicalize_base64(text: str) -> str:
    """Return the form in which the API server stores the bytes: one line, with unused bits zero.

    Raises:
        ValueError: The server would reject the text. The message does not quote it: it may be the value of a Secret.
    """
    # The server accepts line ends in the text, but no other character outside the alphabet.
    return binascii.b2a_base64(
        binascii.a2b_base64(text.translate(_LINE_ENDS), strict_mode=True), newline=False
    ).decode()
