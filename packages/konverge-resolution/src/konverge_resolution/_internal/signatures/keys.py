"""Public keys and their signatures. Only this module of the package imports ``cryptography``."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

__all__ = ["PublicKey", "sign_with"]

_SMALLEST_RSA = 2048


class PublicKey:
    """Public key: ECDSA, Ed25519 or RSA. ECDSA and RSA (PKCS #1 v1.5) use SHA-256, like cosign.

    Args:
        pem: The key in PEM.

    Raises:
        ValueError: The text is not such a key, or the key is too short.
    """

    def __init__(self, pem: str) -> None:
        try:
            key = load_pem_public_key(pem.encode())
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError("expected a public key in PEM, found another format") from None
        if not isinstance(key, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey):
            raise ValueError(f"expected an ECDSA, Ed25519 or RSA key, found {type(key).__name__}")
        if isinstance(key, rsa.RSAPublicKey) and key.key_size < _SMALLEST_RSA:
            raise ValueError(f"expected an RSA key of at least {_SMALLEST_RSA} bits, found {key.key_size}")
        self._key = key

    def has_signed(self, signature: bytes, data: bytes) -> bool:
        """Tell whether this key made the signature of these bytes.

        Args:
            signature: The signature; in DER for ECDSA.
            data: The signed bytes.
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
    """Return a signature that `PublicKey.has_signed` accepts.

    Args:
        private_key_pem: The private key, not encrypted.
        data: The bytes to sign.

    Raises:
        ValueError: The text is not such a key.
    """
    try:
        key = load_pem_private_key(private_key_pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("expected an unencrypted private key in PEM, found another format") from None
    match key:
        case ec.EllipticCurvePrivateKey():
            return key.sign(data, ec.ECDSA(SHA256()))
        case ed25519.Ed25519PrivateKey():
            return key.sign(data)
        case rsa.RSAPrivateKey():
            return key.sign(data, padding.PKCS1v15(), SHA256())
    raise ValueError(f"expected an ECDSA, Ed25519 or RSA key, found {type(key).__name__}")
