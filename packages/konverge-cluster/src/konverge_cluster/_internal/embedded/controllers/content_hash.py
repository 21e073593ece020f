"""The short hashes in the names of ReplicaSets and ControllerRevisions.

They have the format of the real ones (32-bit FNV, its decimal digits in the letters of generated names) and depend only
on the content, but have other values: the real controllers hash Go structures. Rely only on the same name for the same
content, never on the value.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["hash_content"]

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET = 0x811C9DC5
_PRIME = 0x01000193

_encode = msgspec.json.Encoder(order="sorted").encode


def hash_content(content: Any, collisions: int = 0) -> str:
    """Return at most ten letters for JSON content.

    Args:
        content: The content; the order of its keys has no effect.
        collisions: The number of earlier hashes that other content already used.
    """
    number = _OFFSET
    for byte in _encode(content) + (b"%d" % collisions if collisions else b""):
        number = (number ^ byte) * _PRIME & 0xFFFFFFFF
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))
