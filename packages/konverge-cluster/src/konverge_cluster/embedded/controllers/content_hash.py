"""The short hashes in the names of ReplicaSets and ControllerRevisions.

They look like the real ones (FNV of 32 bits, its decimal digits spelled in the letters of generated names) and are a
function of the content, but not the same numbers: the real controllers hash Go structures. Nothing may rely on the
value, only on equal content giving an equal name.
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
    """At most ten letters for JSON-shaped content.

    Args:
        content: What is hashed, whatever the order of its keys.
        collisions: How often another content turned out to have the same hash.
    """
    number = _OFFSET
    for byte in _encode(content) + (b"%d" % collisions if collisions else b""):
        number = (number ^ byte) * _PRIME & 0xFFFFFFFF
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))
