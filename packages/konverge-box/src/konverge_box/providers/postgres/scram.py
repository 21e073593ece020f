"""Tells whether a password is the one that PostgreSQL keeps a verifier of (RFC 5803, as PostgreSQL writes it)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import unicodedata

__all__ = ["matches_verifier"]

_VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d{1,6}):([^$]+)\$([^:]+):(.+)")


def matches_verifier(verifier: str, password: str) -> bool:
    """Tell whether the verifier was made of this password. Of any other form than SCRAM-SHA-256 it was not."""
    found = _VERIFIER.fullmatch(verifier)
    if found is None:
        return False
    try:
        salt, stored = base64.b64decode(found[2]), base64.b64decode(found[3])
    except ValueError:
        return False
    prepared = unicodedata.normalize("NFKC", password).encode()
    salted = hashlib.pbkdf2_hmac("sha256", prepared, salt, int(found[1]))
    client = hmac.digest(salted, b"Client Key", "sha256")
    return hmac.compare_digest(hashlib.sha256(client).digest(), stored)
