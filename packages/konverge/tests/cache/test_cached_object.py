"""The part of an object that the cache keeps."""

from __future__ import annotations

import msgspec
import pytest

from konverge._internal.cache.cached_object import CachedObject, parse_event, parse_object, parse_text
from konverge._internal.kube.metadata import decode_metadata
from konverge.kube import Object
from tests.cache.objects import config_map, line

APPLIED: Object = {"manager": "ours", "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}}}
UPDATED: Object = {"manager": "theirs", "operation": "Update", "fieldsV1": {"f:data": {"f:b": {}}}}


def entry_of(obj: Object) -> CachedObject:
    received = parse_object(obj)
    return CachedObject(received.meta, received.to_body("v1", "ConfigMap"))


def with_managed_fields(*managed_fields: Object) -> Object:
    obj = config_map(1)
    obj["metadata"]["managedFields"] = list(managed_fields)
    return obj


def test_of_managed_fields_only_those_of_applies_are_held() -> None:
    found = entry_of(with_managed_fields(UPDATED, APPLIED, UPDATED)).decode()

    assert found["metadata"]["managedFields"] == [APPLIED]


@pytest.mark.parametrize(
    "managed_fields",
    [(), (UPDATED,), ({"manager": "Apply", "operation": "Update"},)],
    ids=["empty", "an update", "a manager of that name"],
)
def test_without_an_apply_no_managed_fields_are_held(managed_fields: tuple[Object, ...]) -> None:
    found = entry_of(with_managed_fields(*managed_fields)).decode()

    assert "managedFields" not in found["metadata"]


def test_managed_fields_of_an_odd_form_are_left_out() -> None:
    obj = config_map(1)
    obj["metadata"]["managedFields"] = {"operation": "Apply"}

    assert "managedFields" not in entry_of(obj).decode()["metadata"]


def test_everything_else_is_held_as_it_was() -> None:
    obj = config_map(7, labels={"a": "b"}, owners=["o"])
    obj["spec"] = {"list": [1, 2.5, None, {"deep": True}], "text": "ü\n"}

    assert entry_of(obj).decode() == obj


def test_each_read_gives_a_value_of_its_own() -> None:
    entry = entry_of(config_map(1))
    entry.decode()["data"]["revision"] = "changed"

    assert entry.decode()["data"] == {"revision": "1"}


def test_a_list_item_learns_what_it_is() -> None:
    obj = config_map(1)
    del obj["apiVersion"], obj["kind"]

    found = entry_of(obj).decode()

    assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")


@pytest.mark.parametrize("text", [b"[]", b"null", b"{", b""])
def test_what_is_no_object_cannot_be_read(text: bytes) -> None:
    with pytest.raises(ValueError, match="expected a JSON object"):
        parse_text(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{}", "metadata: expected an object, found none"),
        (b'{"metadata": null}', "metadata: expected an object"),
        (b'{"metadata": {"namespace": "default"}}', "metadata.name: expected a name, found none"),
        (b'{"metadata": {"name": null}}', "metadata.name: expected a name, found none"),
    ],
)
def test_an_object_needs_metadata_with_a_name(text: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_text(text)


WRITTEN = [
    '{"metadata":{"managedFields":MF,"name":"web"},"data":{}}',
    '{"metadata":{"name":"web","managedFields":MF},"data":{}}',
    '{"metadata":{"name":"web","managedFields":MF,"uid":"u"}}',
    '{"data":{"managedFields":[1]},"metadata":{"name":"web","managedFields":MF}}',
    '{"metadata":{"annotations":{"managedFields":"MF"},"name":"web","managedFields":MF}}',
    '{"metadata": {"name": "web", "managedFields": MF}, "data": {}}',
    '{ "metadata" : { "managedFields" : MF , "name" : "web" } }',
    '{"metadata":{"name":"web","labels":{"odd":null},"managedFields":MF}}',
    '{"metadata":{"name":"web","managedFields":MF},"apiVersion":7,"kind":null}',
]


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("managed_fields", [(), (UPDATED,), (APPLIED,), (UPDATED, APPLIED)])
def test_managed_fields_are_found_wherever_and_however_they_are_written(
    written: str, managed_fields: tuple[Object, ...]
) -> None:
    text = written.replace('"MF"', '"none"').replace("MF", msgspec.json.encode(managed_fields).decode()).encode()
    received = parse_text(text)
    expected = msgspec.json.decode(text)
    expected["metadata"].pop("managedFields")
    if APPLIED in managed_fields:
        expected["metadata"]["managedFields"] = [APPLIED]

    found = msgspec.json.decode(received.to_body("", ""))
    if "kind" not in expected:
        del found["apiVersion"], found["kind"]
    assert {name: value for name, value in found.items() if value} == {
        name: value for name, value in expected.items() if value
    }
    assert received.meta == decode_metadata(msgspec.json.encode(msgspec.json.decode(text)["metadata"]))


@pytest.mark.parametrize(
    "line",
    [
        line("ADDED", config_map(7)),
        line("ADDED", config_map(7)).replace(b'":', b'" : ').replace(b',"', b' , "'),
        line("ADDED", config_map(7)) + b"\r",
        line("ADDED", config_map(7))[:-1] + b',"more":{}}',
        msgspec.json.encode({"object": config_map(7), "type": "ADDED"}),
    ],
    ids=["as servers write it", "with spaces", "carriage return", "a field more", "another order"],
)
def test_an_event_is_read_however_it_is_written(line: bytes) -> None:
    event_type, received = parse_event(line)

    assert event_type == "ADDED"
    assert msgspec.json.decode(received.to_body("", "")) == config_map(7)
