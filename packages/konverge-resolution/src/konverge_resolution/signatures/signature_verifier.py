"""What an engine asks of a signature, put together: the object's own signatures first, then those beside its image."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from konverge.kube import Object
from konverge_resolution.policy import SignatureRule
from konverge_resolution.resolved_content import ResolvedContent
from konverge_resolution.signatures.object_signatures import (
    encode_for_signing,
    has_tekton_signature,
    read_bundle,
    read_signatures,
)

if TYPE_CHECKING:
    from konverge_resolution.signatures.keyless import KeylessVerifier

__all__ = ["SignatureVerifier"]


class SignatureVerifier:
    """Tells what is wrong with a signature; a `konverge_resolution.engine.Verifier`.

    Args:
        trusted_root: The file that says which certificates and logs are trusted for keyless signatures
            (``trusted_root.json`` of sigstore); without one, none of them verifies.
    """

    def __init__(self, trusted_root: Path | None = None) -> None:
        self._trusted_root = trusted_root
        self._keyless: KeylessVerifier | None = None

    async def __call__(self, resolved: ResolvedContent, obj: Object, rule: SignatureRule) -> str:
        """What is wrong, in words; empty when one of the rule's keys or identities has signed.

        Args:
            resolved: What was fetched, and the signatures that were beside it.
            obj: What it says.
            rule: Who must have signed.
        """
        if not rule.keys and not rule.identities:
            return "the policy names neither a key nor an identity that must have signed"
        problems = []
        if rule.keys:
            problems.append(_check_keys(resolved, obj, rule.keys))
        if rule.identities and all(problems):
            # The library reads certificates for milliseconds, and is read itself the first time.
            problems.append(await asyncio.to_thread(self._check_identities, resolved, obj, rule.identities))
        return "" if not all(problems) else "; ".join(problems)

    def _check_identities(self, resolved: ResolvedContent, obj: Object, identities: tuple[tuple[str, str], ...]) -> str:
        from konverge_resolution.signatures.cosign_signatures import SIGSTORE_BUNDLE, is_statement_for
        from konverge_resolution.signatures.keyless import KeylessUnavailableError, KeylessVerifier

        if self._trusted_root is None:
            return "keyless signatures cannot be verified here: nothing says what is trusted for them"
        try:
            if self._keyless is None:
                self._keyless = KeylessVerifier(self._trusted_root)
        except KeylessUnavailableError as error:
            return str(error)
        own = read_bundle(obj)
        beside = [each for each in resolved.attached if each.media_type.startswith(SIGSTORE_BUNDLE)]
        if own and self._keyless.has_signed(identities, own.encode(), encode_for_signing(obj)):
            return ""
        for each in beside:
            stated = self._keyless.verify_statement(identities, each.payload)
            if stated is not None and is_statement_for(*stated, each.subject):
                return ""
        return _describe_mismatch(len(beside) + bool(own), "an identity")


def _check_keys(resolved: ResolvedContent, obj: Object, pems: Sequence[str]) -> str:
    try:
        from konverge_resolution.signatures.cosign_signatures import is_signed_by
        from konverge_resolution.signatures.keys import PublicKey
    except ImportError:
        return "signatures need the library cryptography: pip install 'konverge[signatures]'"
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
    if any(is_signed_by(keys, each) for each in resolved.attached):
        return ""
    problem = _describe_mismatch(len(own) + len(resolved.attached), "a key")
    if has_tekton_signature(obj) and not own:
        problem += " (Tekton's own annotation is over a form of the object that only Tekton writes)"
    return "; ".join([problem, *mistakes])


def _describe_mismatch(found: int, expected: str) -> str:
    if not found:
        why = "it has no signature"
    else:
        why = "its one signature is not" if found == 1 else f"none of its {found} signatures is"
    return f"the content is not signed by {expected} of the policy: {why}"
