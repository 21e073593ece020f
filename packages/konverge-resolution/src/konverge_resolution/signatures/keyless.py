"""Keyless signatures: by somebody whom an issuer of identities vouched for, as a public log has on record.

The extra ``keyless`` (sigstore), imported where it is needed: it takes a quarter of a second. Nothing here connects to
anything: the certificates and logs that are trusted are in a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sigstore.verify.policy import AnyOf

__all__ = ["KeylessUnavailableError", "KeylessVerifier"]

_MAX_BUNDLE = 512 * 1024


class KeylessUnavailableError(Exception):
    """Keyless signatures cannot be verified here; the message says why."""


class KeylessVerifier:
    """Verifies bundles of sigstore, without a connection.

    Args:
        trusted_root: The file with the certificates and logs that are trusted (``trusted_root.json`` of sigstore).

    Raises:
        KeylessUnavailableError: The library is not installed, or the file is none.
    """

    def __init__(self, trusted_root: Path) -> None:
        try:
            from sigstore.errors import Error
            from sigstore.models import TrustedRoot
            from sigstore.verify import Verifier
        except ImportError:
            message = "keyless signatures need the library sigstore: pip install 'konverge[keyless]'"
            raise KeylessUnavailableError(message) from None
        try:
            self._verifier = Verifier(trusted_root=TrustedRoot.from_file(str(trusted_root)))
        except (OSError, ValueError, Error) as error:
            message = f"the file with what is trusted for keyless signatures cannot be read: {type(error).__name__}"
            raise KeylessUnavailableError(message) from None

    def has_signed(self, identities: tuple[tuple[str, str], ...], bundle: bytes, data: bytes) -> bool:
        """Tell whether one of the identities (subject, issuer) has signed these bytes.

        Args:
            identities: Subjects, each with its issuer.
            bundle: The bundle of sigstore.
            data: What was signed.
        """
        from sigstore.errors import Error
        from sigstore.models import Bundle

        try:
            found = Bundle.from_json(_check_bundle_size(bundle))
            self._verifier.verify_artifact(data, found, _build_policy(identities))
        except (ValueError, Error):
            return False
        return True

    def verify_statement(self, identities: tuple[tuple[str, str], ...], bundle: bytes) -> tuple[str, bytes] | None:
        """What one of the identities (subject, issuer) states, and its type; None when none of them does.

        Args:
            identities: Subjects, each with its issuer.
            bundle: The bundle of sigstore.
        """
        from sigstore.errors import Error
        from sigstore.models import Bundle

        try:
            found = Bundle.from_json(_check_bundle_size(bundle))
            return self._verifier.verify_dsse(found, _build_policy(identities))
        except (ValueError, Error):
            return None


def _build_policy(identities: tuple[tuple[str, str], ...]) -> AnyOf:
    from sigstore.verify.policy import AnyOf, Identity

    return AnyOf([Identity(identity=subject, issuer=issuer) for subject, issuer in identities])


def _check_bundle_size(bundle: bytes) -> bytes:
    if len(bundle) > _MAX_BUNDLE:
        raise ValueError("too large")
    return bundle
