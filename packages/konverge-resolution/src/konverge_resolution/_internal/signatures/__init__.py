"""Verification of signatures that policies require.

A signature is in the object itself, as an annotation that covers the rest of the object (`object_signatures`). Or it is
beside the object in a registry, and covers the digest of its image (`cosign_signatures`: cosign's layouts). The signer
has a key that the policy contains (`keys`), or a keyless identity that an issuer confirmed at the time of signing
(`keyless`, the extra ``keyless``). An `Engine` receives a `SignatureVerifier`; a signature that it cannot verify counts
as missing.
"""

from konverge_resolution._internal.signatures.object_signatures import BUNDLE, SIGNATURE, encode_for_signing, sign
from konverge_resolution._internal.signatures.signature_verifier import SignatureVerifier

__all__ = ["BUNDLE", "SIGNATURE", "SignatureVerifier", "encode_for_signing", "sign"]
