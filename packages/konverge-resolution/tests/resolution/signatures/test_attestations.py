"""Policies that require a signed statement about an image, such as its provenance."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from konverge.kube import Object
from konverge_resolution import Provenance, ResolvedContent
from konverge_resolution._internal.policy import Attestation, SignatureRule
from konverge_resolution._internal.resolved_content import AttachedSignature
from konverge_resolution._internal.signatures.cosign_signatures import is_statement_for
from konverge_resolution._internal.signatures.keyless import KeylessVerifier
from konverge_resolution.signatures import SignatureVerifier, sign
from tests.resolution.signatures.signers import BUNDLE_TYPE, OTHER, RIGHT
from tests.resolution.signatures.test_keyless import BEACON, ISSUER, ROOT, STATEMENT

pytestmark = pytest.mark.anyio

IMAGE = "sha256:" + "ab" * 32
SLSA = "https://slsa.dev/provenance/v1"
BUILDER = "https://builder.example/hosted"
PROVENANCE = {"runDetails": {"builder": {"id": BUILDER}}}
TASK: Object = {"apiVersion": "tekton.dev/v1", "kind": "Task", "metadata": {"name": "a"}, "spec": {}}


def attest(signer: Any = RIGHT, subject: str = IMAGE, **statement: Any) -> AttachedSignature:
    bundle = signer.sign_bundle(subject, **{"predicate": SLSA, "content": PROVENANCE, **statement})
    return AttachedSignature(BUNDLE_TYPE, bundle, IMAGE)


async def verify(*attached: AttachedSignature, builders: tuple[str, ...] = (BUILDER,), obj: Object = TASK) -> str:
    resolved = ResolvedContent(b"", Provenance("oci://registry.test/a", {}), attached=attached)
    rule = SignatureRule(keys=(RIGHT.public,), attestation=Attestation(SLSA, builders))
    return await SignatureVerifier()(resolved, obj, rule)


async def test_a_statement_of_the_type_and_builder_by_a_key_of_the_policy_is_accepted() -> None:
    assert await verify(attest()) == ""
    assert await verify(attest(OTHER), attest()) == ""
    assert await verify(attest(content={}), builders=()) == ""


async def test_older_statements_name_their_builder_elsewhere() -> None:
    older: dict[str, Any] = {
        "statement_type": "https://in-toto.io/Statement/v0.1",
        "content": {"builder": {"id": BUILDER}},
    }
    assert await verify(attest(**older)) == ""


@pytest.mark.parametrize(
    "attached",
    [
        attest(OTHER),
        attest(subject="sha256:" + "00" * 32),
        attest(predicate="https://slsa.dev/provenance/v0.2"),
        attest(predicate="https://sigstore.dev/cosign/sign/v1"),
        attest(content={"runDetails": {"builder": {"id": f"{BUILDER}-evil"}}}),
        attest(content={"runDetails": {"builder": {"id": [BUILDER]}}}),
        attest(content={"runDetails": [BUILDER]}),
        attest(content={}),
        attest(content=[BUILDER]),
        attest(statement_type="https://in-toto.io/Statement/v2"),
        attest(type_="application/json"),
        RIGHT.attach_signature(IMAGE),
    ],
)
async def test_another_statement_is_refused_with_what_is_required(attached: AttachedSignature) -> None:
    problem = await verify(attached)
    assert f"the content has no statement {SLSA} of builder {BUILDER} that is signed by a key" in problem


async def test_a_signature_of_the_content_is_no_statement_and_the_other_way_round() -> None:
    assert "has no signature" in await verify(obj=sign(TASK, RIGHT.private))
    resolved = ResolvedContent(b"", Provenance("oci://registry.test/a", {}), attached=(attest(),))
    assert "not signed by a key" in await SignatureVerifier()(resolved, TASK, SignatureRule(keys=(RIGHT.public,)))


@pytest.mark.slow
def test_a_recorded_keyless_provenance_is_one_for_its_subject() -> None:
    found = KeylessVerifier(ROOT).verify_statement(((BEACON, ISSUER),), STATEMENT)
    assert found is not None
    envelope = json.loads(STATEMENT)["dsseEnvelope"]
    (subject,) = json.loads(base64.b64decode(envelope["payload"]))["subject"]
    digest = f"sha256:{subject['digest']['sha256']}"
    assert is_statement_for(*found, digest, Attestation(SLSA))
    assert not is_statement_for(*found, digest, Attestation(SLSA, (BUILDER,)))
    assert not is_statement_for(*found, IMAGE, Attestation(SLSA))
