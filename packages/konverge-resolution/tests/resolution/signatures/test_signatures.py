"""Which signatures count: of objects, and of images in cosign's layouts; by keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from konverge.kube import Object
from konverge_resolution import Provenance, ResolvedContent
from konverge_resolution._internal.policy import SignatureRule
from konverge_resolution._internal.resolved_content import AttachedSignature
from konverge_resolution._internal.signatures.keys import PublicKey, sign_with
from konverge_resolution.signatures import BUNDLE, SIGNATURE, SignatureVerifier, encode_for_signing, sign
from tests.resolution.signatures.signers import ALL, BUNDLE_TYPE, OTHER, RIGHT, SHORT, Signer

pytestmark = pytest.mark.anyio

BOX: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "1", "a": "ä"}}
IMAGE = "sha256:" + "ab" * 32


async def problem(obj: Object, *keys: str, attached: tuple[AttachedSignature, ...] = ()) -> str:
    resolved = ResolvedContent(b"", Provenance("oci://registry.test/boxes", {}), attached=attached)
    return await SignatureVerifier()(resolved, obj, SignatureRule(keys=keys))


@pytest.mark.parametrize("kind", ALL)
async def test_keys_of_each_kind_verify_what_they_have_signed_and_nothing_else(kind: str) -> None:
    signer = ALL[kind]
    signed = sign(BOX, signer.private)
    assert await problem(signed, signer.public) == ""
    assert "its only signature does not match" in await problem(signed, OTHER.public)
    assert "its only signature does not match" in await problem({**signed, "data": {}}, signer.public)


async def test_an_object_without_a_signature_is_told_as_such() -> None:
    assert "the content has no signature" in await problem(BOX, RIGHT.public)


async def test_one_right_key_among_several_is_enough() -> None:
    signed = sign(BOX, RIGHT.private)
    assert await problem(signed, OTHER.public, RIGHT.public) == ""
    assert await problem(signed, "no key", RIGHT.public) == ""


async def test_one_right_signature_among_several_is_enough() -> None:
    both = sign(sign(BOX, OTHER.private), RIGHT.private)
    assert both["metadata"]["annotations"][SIGNATURE].count(",") == 1
    assert await problem(both, RIGHT.public) == await problem(both, OTHER.public) == ""


async def test_a_rule_without_keys_is_met_by_nobody() -> None:
    assert "no key and no identity" in await problem(sign(BOX, RIGHT.private))


@pytest.mark.parametrize("pem", ["", "no key", RIGHT.private, SHORT.public])
async def test_a_key_that_is_none_verifies_nothing_and_is_told(pem: str) -> None:
    assert "key 0: expected a" in await problem(sign(BOX, RIGHT.private), pem)


@pytest.mark.parametrize("text", ["!", "", ",", "AAAA", "a" * 5, "AAAA," * 100])
async def test_what_is_no_signature_is_none(text: str) -> None:
    obj = {**BOX, "metadata": {"name": "a", "annotations": {SIGNATURE: text}}}
    assert await problem(obj, RIGHT.public) != ""


async def test_only_the_first_ten_signatures_are_looked_at() -> None:
    late = BOX
    for _ in range(10):
        late = sign(late, OTHER.private)
    assert await problem(sign(late, RIGHT.private), RIGHT.public) != ""


async def test_tektons_own_annotation_does_not_count_for_other_kinds() -> None:
    obj = {**BOX, "metadata": {"name": "a", "annotations": {"tekton.dev/signature": "AAAA"}}}
    assert "tekton.dev/signature: Tekton signs no objects of kind 'ConfigMap'" in await problem(obj, RIGHT.public)


def test_whoever_formats_it_anew_breaks_nothing() -> None:
    text = yaml.safe_dump(sign(BOX, RIGHT.private), sort_keys=False)
    again = yaml.safe_load(json.dumps(dict(reversed(yaml.safe_load(text).items())), indent=4))
    assert encode_for_signing(again) == encode_for_signing(BOX)
    assert encode_for_signing(BOX) == (
        '{"apiVersion":"v1","data":{"a":"ä","b":"1"},"kind":"ConfigMap","metadata":{"name":"a"}}'.encode()
    )


def test_only_the_annotations_that_sign_are_left_out() -> None:
    def told(**annotations: str) -> bytes:
        return encode_for_signing({**BOX, "metadata": {"name": "a", "annotations": annotations}})

    assert told(**{SIGNATURE: "a", BUNDLE: "b"}) == encode_for_signing(BOX)
    assert told(other="c", **{SIGNATURE: "a"}) == told(other="c")
    assert len({told(other="c"), told(other="d"), told(**{f"{SIGNATURE}s": "a"}), encode_for_signing(BOX)}) == 4


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_two_objects_are_signed_as_one_only_if_they_are_equal(one: Any, other: Any) -> None:
    is_one = encode_for_signing({**BOX, "data": one}) == encode_for_signing({**BOX, "data": other})
    assert is_one is (repr(_sorted(one)) == repr(_sorted(other)))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def test_what_cannot_sign_is_refused() -> None:
    for pem in ("", RIGHT.public):
        with pytest.raises(ValueError, match="expected an unencrypted private key"):
            sign(BOX, pem)
    assert PublicKey(RIGHT.public).has_signed(sign_with(RIGHT.private, b"a"), b"a")


async def test_a_signature_beside_an_image_counts_for_that_image() -> None:
    assert await problem(BOX, RIGHT.public, attached=(RIGHT.attach_signature(IMAGE),)) == ""
    assert (
        await problem(BOX, RIGHT.public, attached=(OTHER.attach_signature(IMAGE), RIGHT.attach_signature(IMAGE))) == ""
    )


def twice(bundle: bytes) -> bytes:
    """With its signature once more."""
    found = json.loads(bundle)
    found["dsseEnvelope"]["signatures"] *= 2
    return json.dumps(found).encode()


WRONG = {
    "by another key": OTHER.attach_signature(IMAGE),
    "for another image": RIGHT.attach_signature("sha256:" + "00" * 32, subject=IMAGE),
    "of another type": RIGHT.attach_signature(IMAGE, type="something else"),
    "without an image": RIGHT.attach_signature(IMAGE, image=None),
    "without a signature": AttachedSignature(
        RIGHT.attach_signature(IMAGE).media_type, RIGHT.sign_simple(IMAGE)[0], IMAGE
    ),
    "over another text": AttachedSignature(
        RIGHT.attach_signature(IMAGE).media_type, RIGHT.sign_simple(IMAGE)[0] + b" ", IMAGE, RIGHT.sign_simple(IMAGE)[1]
    ),
    "in a bundle by another key": AttachedSignature(BUNDLE_TYPE, OTHER.sign_bundle(IMAGE), IMAGE),
    "in a bundle for another image": AttachedSignature(BUNDLE_TYPE, RIGHT.sign_bundle("sha256:" + "00" * 32), IMAGE),
    "in a bundle that states something else": AttachedSignature(
        BUNDLE_TYPE, RIGHT.sign_bundle(IMAGE, predicate="https://slsa.dev/provenance/v1"), IMAGE
    ),
    "in a bundle that is signed twice": AttachedSignature(BUNDLE_TYPE, twice(RIGHT.sign_bundle(IMAGE)), IMAGE),
    "in a bundle of another type": AttachedSignature(BUNDLE_TYPE, RIGHT.sign_bundle(IMAGE, type_="text/plain"), IMAGE),
    "in no bundle": AttachedSignature(BUNDLE_TYPE, b"[]", IMAGE),
    "in a bundle without an envelope": AttachedSignature(BUNDLE_TYPE, b"{}", IMAGE),
}


@pytest.mark.parametrize("attached", WRONG.values(), ids=WRONG)
async def test_any_other_signature_beside_an_image_counts_for_nothing(attached: AttachedSignature) -> None:
    assert "its only signature does not match" in await problem(BOX, RIGHT.public, attached=(attached,))


@pytest.mark.parametrize("signer", [RIGHT, ALL["Ed25519"]])
async def test_a_bundle_by_a_key_counts_too(signer: Signer) -> None:
    assert (
        await problem(BOX, signer.public, attached=(AttachedSignature(BUNDLE_TYPE, signer.sign_bundle(IMAGE), IMAGE),))
        == ""
    )
