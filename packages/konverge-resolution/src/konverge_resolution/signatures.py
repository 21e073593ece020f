"""Keys and signatures for remote definitions."""

from __future__ import annotations

from konverge_resolution._internal.signatures import (
    BUNDLE,
    SIGNATURE,
    SignatureVerifier,
    encode_for_signing,
    sign,
)

__all__ = [
    "BUNDLE",
    "SIGNATURE",
    "SignatureVerifier",
    "encode_for_signing",
    "sign",
]
