"""The pure parts of a dry run: an object that records its reads, and the comparison of two objects."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.component.dry_run.field_diff import find_field_changes
from konverge._internal.component.dry_run.read_recorder import FieldReadRecorder
from konverge._internal.component.dry_run.report import FieldRead
from konverge._internal.kube.secret_values import SecretValues
from konverge._internal.mutation import copy_json
from konverge._internal.primitives.field_access import read_entries, read_integer, read_items, read_text

NAMES = st.sampled_from(["name", "type", "status", "key", "a", "b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=15,
)
FIELDS = st.dictionaries(NAMES, VALUES, max_size=4)


encoded = msgspec.json.Encoder(order="deterministic").encode


def rebuilt(value: Any) -> Any:
    """The value, as somebody reads it who looks at everything."""
    if isinstance(value, dict):
        return {name: rebuilt(each) for name, each in value.items()}
    return [rebuilt(each) for each in value] if isinstance(value, list) else value


def pods(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, **fields}


@given(FIELDS)
def test_a_reader_finds_in_the_disguise_what_is_in_the_object(fields: dict[str, Any]) -> None:
    disguised = FieldReadRecorder(is_secret=False, secrets=SecretValues()).wrap_object(fields)

    assert rebuilt(disguised) == fields
    assert copy_json(disguised) == fields
    assert copy.deepcopy(disguised) == fields
    assert {**disguised} == fields
    assert rebuilt(list(disguised.values())) == list(fields.values())
    assert all(name in disguised for name in fields)


def test_leaves_are_noted_and_lists_that_were_only_looked_at() -> None:
    live = {
        "metadata": {"generation": 3, "labels": {"a": "b"}},
        "spec": {"ports": [{"name": "web", "port": 80}, {"name": "tls", "port": 443}], "args": ["x", "y"]},
        "status": {"conditions": [{"type": "Available", "status": "True"}], "ready": 0},
    }
    readings = FieldReadRecorder(is_secret=False, secrets=SecretValues())
    disguised = readings.wrap_object(live)

    assert read_integer(disguised, "metadata", "generation") == 3
    assert read_entries(disguised, "metadata", "labels") == [("a", "b")]
    assert [port["port"] for port in read_items(disguised, "spec", "ports")] == [80, 443]
    assert disguised["spec"]["args"][1] == "y"
    assert disguised["spec"]["args"][-1:] == ["y"]
    assert len(disguised["status"]["conditions"]) == 1
    assert read_text(disguised, "status", "phase") == ""
    assert "error" not in disguised["status"]
    assert readings.list_reads() == (
        FieldRead("metadata.generation", 3),
        FieldRead("metadata.labels.a", "b"),
        FieldRead("spec.ports[web].port", 80),
        FieldRead("spec.ports[tls].port", 443),
        FieldRead("spec.args[1]", "y"),
        FieldRead("status.conditions", "[Available]"),
        FieldRead("status.phase", None, is_present=False),
        FieldRead("status.error", None, is_present=False),
    )


def test_values_of_a_secret_are_hidden_and_its_other_fields_are_not() -> None:
    readings = FieldReadRecorder(is_secret=True, secrets=SecretValues())
    disguised = readings.wrap_object({"type": "Opaque", "data": {"password": "aHVudGVyMg=="}})

    assert (disguised["type"], disguised["data"]["password"]) == ("Opaque", "aHVudGVyMg==")

    assert readings.list_reads() == (FieldRead("type", "Opaque"), FieldRead("data.password", "(hidden)"))


def test_no_more_is_told_of_a_long_reading_than_a_person_reads() -> None:
    readings = FieldReadRecorder(is_secret=False, secrets=SecretValues())
    rebuilt(readings.wrap_object({"data": {str(number): "x" * 9_000 for number in range(500)}}))

    found = readings.list_reads()

    assert len(found) == 50
    assert max(len(str(reading.value)) for reading in found) < 2_100


@pytest.mark.slow
@given(FIELDS, FIELDS)
def test_two_objects_differ_in_fields_if_they_differ(one: dict[str, Any], other: dict[str, Any]) -> None:
    before, after = pods(data=one), pods(data=other)

    changes = find_field_changes(before, after, "us", SecretValues())

    assert bool(changes) == (encoded(before) != encoded(after))  # for Python, True is 1
    assert all(change.path.startswith(".data") for change in changes)
    assert find_field_changes(before, before, "us", SecretValues()) == ()


def test_what_the_server_writes_is_no_change() -> None:
    after = pods(status={"ready": 1})
    after["metadata"] |= {"generation": 2, "resourceVersion": "7", "uid": "u"}

    assert find_field_changes(pods(), after, "us", SecretValues()) == ()


def test_another_order_of_the_same_items_is_one_change() -> None:
    ours: dict[str, Any] = {"f:spec": {"f:items": {'k:{"name":"a"}': {}, 'k:{"name":"b"}': {}}}}
    entry = {"manager": "us", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": ours}
    before = pods(spec={"items": [{"name": "a"}, {"name": "b"}]})
    after = pods(spec={"items": [{"name": "b"}, {"name": "a"}]})
    for obj in (before, after):
        obj["metadata"]["managedFields"] = [entry]

    [change] = find_field_changes(before, after, "us", SecretValues())

    assert (change.path, change.kind) == (".spec.items", "changed")
