"""Who has signed what was fetched: checked before anybody gets it, when a policy asks for it.

A signature is in the object itself, as an annotation over everything else in it (`object_signatures`), or beside it in
a registry, over the digest of the image that it is from (`cosign_signatures`: cosign's layouts). It is by a key that
the policy has (`keys`), or keyless: by somebody whom an issuer of identities has vouched for at that moment (`keyless`,
the extra ``keyless``). `SignatureVerifier` is what an `Engine` is given; whatever it cannot verify counts as not
signed.
"""

from konverge_resolution.signatures.object_signatures import BUNDLE, SIGNATURE, encode_for_signing, sign
from konverge_resolution.signatures.signature_verifier import SignatureVerifier

__all__ = ["BUNDLE", "SIGNATURE", "SignatureVerifier", "encode_for_signing", "sign"]
