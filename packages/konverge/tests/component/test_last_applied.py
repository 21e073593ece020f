"""The last applied configuration is read from managedFields, in every form of a field set."""

from __future__ import annotations

from typing import Any

from konverge._internal.component.last_applied import extract_last_applied
from konverge.kube import Object


def live(fields: dict[str, Any], **content: Any) -> Object:
    entry = {"manager": "us", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields}
    metadata = {"namespace": "default", "name": "web", "uid": "1", "labels": {"app": "web"}, "managedFields": [entry]}
    return {"apiVersion": "v1", "kind": "Widget", "metadata": metadata, **content}


def read_last_applied(obj: Object) -> Object:
    found = extract_last_applied(obj, "us")
    assert found is not None
    return found


def test_only_our_own_fields_come_back_with_type_and_name() -> None:
    found = read_last_applied(
        live({"f:spec": {"f:replicas": {}, "f:gone": {}}}, spec={"replicas": 2, "theirs": True}, status={})
    )
    assert found == {
        "apiVersion": "v1",
        "kind": "Widget",
        "metadata": {"namespace": "default", "name": "web"},
        "spec": {"replicas": 2},
    }


def test_a_mapping_owned_as_a_whole_comes_back_whole_and_one_owned_by_itself_empty() -> None:
    found = read_last_applied(
        live({"f:spec": {"f:selector": {}, "f:labels": {".": {}}}}, spec={"selector": {"a": 1}, "labels": {"b": 2}})
    )
    assert found["spec"] == {"selector": {"a": 1}, "labels": {}}


def test_items_of_a_list_come_back_in_its_order_with_their_keys() -> None:
    ports = [{"port": 1, "protocol": "TCP", "name": "a"}, {"port": 2, "protocol": "TCP", "name": "b"}, {"port": 3}]
    fields: dict[str, Any] = {
        'k:{"port":2,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}},
        'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}},
    }
    found = read_last_applied(live({"f:spec": {"f:ports": fields}}, spec={"ports": ports}))
    assert found["spec"]["ports"] == [
        {"port": 1, "protocol": "TCP"},
        {"port": 2, "protocol": "TCP", "name": "b"},
    ]


def test_values_of_a_set_come_back_and_an_atomic_list_whole() -> None:
    fields: dict[str, Any] = {"f:finalizers": {'v:"ours"': {}}, "f:args": {}}
    found = read_last_applied(live({"f:spec": fields}, spec={"finalizers": ["theirs", "ours"], "args": [1, 2]}))
    assert found["spec"] == {"finalizers": ["ours"], "args": [1, 2]}


def test_nothing_is_known_of_another_manager() -> None:
    assert extract_last_applied(live({"f:spec": {}}), "them") is None
