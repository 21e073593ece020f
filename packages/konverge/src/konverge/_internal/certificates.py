"""Certificates: an authority that signs the certificates of servers, their renewal, and private keys.

This module imports ``cryptography`` (the extra ``webhooks``); other modules import it on first use. Keys are ECDSA with
the curve P-256: a handshake takes microseconds, with RSA milliseconds.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from konverge.errors import ConfigurationError

__all__ = [
    "SERVER_LIFETIME",
    "CertificateAuthority",
    "KeyPair",
    "compute_renewal_delay",
    "compute_renewal_time",
    "generate_private_key",
    "is_renewal_due",
    "issue_server_certificate",
    "list_hosts",
    "normalize_host",
    "parse_pair",
]

SERVER_LIFETIME = timedelta(days=90)
"""The default period of validity of a server's certificate."""

_AUTHORITY_LIFETIME = timedelta(days=3650)
# Clocks of two machines differ: no client may refuse a certificate because it is new.
_BACKDATED = timedelta(minutes=5)
_MAX_NAME_LENGTH = 64  # X.520 allows no more for a common name


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, in PEM, with its period of validity."""

    certificate: bytes
    key: bytes
    not_before: datetime
    not_after: datetime

    def __repr__(self) -> str:
        return f"KeyPair(valid {self.not_before:%Y-%m-%d} to {self.not_after:%Y-%m-%d})"


class CertificateAuthority:
    """Certificate authority for servers' certificates.

    Args:
        name: Its name in its certificate.
        now: Time of its creation.
        lifetime: Period of validity.

    Attributes:
        pair: Its own certificate and key.
    """

    def __init__(self, name: str, now: datetime, lifetime: timedelta = _AUTHORITY_LIFETIME) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = self._key.public_key()
        identifier = x509.SubjectKeyIdentifier.from_public_key(public)
        not_before, not_after = _truncate_to_second(now - _BACKDATED), _truncate_to_second(now + lifetime)
        self._certificate = (
            _create_builder(_build_name(name), _build_name(name), public, not_before, not_after)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_build_key_usage(signs_certificates=True), critical=True)
            .add_extension(identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.pair = KeyPair(_encode_pem(self._certificate), _encode_key(self._key), not_before, not_after)

    @classmethod
    def from_pair(cls, pair: KeyPair) -> CertificateAuthority:
        """Return the authority with the pair.

        Raises:
            ConfigurationError: The pair is malformed.
        """
        authority = cls.__new__(cls)
        try:
            key = serialization.load_pem_private_key(pair.key, password=None)
            authority._certificate = x509.load_pem_x509_certificate(pair.certificate)
        except (ValueError, TypeError) as problem:
            raise ConfigurationError(
                f"certificate authority: parsing its certificate and key failed: {type(problem).__name__}"
            ) from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ConfigurationError(f"certificate authority: expected a key of an elliptic curve, found {type(key)}")
        authority._key = key
        authority.pair = pair
        return authority

    def issue(
        self,
        hosts: Sequence[str],
        now: datetime,
        lifetime: timedelta = SERVER_LIFETIME,
        *,
        name: str = "konverge webhooks",
    ) -> KeyPair:
        """Issue a certificate for a server with these names or addresses.

        Args:
            hosts: The names and addresses.
            now: Time of its creation.
            lifetime: Period of validity; cut to that of the authority.
            name: Name of the server in the certificate.

        Raises:
            ValueError: A name is invalid in a certificate.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        not_before, not_after = (
            _truncate_to_second(now - _BACKDATED),
            _truncate_to_second(min(now + lifetime, self.pair.not_after)),
        )
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            _create_builder(_build_name(name), self._certificate.subject, key.public_key(), not_before, not_after)
            .add_extension(x509.SubjectAlternativeName([_build_host(host) for host in hosts]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_build_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(signer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return KeyPair(_encode_pem(certificate), _encode_key(key), not_before, not_after)


def issue_server_certificate(
    common_name: str, hosts: Sequence[str], now: datetime, lifetime: timedelta
) -> tuple[KeyPair, bytes]:
    """Issue a server's certificate by an authority of its own.

    The key of the authority is not kept: it cannot sign another certificate, and a renewal creates a new authority.

    Args:
        common_name: The name of the server, at most 64 characters.
        hosts: The DNS names and addresses of the server; without any, the common name is the only one.
        now: The current time.
        lifetime: The period of validity.

    Returns:
        The certificate with its key, and the certificate of the authority in PEM.

    Raises:
        ValueError: A name is invalid in a certificate.
    """
    authority = CertificateAuthority(f"{common_name[: _MAX_NAME_LENGTH - 10]} authority", now, lifetime)
    pair = authority.issue(hosts or [common_name], now, lifetime, name=common_name)
    return pair, authority.pair.certificate


def generate_private_key() -> bytes:
    """Return a new private key in PEM."""
    return _encode_key(ec.generate_private_key(ec.SECP256R1()))


def parse_pair(certificate: bytes, key: bytes) -> KeyPair:
    """Parse a pair from PEM.

    Raises:
        ValueError: They are malformed or do not match; the message contains nothing of the key.
    """
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
        private_key = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"parsing the certificate and its key failed: {type(problem).__name__}") from None
    if private_key.public_key() != parsed.public_key():
        raise ValueError("expected a certificate of the given key, found one of another key")
    return KeyPair(certificate, key, parsed.not_valid_before_utc, parsed.not_valid_after_utc)


def is_renewal_due(pair: KeyPair, now: datetime) -> bool:
    """Return whether two thirds of a certificate's lifetime have passed: then it is renewed."""
    return now >= compute_renewal_time(pair)


def compute_renewal_delay(pair: KeyPair, now: datetime) -> timedelta:
    """Return the time until two thirds of a certificate's lifetime have passed; at least a second."""
    return max(compute_renewal_time(pair) - now, timedelta(seconds=1))


def compute_renewal_time(pair: KeyPair) -> datetime:
    """Return the time at which two thirds of the lifetime have passed."""
    return pair.not_before + (pair.not_after - pair.not_before) * 2 / 3


def list_hosts(pair: KeyPair) -> tuple[str, ...]:
    """Return the DNS names and addresses in a certificate, in their order."""
    try:
        extension = x509.load_pem_x509_certificate(pair.certificate).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except (ValueError, x509.ExtensionNotFound):
        return ()
    names = (name for name in extension.value if isinstance(name, x509.DNSName | x509.IPAddress))
    return tuple(str(name.value) for name in names)


def normalize_host(host: str) -> str:
    """Return a DNS name or an address as `list_hosts` returns it."""
    return str(_build_host(host).value)


def _truncate_to_second(moment: datetime) -> datetime:
    """Return the time in whole seconds: certificates store no fractions, so this time is equal after a round trip."""
    return moment.replace(microsecond=0)


def _build_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _build_host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _create_builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, not_before: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
    )


def _build_key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _encode_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())
