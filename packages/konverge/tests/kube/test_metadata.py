"""Metadata as a struct: fast for the data of servers, lenient with everything else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.kube.metadata import ObjectMeta, OwnerReference, decode_metadata, parse_revision

FULL: dict[str, Any] = {
    "name": "web",
    "namespace": "default",
    "uid": "u",
    "resourceVersion": "12",
    "generation": 3,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "deletionTimestamp": "2026-01-02T00:00:00Z",
    "labels": {"app": "web"},
    "annotations": {"note": "long"},
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n1"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "d1", "controller": True},
    ],
    "finalizers": ["a/b"],
    "managedFields": [{}],
}


def test_all_fields_are_read() -> None:
    found = decode_metadata(msgspec.json.encode(FULL))

    assert found == ObjectMeta(
        name="web",
        namespace="default",
        uid="u",
        resource_version="12",
        generation=3,
        creation_timestamp="2026-01-01T00:00:00Z",
        deletion_timestamp="2026-01-02T00:00:00Z",
        labels={"app": "web"},
        owner_references=(
            OwnerReference("v1", "Node", "n", "n1"),
            OwnerReference("apps/v1", "Deployment", "d", "d1", controller=True),
        ),
        finalizers=("a/b",),
    )
    assert found.is_deleting
    assert found.revision == 12


def test_the_controller_is_the_owner_that_says_so() -> None:
    found = decode_metadata(msgspec.json.encode(FULL))

    assert found.controller == found.owner_references[1]
    assert ObjectMeta().controller is None


def test_a_decoded_object_gives_the_same() -> None:
    assert ObjectMeta.of({"metadata": FULL}) == decode_metadata(msgspec.json.encode(FULL))


@pytest.mark.parametrize("field", sorted(set(FULL) - {"name", "annotations", "managedFields"}))
@pytest.mark.parametrize("odd", [None, 3.5, {"a": 1}, [7]], ids=str)
def test_a_field_of_the_wrong_type_counts_as_absent(field: str, odd: object) -> None:
    found = decode_metadata(msgspec.json.encode(FULL | {field: odd}))

    without = {name: value for name, value in FULL.items() if name != field}
    assert found == decode_metadata(msgspec.json.encode(without))


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*FULL, "kind"]), inner),
    )
)
def test_nothing_that_json_can_say_breaks_it(metadata: Any) -> None:
    assert isinstance(ObjectMeta.of({"metadata": metadata}), ObjectMeta)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'"x"', b"null"])
def test_what_is_no_object_is_told(text: bytes) -> None:
    with pytest.raises(ValueError, match="metadata"):
        decode_metadata(text)


@pytest.mark.parametrize(
    ("text", "revision"), [("12", 12), ("", 0), ("abc", 0), ("-1", 0), ("1.5", 0), ("9" * 5000, 0)]
)
def test_a_resource_version_is_a_number_or_counts_as_none(text: str, revision: int) -> None:
    assert parse_revision(text) == revision
