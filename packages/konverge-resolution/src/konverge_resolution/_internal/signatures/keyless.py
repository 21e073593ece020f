"""Keyless signatures: an issuer confirmed the signer's identity, and a public log recorded the signature.

They need the extra ``keyless`` (sigstore), which is imported on first use because that takes a quarter of a second. The
verification opens no connection: a file has the trusted certificates and logs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sigstore.verify.policy import AnyOf

__all__ = ["KeylessUnavailableError", "KeylessVerifier"]

_MAX_BUNDLE = 512 * 1024


class KeylessUnavailableError(Exception):
    """Keyless signatures cannot be verified; the message has the reason."""


class KeylessVerifier:
    """Verifier of sigstore bundles that needs no connection.

    Args:
        trusted_root: The file with the trusted certificates and logs (``trusted_root.json`` of sigstore).

    Raises:
        KeylessUnavailableError: The library is not installed, or the file cannot be parsed.
    """

    def __init__(self, trusted_root: Path) -> None:
        try:
            from sigstore.errors import Error
            from sigstore.models import TrustedRoot
            from sigstore.verify import Verifier
        except ImportError:
            message = "keyless signatures require the library sigstore: pip install 'konverge[keyless]'"
            raise KeylessUnavailableError(message) from None
        try:
            self._verifier = Verifier(trusted_root=TrustedRoot.from_file(str(trusted_root)))
        except (OSError, ValueError, Error) as error:
            message = f"the trusted root for keyless signatures cannot be read: {type(error).__name__}"
            raise KeylessUnavailableError(message) from None

    def has_signed(self, identities: tuple[tuple[str, str], ...], bundle: bytes, data: bytes) -> bool:
        """Tell whether one of the identities (subject, issuer) has signed these bytes.

        Args:
            identities: Subjects, each with its issuer.
            bundle: The sigstore bundle.
            data: The signed bytes.
        """
        from sigstore.errors import Error
        from sigstore.models import Bundle

        try:
            parsed = Bundle.from_json(_check_bundle_size(bundle))
            self._verifier.verify_artifact(data, parsed, _build_policy(identities))
        except (ValueError, Error):
            return False
        return True

    def verify_statement(self, identities: tuple[tuple[str, str], ...], bundle: bytes) -> tuple[str, bytes] | None:
        """Return the type and payload of a statement by one of the identities (subject, issuer); None without one.

        Args:
            identities: Subjects, each with its issuer.
            bundle: The sigstore bundle.
        """
        from sigstore.errors import Error
        from sigstore.models import Bundle

        try:
            parsed = Bundle.from_json(_check_bundle_size(bundle))
            return self._verifier.verify_dsse(parsed, _build_policy(identities))
        except (ValueError, Error):
            return None


def _build_policy(identities: tuple[tuple[str, str], ...]) -> AnyOf:
    from sigstore.verify.policy import AnyOf, Identity

    return AnyOf([Identity(identity=subject, issuer=issuer) for subject, issuer in identities])


def _check_bundle_size(bundle: bytes) -> bytes:
    if len(bundle) > _MAX_BUNDLE:
        raise ValueError("too large")
    return bundle
