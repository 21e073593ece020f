"""Verifier of all signatures of content: first those in the object, then those beside its image."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from konverge._internal.kube import Object
from konverge_resolution._internal.policy import SignatureRule
from konverge_resolution._internal.resolved_content import ResolvedContent
from konverge_resolution._internal.signatures.object_signatures import (
    encode_for_signing,
    has_tekton_signature,
    read_bundle,
    read_signatures,
)

if TYPE_CHECKING:
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
            problems.append(_check_keys(resolved, obj, rule.keys))
        if rule.identities and all(problems):
            # In a thread: the library takes milliseconds for certificates, and its first import takes longer.
            problems.append(await asyncio.to_thread(self._check_identities, resolved, obj, rule.identities))
        return "" if not all(problems) else "; ".join(problems)

    def _check_identities(self, resolved: ResolvedContent, obj: Object, identities: tuple[tuple[str, str], ...]) -> str:
        from konverge_resolution._internal.signatures.cosign_signatures import SIGSTORE_BUNDLE, is_statement_for
        from konverge_resolution._internal.signatures.keyless import KeylessUnavailableError, KeylessVerifier

        if self._trusted_root is None:
            return "keyless signatures cannot be verified: no trusted root is configured"
        try:
            if self._keyless is None:
                self._keyless = KeylessVerifier(self._trusted_root)
        except KeylessUnavailableError as error:
            return str(error)
        own = read_bundle(obj)
        attached = [signature for signature in resolved.attached if signature.media_type.startswith(SIGSTORE_BUNDLE)]
        if own and self._keyless.has_signed(identities, own.encode(), encode_for_signing(obj)):
            return ""
        for signature in attached:
            statement = self._keyless.verify_statement(identities, signature.payload)
            if statement is not None and is_statement_for(*statement, signature.subject):
                return ""
        return _describe_mismatch(len(attached) + bool(own), "an identity")


def _check_keys(resolved: ResolvedContent, obj: Object, pems: Sequence[str]) -> str:
    try:
        from konverge_resolution._internal.signatures.cosign_signatures import is_signed_by
        from konverge_resolution._internal.signatures.keys import PublicKey
    except ImportError:
        return "signatures require the library cryptography: pip install 'konverge[signatures]'"
    keys, mistakes = [], []
    for number, pem in enumerate(pems):
        try:
            keys.append(PublicKey(pem))
        except ValueError as error:
            mistakes.append(f"key {number}: {error}")
    own = read_signatures(obj)
    message = encode_for_signing(obj) if own else b""
    if any(key.has_signed(signature, message) for signature in own for key in keys):
        return ""
    if any(is_signed_by(keys, signature) for signature in resolved.attached):
        return ""
    problem = _describe_mismatch(len(own) + len(resolved.attached), "a key")
    if has_tekton_signature(obj) and not own:
        problem += " (Tekton's own annotation covers a form of the object that only Tekton can reproduce)"
    return "; ".join([problem, *mistakes])


def _describe_mismatch(found: int, expected: str) -> str:
    if not found:
        why = "the content has no signature"
    else:
        why = "its only signature does not match" if found == 1 else f"none of its {found} signatures matches"
    return f"the content is not signed by {expected} of the policy: {why}"
