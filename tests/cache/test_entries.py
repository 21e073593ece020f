"""What is held of an object."""

from __future__ import annotations

import msgspec
import pytest

from konverge.cache.entries import encode_entry, entry_body, entry_metadata, split_object
from konverge.kube import Object
from tests.cache.objects import CONFIG_MAP, config_map, raw

APPLIED: Object = {"manager": "ours", "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}}}
UPDATED: Object = {"manager": "theirs", "operation": "Update", "fieldsV1": {"f:data": {"f:b": {}}}}


def with_managed_fields(*managed_fields: Object) -> Object:
    obj = config_map(1)
    obj["metadata"]["managedFields"] = list(managed_fields)
    return obj


def test_of_managed_fields_only_those_of_applies_are_held() -> None:
    found = encode_entry(with_managed_fields(UPDATED, APPLIED, UPDATED)).decode()

    assert found["metadata"]["managedFields"] == [APPLIED]


@pytest.mark.parametrize(
    "managed_fields",
    [(), (UPDATED,), ({"manager": "Apply", "operation": "Update"},)],
    ids=["empty", "an update", "a manager of that name"],
)
def test_without_an_apply_no_managed_fields_are_held(managed_fields: tuple[Object, ...]) -> None:
    found = encode_entry(with_managed_fields(*managed_fields)).decode()

    assert "managedFields" not in found["metadata"]


def test_managed_fields_of_an_odd_form_are_left_out() -> None:
    obj = config_map(1)
    obj["metadata"]["managedFields"] = {"operation": "Apply"}

    assert "managedFields" not in encode_entry(obj).decode()["metadata"]


def test_everything_else_is_held_as_it_was() -> None:
    obj = config_map(7, labels={"a": "b"}, owners=["o"])
    obj["spec"] = {"list": [1, 2.5, None, {"deep": True}], "text": "ü\n"}

    assert encode_entry(obj).decode() == obj


def test_each_read_gives_a_value_of_its_own() -> None:
    entry = encode_entry(config_map(1))
    entry.decode()["data"]["revision"] = "changed"

    assert entry.decode()["data"] == {"revision": "1"}


def test_a_list_item_learns_what_it_is() -> None:
    obj = config_map(1)
    del obj["apiVersion"], obj["kind"]

    found = msgspec.json.decode(entry_body(raw(obj), CONFIG_MAP))

    assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")


@pytest.mark.parametrize("text", [b"[]", b"null", b"{", b""])
def test_what_is_no_object_cannot_be_split(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        split_object(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{}", "without metadata"),
        (b'{"metadata": null}', "not an object"),
        (b'{"metadata": {"namespace": "default"}}', "without a name"),
        (b'{"metadata": {"name": null}}', "without a name"),
    ],
)
def test_an_object_needs_metadata_with_a_name(text: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        entry_metadata(split_object(text))
