"""When which certificate of our own is made anew, so that no handshake ever fails for it. Pure.

What replicas share is one `CertificateBundle`: an authority, the server's certificate that it signed, and a bundle of
authorities
to trust. The authority changes in steps, each long after the one before: the next authority is announced in the bundle
first; once everybody has had time to trust it, it signs; the one before stays in the bundle until it has expired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from konverge.errors import ConfigurationError
from konverge.runtime.certificate_watcher import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE
from konverge.runtime.webhooks.self_signed_certificate import CertificateAuthority, KeyPair, is_renewal_due, parse_pair

__all__ = ["OVERLAP", "CertificateBundle", "plan_rotation"]

OVERLAP = timedelta(hours=1)
"""How long an authority is announced before it signs: replicas look at the Secret and register far more often."""

_AUTHORITY_LIFETIME = timedelta(days=365)
_SERVER_LIFETIME = timedelta(days=90)
_AUTHORITY_NAME = "konverge webhooks authority"
# Of the pair of each authority in the Secret, beside what a certificate folder has.
_SIGNER = ("signer.crt", "signer.key")
_NEXT = ("next.crt", "next.key")


@dataclass(frozen=True, slots=True)
class CertificateBundle:
    """What replicas share.

    Args:
        server: The certificate that they serve with.
        signer: The authority that signed it.
        upcoming: The authority that will sign next; None as long as there is none.
        bundle: Whom API servers are to trust: signer, upcoming, and those that signed before.
    """

    server: KeyPair
    signer: KeyPair
    upcoming: KeyPair | None
    bundle: tuple[bytes, ...]

    @classmethod
    def from_data(cls, data: dict[str, bytes]) -> CertificateBundle | None:
        """What a Secret's data hold; None when anything in it is absent or cannot be read."""
        try:
            found = {
                name: parse_pair(data[names[0]], data[names[1]])
                for name, names in (("server", (CERTIFICATE_FILE, KEY_FILE)), ("signer", _SIGNER), ("next", _NEXT))
                if name != "next" or names[0] in data
            }
            bundle = x509.load_pem_x509_certificates(data[AUTHORITY_FILE])
        except (KeyError, ValueError, ConfigurationError):
            return None
        return cls(found["server"], found["signer"], found.get("next"), tuple(_encode_pem(each) for each in bundle))

    def to_data(self) -> dict[str, bytes]:
        """What a Secret is to hold."""
        pairs = [(self.server, (CERTIFICATE_FILE, KEY_FILE)), (self.signer, _SIGNER), (self.upcoming, _NEXT)]
        found = {AUTHORITY_FILE: b"".join(self.bundle)}
        for pair, (certificate, key) in pairs:
            if pair is not None:
                found |= {certificate: pair.certificate, key: pair.key}
        return found


def plan_rotation(kept: CertificateBundle | None, hosts: Sequence[str], now: datetime) -> CertificateBundle:
    """What is to be kept from now on; the same value when nothing is due.

    Args:
        kept: What is kept now; None for nothing, or nothing that can be read.
        hosts: Names and addresses under which the server is met.
        now: The time.
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
    bundle = tuple(each for each in bundle if _parse_expiry(each) > now)
    if signer_pair != kept.signer or is_renewal_due(server, now) or set(hosts) != set(_list_hosts(server)):
        server = CertificateAuthority.from_pair(signer_pair).issue(hosts, now, _SERVER_LIFETIME)
    return CertificateBundle(server, signer_pair, upcoming, bundle)


def _encode_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _parse_expiry(pem: bytes) -> datetime:
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc


def _list_hosts(pair: KeyPair) -> list[str]:
    found = x509.load_pem_x509_certificate(pair.certificate)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = [str(each) for each in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]
