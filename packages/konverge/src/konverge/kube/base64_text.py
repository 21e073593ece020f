"""Bytes in JSON: base64 text (Secret ``data``, ConfigMap ``binaryData``, certificates)."""

from __future__ import annotations

import binascii

__all__ = ["canonicalize_base64"]

_LINE_ENDS = str.maketrans("", "", "\r\n")


def canonicalize_base64(text: str) -> str:
    """The spelling in which the API server stores the bytes: in one line, its unused bits zero.

    Raises:
        ValueError: The text is no base64 that the server takes. The message does not quote it: it may be a Secret's.
    """
    # Line ends inside are no mistake to the server; any other letter from outside the alphabet is.
    return binascii.b2a_base64(
        binascii.a2b_base64(text.translate(_LINE_ENDS), strict_mode=True), newline=False
    ).decode()
