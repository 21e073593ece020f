"""The comparison of a password with a verifier of PostgreSQL (RFC 5803, in the format of PostgreSQL)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import unicodedata

__all__ = ["matches_verifier"]

_VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d{1,6}):([^$]+)\$([^:]+):(.+)")


def matches_verifier(verifier: str, password: str) -> bool:
    """Tell whether the verifier belongs to this password. Only the form SCRAM-SHA-256 can match."""
    match = _VERIFIER.fullmatch(verifier)
    if match is None:
        return False
    try:
        salt, stored = base64.b64decode(match[2]), base64.b64decode(match[3])
    except ValueError:
        return False
    prepared = unicodedata.normalize("NFKC", password).encode()
    salted = hashlib.pbkdf2_hmac("sha256", prepared, salt, int(match[1]))
    client = hmac.digest(salted, b"Client Key", "sha256")
    return hmac.compare_digest(hashlib.sha256(client).digest(), stored)
