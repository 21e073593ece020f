"""Tekton's own signatures: recorded ones, and objects that they do not cover.

``tekton/vectors.json`` was recorded with Tekton's own Go types (tektoncd/pipeline of August 2026): for each object the
JSON that Tekton signs, its digest, and a signature by the library of sigstore. ``olderChecksum`` is the digest of
Tekton of May 2024.
"""

from __future__ import annotations

import copy
import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.kube import Object
from konverge_resolution import Provenance, ResolvedContent
from konverge_resolution._internal.policy import SignatureRule
from konverge_resolution._internal.signatures.tekton_signatures import (
    TEKTON_SIGNATURE,
    UnsignedFieldError,
    encode_for_tekton,
)
from konverge_resolution.signatures import SignatureVerifier
from tests.resolution.signatures.signers import OTHER

pytestmark = pytest.mark.anyio

RECORDED: Any = json.loads((Path(__file__).parent / "tekton" / "vectors.json").read_text())
KEY: str = RECORDED["publicKey"]
VECTORS: dict[str, dict[str, Any]] = RECORDED["vectors"]
SMALL: Object = VECTORS["a small task"]["object"]


def sign_as_recorded(name: str) -> Object:
    obj: Object = copy.deepcopy(VECTORS[name]["object"])
    annotations = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = {**annotations, TEKTON_SIGNATURE: VECTORS[name]["signature"]}
    return obj


async def verify(obj: Object, key: str = KEY) -> str:
    resolved = ResolvedContent(b"", Provenance("oci://registry.test/a", {}))
    return await SignatureVerifier()(resolved, obj, SignatureRule(keys=(key,)))


@pytest.mark.parametrize("name", VECTORS)
async def test_a_recorded_signature_is_valid_for_its_key(name: str) -> None:
    vector = VECTORS[name]
    assert hashlib.sha256(vector["signed"].encode()).digest() == encode_for_tekton(vector["object"])[0]
    assert await verify(sign_as_recorded(name)) == ""
    assert "its only signature does not match" in await verify(sign_as_recorded(name), OTHER.public)


@pytest.mark.parametrize("name", [name for name, vector in VECTORS.items() if "olderChecksum" in vector])
def test_the_form_of_older_versions_is_accepted(name: str) -> None:
    assert bytes.fromhex(VECTORS[name]["olderChecksum"]) in encode_for_tekton(VECTORS[name]["object"])


def test_older_versions_also_write_a_template_without_a_name() -> None:
    template = {**VECTORS["an older task"]["object"], "spec": {"stepTemplate": {}}}
    text = (
        '{"kind":"Task","apiVersion":"tekton.dev/v1beta1","metadata":{"name":"old","creationTimestamp":null},'
        '"spec":{"stepTemplate":{"name":"","resources":{}}}}'
    )
    assert hashlib.sha256(text.encode()).digest() in encode_for_tekton(template)


async def test_a_changed_value_is_not_signed() -> None:
    obj = sign_as_recorded("a small task")
    obj["spec"]["steps"][0]["image"] = "registry.test/tool:2"
    assert "does not match" in await verify(obj)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("spec", "steps", 0, "unknown"), "a", "spec.steps[0].unknown: not covered by Tekton's signature"),
        (("spec", "steps", 0, "Image"), "a", "spec.steps[0].Image: not covered"),
        (("other",), {}, "other: not covered"),
        (("status",), {}, "status: not covered"),
        (("metadata", "finalizers"), ["a"], "metadata.finalizers: not covered"),
        (("metadata", "ownerReferences"), [], "metadata.ownerReferences: not covered"),
        (
            ("metadata", "annotations"),
            {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "last-applied-configuration is not covered",
        ),
        (("kind",), "TaskRun", "Tekton signs no objects of kind 'TaskRun'"),
        (("apiVersion",), "tekton.dev/v1alpha1", "Tekton signs no objects"),
    ],
)
async def test_what_the_signature_does_not_cover_makes_it_invalid(
    path: tuple[Any, ...], value: Any, message: str
) -> None:
    obj = sign_as_recorded("a small task")
    place: Any = obj
    for step in path[:-1]:
        place = place[step]
    if path == ("metadata", "annotations"):
        value = {**value, TEKTON_SIGNATURE: obj["metadata"]["annotations"][TEKTON_SIGNATURE]}
    place[path[-1]] = value
    assert message in await verify(obj)


@pytest.mark.parametrize(
    "step",
    [
        {"name": False}, {"name": 0}, {"args": {}}, {"args": ""}, {"env": [[]]}, {"script": ["a"]},
        {"computeResources": {"limits": {"cpu": "many"}}}, {"computeResources": {"limits": {"cpu": 0.5}}},
        {"timeout": "soon"}, {"timeout": 5}, {"timeout": "0.1ns"}, {"params": [{"name": "a"}]},
        {"params": [{"name": "a", "value": 1.5}]}, {"params": [{"name": "a", "value": [1]}]},
        {"securityContext": {"runAsUser": True}}, {"securityContext": {"runAsUser": 2**63}},
        {"volumeMounts": [{"name": "a", "mountPath": "a", "readOnly": 0}]},
    ],
)  # fmt: skip
def test_a_value_of_another_type_has_no_signed_form(step: dict[str, Any]) -> None:
    """Go refuses such a value, or an omitted field would hide it from the signature."""
    with pytest.raises(UnsignedFieldError, match=r"spec\.steps\[0\]\."):
        encode_for_tekton({**SMALL, "spec": {"steps": [step]}})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "value", "steps", "tasks", "params", "matrix", "a"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@pytest.mark.slow
@given(metadata=VALUES, spec=VALUES, kind=st.sampled_from(["Task", "Pipeline"]))
@settings(max_examples=300, deadline=None)
def test_any_object_has_a_form_or_a_reason_why_not(metadata: Any, spec: Any, kind: str) -> None:
    forms: tuple[bytes, ...] = ()
    with suppress(UnsignedFieldError):  # any other error fails
        forms = encode_for_tekton({"apiVersion": "tekton.dev/v1", "kind": kind, "metadata": metadata, "spec": spec})
    assert all(len(form) == 32 for form in forms)


async def test_a_signature_that_is_not_base64_counts_as_none() -> None:
    obj = sign_as_recorded("a small task")
    obj["metadata"]["annotations"][TEKTON_SIGNATURE] = "*"
    assert "the content has no signature" in await verify(obj)
