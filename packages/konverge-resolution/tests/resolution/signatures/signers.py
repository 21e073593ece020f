"""Keys for the tests, and what they sign as cosign does."""

from __future__ import annotations

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from konverge_resolution._internal.resolved_content import AttachedSignature
from konverge_resolution._internal.signatures.cosign_signatures import SIGSTORE_BUNDLE, SIMPLE_SIGNING
from konverge_resolution._internal.signatures.keys import sign_with

BUNDLE_TYPE = f"{SIGSTORE_BUNDLE}.v0.3+json"
SIGN = "https://sigstore.dev/cosign/sign/v1"


class Signer:
    """A private key, and its public one in PEM."""

    def __init__(self, key: Any = None) -> None:
        key = key or ec.generate_private_key(ec.SECP256R1())
        self.private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        self.public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def sign_simple(self, digest: str, **critical: Any) -> tuple[bytes, str]:
        """A document of simple signing and its signature."""
        message = {
            "identity": {"docker-reference": "registry.test/boxes"},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
            **critical,
        }
        payload = json.dumps({"critical": message, "optional": None}).encode()
        return payload, base64.b64encode(sign_with(self.private, payload)).decode()

    def attach_signature(self, digest: str, *, subject: str = "", **critical: Any) -> AttachedSignature:
        payload, signature = self.sign_simple(digest, **critical)
        return AttachedSignature(SIMPLE_SIGNING, payload, subject or digest, signature)

    def sign_bundle(
        self,
        digest: str,
        *,
        predicate: str = SIGN,
        type_: str = "application/vnd.in-toto+json",
        statement_type: str = "https://in-toto.io/Statement/v1",
        content: Any = None,
    ) -> bytes:
        """A bundle of sigstore with a statement about an image."""
        algorithm, _, hex_ = digest.partition(":")
        statement = json.dumps(
            {
                "_type": statement_type,
                "subject": [{"name": "", "digest": {algorithm: hex_}}],
                "predicateType": predicate,
                "predicate": content or {},
            }
        ).encode()
        message = b"DSSEv1 %d %b %d %b" % (len(type_), type_.encode(), len(statement), statement)
        envelope = {
            "payload": base64.b64encode(statement).decode(),
            "payloadType": type_,
            "signatures": [{"sig": base64.b64encode(sign_with(self.private, message)).decode()}],
        }
        return json.dumps({"mediaType": BUNDLE_TYPE, "dsseEnvelope": envelope}).encode()


ALL = {
    "P-256": Signer(),
    "P-384": Signer(ec.generate_private_key(ec.SECP384R1())),
    "Ed25519": Signer(ed25519.Ed25519PrivateKey.generate()),
    "RSA": Signer(rsa.generate_private_key(65537, 2048)),
}
RIGHT, OTHER = Signer(), Signer()
EC = ec.SECP256R1()
SHORT = Signer(rsa.generate_private_key(65537, 1024))
