"""Public keys and what they have signed. The only module here that imports ``cryptography``."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

__all__ = ["PublicKey", "sign_with"]

_SMALLEST_RSA = 2048


class PublicKey:
    """One key: ECDSA, Ed25519 or RSA. ECDSA and RSA (PKCS #1 v1.5) go with SHA-256, as cosign signs.

    Args:
        pem: The key.

    Raises:
        ValueError: It is none of these, or one that is too short.
    """

    def __init__(self, pem: str) -> None:
        try:
            found = load_pem_public_key(pem.encode())
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError("expected a public key in PEM, found something else") from None
        if not isinstance(found, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey):
            raise ValueError(f"expected a key of ECDSA, Ed25519 or RSA, found {type(found).__name__}")
        if isinstance(found, rsa.RSAPublicKey) and found.key_size < _SMALLEST_RSA:
            raise ValueError(f"expected a key of RSA with at least {_SMALLEST_RSA} bits, found {found.key_size}")
        self._key = found

    def has_signed(self, signature: bytes, data: bytes) -> bool:
        """Tell whether a signature of these bytes is by this key.

        Args:
            signature: The signature; of ECDSA in DER.
            data: What was signed.
        """
        try:
            match self._key:
                case ec.EllipticCurvePublicKey():
                    self._key.verify(signature, data, ec.ECDSA(SHA256()))
                case ed25519.Ed25519PublicKey():
                    self._key.verify(signature, data)
                case _:
                    self._key.verify(signature, data, padding.PKCS1v15(), SHA256())
        except InvalidSignature:
            return False
        return True


def sign_with(private_key_pem: str, data: bytes) -> bytes:
    """A signature that `PublicKey.has_signed` knows.

    Args:
        private_key_pem: The key, not encrypted.
        data: What to sign.

    Raises:
        ValueError: It is no such key.
    """
    try:
        key = load_pem_private_key(private_key_pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("expected a private key in PEM that is not encrypted, found something else") from None
    match key:
        case ec.EllipticCurvePrivateKey():
            return key.sign(data, ec.ECDSA(SHA256()))
        case ed25519.Ed25519PrivateKey():
            return key.sign(data)
        case rsa.RSAPrivateKey():
            return key.sign(data, padding.PKCS1v15(), SHA256())
    raise ValueError(f"expected a key of ECDSA, Ed25519 or RSA, found {type(key).__name__}")
