"""The expiry of a certificate, for messages; nothing is verified here."""

from __future__ import annotations

import binascii
import re
from datetime import UTC, datetime

__all__ = ["parse_certificate_expiry"]

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)

# ASN.1 tags (X.690) that occur on the way to the validity.
_EXPLICIT_VERSION = 0xA0
_UTC_TIME = 0x17


def parse_certificate_expiry(pem: bytes) -> datetime | None:
    """Parse the end of the first certificate's validity (RFC 5280, ``notAfter``); return None if there is none.

    The standard library parses only the certificate of a connection's peer. This function skips the few ASN.1 values
    before the date.
    """
    match = _PEM.search(pem)
    if match is None:
        return None
    try:
        der = binascii.a2b_base64(match.group(1))
        certificate = _parse_value(der, 0)[1]
        fields = _parse_value(certificate, 0)[1]
        at = 0
        if fields[0] == _EXPLICIT_VERSION:
            at = _parse_value(fields, at)[2]
        for _ in ("serial number", "signature algorithm", "issuer"):
            at = _parse_value(fields, at)[2]
        validity = _parse_value(fields, at)[1]
        not_after = _parse_value(validity, 0)[2]
        tag, content, _ = _parse_value(validity, not_after)
        text = content.decode("ascii")
        if tag == _UTC_TIME:
            # The year has two digits: 50 and above belong to the last century (RFC 5280, 4.1.2.5.1).
            text = ("19" if text[:2] >= "50" else "20") + text
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except (ValueError, IndexError):
        return None


def _parse_value(der: bytes, at: int) -> tuple[int, bytes, int]:
    """Parse the tag, the content and the end of the ASN.1 value that starts at the offset."""
    tag, length = der[at], der[at + 1]
    start = at + 2
    if length & 0x80:
        digits = length & 0x7F
        length = int.from_bytes(der[start : start + digits], "big")
        start += digits
    return tag, der[start : start + length], start + length
