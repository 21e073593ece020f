"""Rotation of the self-signed certificate and its authority, without a failing handshake. Pure.

Replicas share one `CertificateBundle`: an authority, the server's certificate that it signed, and a bundle of trusted
authorities. The authority changes in steps, each long after the previous one. The next authority is first published in
the bundle. When every client has had time to trust it, it signs. The previous one stays in the bundle until it expires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from konverge._internal.certificates import CertificateAuthority, KeyPair, is_renewal_due, parse_pair
from konverge._internal.runtime.certificate_watcher import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE
from konverge.errors import ConfigurationError

__all__ = ["OVERLAP", "CertificateBundle", "plan_rotation"]

OVERLAP = timedelta(hours=1)
"""Time between publishing an authority and its first signature. Replicas read the Secret far more often than that."""

_AUTHORITY_LIFETIME = timedelta(days=365)
_SERVER_LIFETIME = timedelta(days=90)
_AUTHORITY_NAME = "konverge webhooks authority"
# Keys of the authorities' pairs in the Secret, in addition to those of a certificate directory.
_SIGNER = ("signer.crt", "signer.key")
_NEXT = ("next.crt", "next.key")


@dataclass(frozen=True, slots=True)
class CertificateBundle:
    """The certificates that replicas share.

    Args:
        server: The certificate of the servers.
        signer: The authority that signed it.
        upcoming: The authority that will sign next; None for none.
        bundle: The authorities that API servers must trust: signer, upcoming, and earlier signers.
    """

    server: KeyPair
    signer: KeyPair
    upcoming: KeyPair | None
    bundle: tuple[bytes, ...]

    @classmethod
    def from_data(cls, data: dict[str, bytes]) -> CertificateBundle | None:
        """Parse the data of a Secret; return None if a part is missing or malformed."""
        try:
            pairs = {
                name: parse_pair(data[names[0]], data[names[1]])
                for name, names in (("server", (CERTIFICATE_FILE, KEY_FILE)), ("signer", _SIGNER), ("next", _NEXT))
                if name != "next" or names[0] in data
            }
            bundle = x509.load_pem_x509_certificates(data[AUTHORITY_FILE])
        except (KeyError, ValueError, ConfigurationError):
            return None
        authorities = tuple(_encode_pem(authority) for authority in bundle)
        return cls(pairs["server"], pairs["signer"], pairs.get("next"), authorities)

    def to_data(self) -> dict[str, bytes]:
        """Return the data for a Secret."""
        pairs = [(self.server, (CERTIFICATE_FILE, KEY_FILE)), (self.signer, _SIGNER), (self.upcoming, _NEXT)]
        data = {AUTHORITY_FILE: b"".join(self.bundle)}
        for pair, (certificate, key) in pairs:
            if pair is not None:
                data |= {certificate: pair.certificate, key: pair.key}
        return data


def plan_rotation(kept: CertificateBundle | None, hosts: Sequence[str], now: datetime) -> CertificateBundle:
    """Return the bundle to store from now on; the same value when no change is due.

    Args:
        kept: The stored bundle; None for none, or for a malformed one.
        hosts: Names and addresses of the server.
        now: The present time.
    """
    if kept is None or now >= kept.signer.not_after:
        signer = CertificateAuthority(_AUTHORITY_NAME, now, _AUTHORITY_LIFETIME)
        return CertificateBundle(
            signer.issue(hosts, now, _SERVER_LIFETIME), signer.pair, None, (signer.pair.certificate,)
        )
    server, signer_pair, upcoming, bundle = kept.server, kept.signer, kept.upcoming, kept.bundle
    if upcoming is None and is_renewal_due(signer_pair, now):
        upcoming = CertificateAuthority(_AUTHORITY_NAME, now, _AUTHORITY_LIFETIME).pair
        bundle = (*bundle, upcoming.certificate)
    elif upcoming is not None and now >= upcoming.not_before + OVERLAP:
        signer_pair, upcoming = upcoming, None
    bundle = tuple(authority for authority in bundle if _parse_expiry(authority) > now)
    if signer_pair != kept.signer or is_renewal_due(server, now) or set(hosts) != set(_list_hosts(server)):
        server = CertificateAuthority.from_pair(signer_pair).issue(hosts, now, _SERVER_LIFETIME)
    return CertificateBundle(server, signer_pair, upcoming, bundle)


def _encode_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _parse_expiry(pem: bytes) -> datetime:
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc


def _list_hosts(pair: KeyPair) -> list[str]:
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]
