from __future__ import annotations

import copy
from typing import Any

import pytest

from konverge._internal.apply import (
    build_custom_resource_schema,
    normalize,
    remove_meaningless_nulls,
    with_schema_defaults,
)
from konverge.kube import Object
from tests.apply.rich_objects import NAMES, load_rich_object
from tests.apply.widgets import WIDGET_SCHEMA, widget

WIDGETS = build_custom_resource_schema(WIDGET_SCHEMA)


def pod(**spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize("name", NAMES)
def test_the_normal_form_is_its_own(name: str) -> None:
    normal = normalize(load_rich_object(name))
    assert normalize(normal) == normal


@pytest.mark.parametrize("name", NAMES)
def test_an_object_is_not_changed_by_it(name: str) -> None:
    obj = load_rich_object(name)
    normalize(obj)
    assert obj == load_rich_object(name)


def test_quantities_get_their_one_spelling() -> None:
    resources = {"limits": {"cpu": "1000m"}, "requests": {"memory": 1024}}
    normal = normalize(pod(containers=[{"name": "a", "resources": resources}]))
    assert normal["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"memory": "1024"}}


def test_plain_text_of_a_secret_becomes_data() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "b2xk", "b": "eA=="}, "stringData": {"a": "ü"}}
    assert normalize(secret) == {"apiVersion": "v1", "kind": "Secret", "data": {"a": "w7w=", "b": "eA=="}}


def test_bytes_get_their_one_spelling() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "YWJj\nZGVm\n", "b": "YWJ=", "c": "no base64"}}
    assert normalize(secret)["data"] == {"a": "YWJjZGVm", "b": "YWI=", "c": "no base64"}


def test_of_an_account_s_secrets_only_the_names_stay() -> None:
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount"}
    secrets = [{"name": "a", "namespace": "b"}, {"name": "c"}]
    assert normalize({**account, "secrets": secrets})["secrets"] == [{"name": "a"}, {"name": "c"}]
    assert normalize({**account, "secrets": "odd"})["secrets"] == "odd"


def test_fields_are_not_added_where_they_merge_one_by_one() -> None:
    wanted = pod(containers=[{"name": "a", "image": "b", "ports": [{"containerPort": 80}]}])
    assert normalize(wanted) == wanted


def test_defaults_are_added_inside_what_merges_as_a_whole() -> None:
    env = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    normal = normalize(pod(containers=[{"name": "a", "env": env}]))
    assert normal["spec"]["containers"][0]["env"][0]["valueFrom"]["fieldRef"] == {
        "apiVersion": "v1",
        "fieldPath": "metadata.name",
    }


def test_a_null_becomes_the_default_that_it_asks_for() -> None:
    assert normalize(pod(containers=[], dnsPolicy=None))["spec"]["dnsPolicy"] == "ClusterFirst"


def test_a_zero_that_is_dropped_stays_since_it_is_owned() -> None:
    assert normalize(pod(containers=[], hostNetwork=False))["spec"]["hostNetwork"] is False


def test_a_custom_resource_gets_the_defaults_of_its_schema() -> None:
    normal = normalize(widget({"list": [{"x": 1}], "atomic": {"a": "1"}, "size": None, "inner": {}}), WIDGETS)
    assert normal["spec"] == {"list": [{"x": 1, "y": 5}], "atomic": {"a": "1", "b": "B"}, "size": 1, "inner": {}}


def test_without_a_schema_an_object_stays_as_it_is() -> None:
    assert normalize(widget({"list": [{"x": 1}]})) == widget({"list": [{"x": 1}]})


def test_schema_defaults_fill_from_the_outside_in() -> None:
    schema = {
        "type": "object",
        "properties": {
            "outer": {
                "type": "object",
                "default": {"list": [{}]},
                "properties": {
                    "list": {
                        "type": "array",
                        "items": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}},
                    },
                    "b": {"type": "string", "default": "B"},
                },
            }
        },
    }
    assert with_schema_defaults({}, build_custom_resource_schema(schema))["outer"] == {"list": [{"a": 1}], "b": "B"}


def test_schema_defaults_are_not_shared_between_objects() -> None:
    spec = {"type": "object", "default": {"a": []}, "x-kubernetes-preserve-unknown-fields": True}
    schema = build_custom_resource_schema({"type": "object", "properties": {"spec": spec}})
    with_schema_defaults({}, schema)["spec"]["a"].append(1)
    assert with_schema_defaults({}, schema)["spec"] == {"a": []}


def test_nulls_count_where_they_are_values() -> None:
    spec = {"size": None, "text": None, "nothing": None, "free": {"a": None}, "list": [{"x": None}]}
    stripped = remove_meaningless_nulls(widget(copy.deepcopy(spec)), WIDGETS)
    assert stripped["spec"] == {"size": None, "nothing": None, "free": {"a": None}, "list": [{}]}
    assert with_schema_defaults(stripped, WIDGETS)["spec"]["size"] == 1
    assert with_schema_defaults(stripped, WIDGETS)["spec"]["nothing"] is None
