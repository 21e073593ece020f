"""Secrets with ``tls``: a certificate, its key, and the authority that signed it, generated for this Secret only.

The key of the authority is not stored: it cannot sign another certificate, and a renewal generates a new authority.
"""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.runtime.certificate_watcher import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE
from konverge.errors import ConfigurationError
from konverge_box._internal.expressions import Sensitive, compile_structure, has_sensitive, to_sensitive
from konverge_box._internal.expressions.schedules import parse_period
from konverge_box._internal.file import TlsSpec
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.scope import Scope

__all__ = ["TLS_SECRET_TYPE", "CompiledCertificate", "build_certificate_data"]

TLS_SECRET_TYPE = "kubernetes.io/tls"
"""The type of a Secret with ``tls``."""

_MAX_NAME_LENGTH = 64  # X.520 allows no more for a common name


class CompiledCertificate:
    """The compiled ``tls`` of a Secret.

    Args:
        declared: The declaration in the file.
        where: Its path in the file.
    """

    def __init__(self, declared: TlsSpec, where: str) -> None:
        self._names = compile_structure([declared.common_name, list(declared.dns_names)], where=where)
        self._lifetime = parse_period(declared.valid_for)
        self._where = where

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that its names may read."""
        return self._names.list_read_paths()

    def build_data(self, turn: Scope, now: datetime) -> Object:
        """Build the data of the Secret, with a new certificate.

        Raises:
            konverge.errors.KonvergeError: See `build_certificate_data`; or a name has no value.
        """
        return build_certificate_data(turn.render(self._names), self._lifetime, now, self._where)


def build_certificate_data(names: Any, lifetime: timedelta, now: datetime, where: str) -> Object:
    """Build the data of a Secret with a new certificate.

    Args:
        names: The common name, and the DNS names and addresses of the server. Without DNS names, the common name is
            the only one.
        lifetime: The validity period of the certificate.
        now: The current time.
        where: The path of the declaration in the file.

    Raises:
        StepError: The names are not valid in a certificate.
        konverge.errors.ConfigurationError: The package that generates certificates is not installed.
    """
    common_name, dns_names = names
    if has_sensitive(names):
        raise StepError(where, "expected no value from a Secret: certificates are not confidential")
    if not isinstance(common_name, str) or not 0 < len(common_name) <= _MAX_NAME_LENGTH:
        raise StepError(f"{where}.commonName", f"expected text of 1 to {_MAX_NAME_LENGTH} characters")
    if not isinstance(dns_names, list) or not all(isinstance(each, str) and each for each in dns_names):
        raise StepError(f"{where}.dnsNames", "expected a list of non-empty texts")
    try:
        from konverge._internal.certificates import issue_server_certificate
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "cryptography":
            raise
        raise ConfigurationError(
            f"{where} requires the package cryptography, which is not installed: pip install 'konverge[webhooks]'"
        ) from error
    try:
        pair, authority = issue_server_certificate(common_name, dns_names, now, lifetime)
    except ValueError as error:
        raise StepError(where, f"cannot create a certificate for these names: {error}") from None
    files = {
        CERTIFICATE_FILE: _encode_pem(pair.certificate),
        KEY_FILE: _encode_pem(pair.key),
        AUTHORITY_FILE: _encode_pem(authority),
    }
    data: dict[str, Sensitive] = to_sensitive(files)
    return data


def _encode_pem(pem: bytes) -> str:
    return base64.b64encode(pem).decode("ascii")
