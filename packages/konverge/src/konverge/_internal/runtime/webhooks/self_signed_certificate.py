"""Self-signed certificates: an authority that signs the server's certificate.

This is the only module that imports ``cryptography`` (the extra ``webhooks``); other modules import it on first use.

For development, the authority lives as long as the process (`SelfSignedCertificate`). Keys are ECDSA with the curve
P-256: a handshake takes microseconds, with RSA milliseconds.
"""

from __future__ import annotations

import ipaddress
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from konverge._internal.runtime.certificate_watcher import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE
from konverge.clock import Clock
from konverge.errors import ConfigurationError

__all__ = [
    "CertificateAuthority",
    "KeyPair",
    "SelfSignedCertificate",
    "compute_renewal_delay",
    "is_renewal_due",
    "parse_pair",
    "write_pair",
]

_AUTHORITY_LIFETIME = timedelta(days=3650)
_SERVER_LIFETIME = timedelta(days=90)
_RETRY_SECONDS = 60.0
# Clocks of two machines differ: no client may refuse a certificate because it is new.
_BACKDATED = timedelta(minutes=5)


_log = logging.getLogger("konverge.webhooks")


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
        lifetime: timedelta = _SERVER_LIFETIME,
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


class SelfSignedCertificate:
    """Fills a directory with a certificate for development, and renews it before it expires; the authority stays.

    Args:
        folder: The directory; an empty one without other readers.
        hosts: Names and addresses of the server.
        clock: Source of time.
        lifetime: Period of validity of a certificate.
    """

    def __init__(
        self, folder: Path, hosts: Sequence[str], clock: Clock, *, lifetime: timedelta = _SERVER_LIFETIME
    ) -> None:
        self._folder = folder
        self._hosts = tuple(hosts)
        self._clock = clock
        self._lifetime = lifetime
        self._authority = CertificateAuthority("konverge development authority", clock.now())
        self._pair = self._issue_pair()

    async def renew(self) -> None:
        """Write a new certificate after two thirds of the present one's lifetime, until cancelled."""
        while True:
            await self._clock.sleep(compute_renewal_delay(self._pair, self._clock.now()).total_seconds())
            try:
                self._pair = self._issue_pair()
            except OSError as problem:
                _log.error("%s: renewing the certificate failed, retry follows: %s", self._folder, problem.strerror)
                await self._clock.sleep(_RETRY_SECONDS)

    def _issue_pair(self) -> KeyPair:
        pair = self._authority.issue(self._hosts, self._clock.now(), self._lifetime)
        write_pair(self._folder, pair, self._authority.pair.certificate)
        return pair


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
    return now >= _compute_renewal_time(pair)


def compute_renewal_delay(pair: KeyPair, now: datetime) -> timedelta:
    """Return the time until two thirds of a certificate's lifetime have passed; at least a second."""
    return max(_compute_renewal_time(pair) - now, timedelta(seconds=1))


def _compute_renewal_time(pair: KeyPair) -> datetime:
    return pair.not_before + (pair.not_after - pair.not_before) * 2 / 3


def write_pair(folder: Path, pair: KeyPair, authorities: bytes) -> None:
    """Replace the files of a certificate directory, each atomically; a reader that sees a mixture retries."""
    for name, content in ((AUTHORITY_FILE, authorities), (KEY_FILE, pair.key), (CERTIFICATE_FILE, pair.certificate)):
        fresh = folder / f".{name}"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(fresh, folder / name)


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
