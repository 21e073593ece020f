"""Verifier of all signatures of content: first those in the object, then those beside its image."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from konverge._internal.kube import Object
from konverge_resolution._internal.policy import SignatureRule
from konverge_resolution._internal.resolved_content import ResolvedContent
from konverge_resolution._internal.signatures.object_signatures import (
    encode_for_signing,
    read_bundle,
    read_signatures,
    read_tekton_signature,
)
from konverge_resolution._internal.signatures.tekton_signatures import (
    TEKTON_SIGNATURE,
    UnsignedFieldError,
    encode_for_tekton,
)

if TYPE_CHECKING:
    from konverge_resolution._internal.policy import Attestation
    from konverge_resolution._internal.signatures.keyless import KeylessVerifier

__all__ = ["SignatureVerifier"]


class SignatureVerifier:
    """Verifier of signatures; a `engine.Verifier`.

    Args:
        trusted_root: The file with the trusted certificates and logs for keyless signatures (``trusted_root.json`` of
            sigstore); without one, no keyless signature is valid.
    """

    def __init__(self, trusted_root: Path | None = None) -> None:
        self._trusted_root = trusted_root
        self._keyless: KeylessVerifier | None = None

    async def __call__(self, resolved: ResolvedContent, obj: Object, rule: SignatureRule) -> str:
        """Return the problem; empty if one of the rule's keys or identities has signed.

        Args:
            resolved: The content, with the signatures beside it.
            obj: The content as an object.
            rule: The required signers.
        """
        if not rule.keys and not rule.identities:
            return "the policy names no key and no identity"
        problems = []
        if rule.keys:
            problems.append(_check_keys(resolved, obj, rule))
        if rule.identities and all(problems):
            # In a thread: the library takes milliseconds for certificates, and its first import takes longer.
            problems.append(await asyncio.to_thread(self._check_identities, resolved, obj, rule))
        return "" if not all(problems) else "; ".join(problems)

    def _check_identities(self, resolved: ResolvedContent, obj: Object, rule: SignatureRule) -> str:
        from konverge_resolution._internal.signatures.cosign_signatures import SIGSTORE_BUNDLE, is_statement_for
        from konverge_resolution._internal.signatures.keyless import KeylessUnavailableError, KeylessVerifier

        if self._trusted_root is None:
            return "keyless signatures cannot be verified: no trusted root is configured"
        try:
            if self._keyless is None:
                self._keyless = KeylessVerifier(self._trusted_root)
        except KeylessUnavailableError as error:
            return str(error)
        identities, attestation = rule.identities, rule.attestation
        own = read_bundle(obj) if attestation is None else ""
        attached = [signature for signature in resolved.attached if signature.media_type.startswith(SIGSTORE_BUNDLE)]
        if own and self._keyless.has_signed(identities, own.encode(), encode_for_signing(obj)):
            return ""
        for signature in attached:
            statement = self._keyless.verify_statement(identities, signature.payload)
            if statement is not None and is_statement_for(*statement, signature.subject, attestation):
                return ""
        return _describe_mismatch(len(attached) + bool(own), "an identity", attestation)


def _check_keys(resolved: ResolvedContent, obj: Object, rule: SignatureRule) -> str:
    try:
        from konverge_resolution._internal.signatures.cosign_signatures import is_signed_by
        from konverge_resolution._internal.signatures.keys import PublicKey
    except ImportError:
        return "signatures require the library cryptography: pip install 'konverge[signatures]'"
    keys, mistakes = [], []
    for number, pem in enumerate(rule.keys):
        try:
            keys.append(PublicKey(pem))
        except ValueError as error:
            mistakes.append(f"key {number}: {error}")
    count = len(resolved.attached)
    if rule.attestation is None:  # a signature in the object is none of a statement
        own, tekton = read_signatures(obj), read_tekton_signature(obj)
        message = encode_for_signing(obj) if own else b""
        if any(key.has_signed(signature, message) for signature in own for key in keys):
            return ""
        try:
            if tekton and any(key.has_signed(tekton, form) for form in encode_for_tekton(obj) for key in keys):
                return ""
        except UnsignedFieldError as error:
            mistakes.append(f"annotation {TEKTON_SIGNATURE}: {error}")
        count += len(own) + bool(tekton)
    if any(is_signed_by(keys, signature, rule.attestation) for signature in resolved.attached):
        return ""
    return "; ".join([_describe_mismatch(count, "a key", rule.attestation), *mistakes])


def _describe_mismatch(found: int, expected: str, attestation: Attestation | None) -> str:
    if not found:
        why = "the content has no signature"
    else:
        why = "its only signature does not match" if found == 1 else f"none of its {found} signatures matches"
    if attestation is None:
        return f"the content is not signed by {expected} of the policy: {why}"
    statement = f"statement {attestation.predicate_type}"
    if attestation.builders:
        statement += f" of builder {' or '.join(attestation.builders)}"
    return f"the content has no {statement} that is signed by {expected} of the policy: {why}"
