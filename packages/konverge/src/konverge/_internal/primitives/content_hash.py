"""Content hashes: annotations on a pod template, so that its pods restart when their configuration changes."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

__all__ = ["hash_content"]


def hash_content(content: Any) -> str:
    """Return the SHA-256 of the content as JSON with sorted keys, in hexadecimal."""
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
