"""What an engine asks of a signature, put together: the object's own signatures first, then those beside its image."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from konverge.kube import Object
from konverge.resolution.policy import SignatureRule
from konverge.resolution.result import Resolved
from konverge.resolution.signatures.objects import bundle_of, has_tekton_signature, signatures_of, signed_bytes

if TYPE_CHECKING:
    from konverge.resolution.signatures.keyless import Keyless

__all__ = ["SignatureVerifier"]


class SignatureVerifier:
    """Tells what is wrong with a signature; a `konverge.resolution.engine.Verifier`.

    Args:
        trusted_root: The file that says which certificates and logs are trusted for keyless signatures
            (``trusted_root.json`` of sigstore); without one, none of them verifies.
    """

    def __init__(self, trusted_root: Path | None = None) -> None:
        self._trusted_root = trusted_root
        self._keyless: Keyless | None = None

    async def __call__(self, resolved: Resolved, obj: Object, rule: SignatureRule) -> str:
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
            problems.append(_by_keys(resolved, obj, rule.keys))
        if rule.identities and all(problems):
            # The library reads certificates for milliseconds, and is read itself the first time.
            problems.append(await asyncio.to_thread(self._by_identities, resolved, obj, rule.identities))
        return "" if not all(problems) else "; ".join(problems)

    def _by_identities(self, resolved: Resolved, obj: Object, identities: tuple[tuple[str, str], ...]) -> str:
        from konverge.resolution.signatures.attached import SIGSTORE_BUNDLE, statement_is_for
        from konverge.resolution.signatures.keyless import Keyless, NoKeylessError

        if self._trusted_root is None:
            return "keyless signatures cannot be verified here: nothing says what is trusted for them"
        try:
            if self._keyless is None:
                self._keyless = Keyless(self._trusted_root)
        except NoKeylessError as error:
            return str(error)
        own = bundle_of(obj)
        beside = [each for each in resolved.attached if each.media_type.startswith(SIGSTORE_BUNDLE)]
        if own and self._keyless.has_signed(identities, own.encode(), signed_bytes(obj)):
            return ""
        for each in beside:
            stated = self._keyless.statement(identities, each.payload)
            if stated is not None and statement_is_for(*stated, each.subject):
                return ""
        return _not_among(len(beside) + bool(own), "an identity")


def _by_keys(resolved: Resolved, obj: Object, pems: Sequence[str]) -> str:
    try:
        from konverge.resolution.signatures.attached import is_signed_by
        from konverge.resolution.signatures.keys import PublicKey
    except ImportError:
        return "signatures need the library cryptography: pip install 'konverge[signatures]'"
    keys, mistakes = [], []
    for number, pem in enumerate(pems):
        try:
            keys.append(PublicKey(pem))
        except ValueError as error:
            mistakes.append(f"key {number}: {error}")
    own = signatures_of(obj)
    told = signed_bytes(obj) if own else b""
    if any(key.has_signed(signature, told) for signature in own for key in keys):
        return ""
    if any(is_signed_by(keys, each) for each in resolved.attached):
        return ""
    problem = _not_among(len(own) + len(resolved.attached), "a key")
    if has_tekton_signature(obj) and not own:
        problem += " (Tekton's own annotation is over a form of the object that only Tekton writes)"
    return "; ".join([problem, *mistakes])


def _not_among(found: int, expected: str) -> str:
    if not found:
        why = "it has no signature"
    else:
        why = "its one signature is not" if found == 1 else f"none of its {found} signatures is"
    return f"the content is not signed by {expected} of the policy: {why}"
