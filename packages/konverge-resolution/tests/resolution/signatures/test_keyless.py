"""Keyless signatures: two real ones, by the identity of the conformance suite of sigstore in its staging instance.

``a.txt`` and its bundles are that suite's: ``rekor2-happy-path`` and ``rekor2-dsse-happy-path``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from konverge_resolution import Provenance, ResolvedContent
from konverge_resolution._internal.policy import SignatureRule
from konverge_resolution._internal.resolved_content import AttachedSignature
from konverge_resolution._internal.signatures.cosign_signatures import is_statement_for
from konverge_resolution._internal.signatures.keyless import KeylessUnavailableError, KeylessVerifier
from konverge_resolution.signatures import BUNDLE, SignatureVerifier
from tests.resolution.signatures.signers import BUNDLE_TYPE, RIGHT

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parent / "sigstore"
ROOT = FOLDER / "trusted_root.json"
SIGNATURE = (FOLDER / "bundle.sigstore.json").read_bytes()
STATEMENT = (FOLDER / "statement.sigstore.json").read_bytes()
CONTENT = (FOLDER / "a.txt").read_bytes()
ISSUER = "https://token.actions.githubusercontent.com"
BEACON = (
    "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/"
    "extremely-dangerous-oidc-beacon.yml@refs/heads/main"
)


@pytest.fixture(scope="module")
def keyless() -> KeylessVerifier:
    return KeylessVerifier(ROOT)


@pytest.fixture
def anyio_backend(anyio_backend: Any) -> Any:
    return "asyncio", {}  # verified in a thread, whose time is real


@pytest.mark.slow
def test_an_identity_is_a_subject_and_its_issuer(keyless: KeylessVerifier) -> None:
    assert keyless.has_signed(((BEACON, ISSUER),), SIGNATURE, CONTENT)
    assert keyless.has_signed((("someone@example.com", ISSUER), (BEACON, ISSUER)), SIGNATURE, CONTENT)
    assert not keyless.has_signed(((BEACON, "https://issuer.example.com"),), SIGNATURE, CONTENT)
    assert not keyless.has_signed((("someone@example.com", ISSUER),), SIGNATURE, CONTENT)
    assert not keyless.has_signed(((BEACON[:-1], ISSUER),), SIGNATURE, CONTENT)


def test_other_content_is_not_what_was_signed(keyless: KeylessVerifier) -> None:
    assert not keyless.has_signed(((BEACON, ISSUER),), SIGNATURE, CONTENT + b" ")


@pytest.mark.parametrize(
    "bundle", [b"", b"{}", b"[]", b"\xff", STATEMENT, SIGNATURE + b" " * (1 << 20), SIGNATURE[:-9]]
)
def test_what_is_no_signature_of_it_is_none(keyless: KeylessVerifier, bundle: bytes) -> None:
    assert not keyless.has_signed(((BEACON, ISSUER),), bundle, CONTENT)


def test_a_statement_is_its_identitys_and_is_read_for_what_it_states(keyless: KeylessVerifier) -> None:
    found = keyless.verify_statement(((BEACON, ISSUER),), STATEMENT)
    assert found is not None
    assert b"https://slsa.dev/provenance/v1" in found[1]
    # It is about where something comes from, which is no signature of it.
    assert not is_statement_for(*found, "sha256:a0cfc71271d6e278e57cd332ff957c3f7043fdda354c4cbb190a30d56efa01bf")
    assert keyless.verify_statement((("someone@example.com", ISSUER),), STATEMENT) is None
    assert keyless.verify_statement(((BEACON, ISSUER),), SIGNATURE) is None


async def problem(root: Path | None, *, keys: tuple[str, ...] = (), bundle: str = SIGNATURE.decode()) -> str:
    obj = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "annotations": {BUNDLE: bundle}}}
    beside = AttachedSignature(BUNDLE_TYPE, STATEMENT, "sha256:" + "00" * 32)
    resolved = ResolvedContent(b"", Provenance("oci://registry.test/a", {}), attached=(beside,))
    return await SignatureVerifier(root)(resolved, obj, SignatureRule(keys=keys, identities=((BEACON, ISSUER),)))


async def test_signatures_of_something_else_do_not_count_for_an_object() -> None:
    assert "none of its 2 signatures matches" in await problem(ROOT)
    message = await problem(ROOT, keys=(RIGHT.public,))
    assert "by a key of the policy" in message
    assert "by an identity of the policy" in message


async def test_without_what_is_trusted_no_keyless_signature_verifies(tmp_path: Path) -> None:
    assert "no trusted root is configured" in await problem(None)
    assert "cannot be read" in await problem(tmp_path / "absent.json")
    (tmp_path / "other.json").write_text("{}")
    assert "cannot be read" in await problem(tmp_path / "other.json")


def test_without_the_library_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sigstore.models", None)
    with pytest.raises(KeylessUnavailableError, match=r"konverge\[keyless\]"):
        KeylessVerifier(ROOT)
