from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.apply import find_builtin_schema
from konverge.errors import ApiError, BadRequestError, ConflictError, InvalidError, NotFoundError
from konverge.kube import Object
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.json_patches import apply_json_patch, apply_merge_patch
from konverge_cluster._internal.embedded.strategic_merge import apply_strategic_merge_patch
from tests.cluster.embedded.objects import CONFIG_MAP, DEPLOYMENT, WEBAPP, config_map, deployment, key, webapp

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("abc", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=1), inner, max_size=3)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c", "d": "e"}}, {"a": {"b": "x", "d": None}}, {"a": {"b": "x"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        (["a"], {"a": "b"}, {"a": "b"}),
    ],
)
def test_a_merge_patch_merges_mappings_and_replaces_the_rest(target: Any, patch: Any, merged: Any) -> None:
    assert apply_merge_patch(target, patch) == merged


@given(target=JSON, patch=JSON)
def test_a_merge_patch_done_twice_is_done_once(target: Any, patch: Any) -> None:
    once = apply_merge_patch(target, patch)

    assert apply_merge_patch(once, patch) == once


@pytest.mark.parametrize(
    ("operation", "patched"),
    [
        ({"op": "add", "path": "/list/1", "value": "x"}, {"list": ["a", "x", "b"], "map": {"k": 1}}),
        ({"op": "add", "path": "/list/-", "value": "x"}, {"list": ["a", "b", "x"], "map": {"k": 1}}),
        ({"op": "add", "path": "/map/a~1b~0c", "value": 2}, {"list": ["a", "b"], "map": {"k": 1, "a/b~c": 2}}),
        ({"op": "replace", "path": "/list/0", "value": "x"}, {"list": ["x", "b"], "map": {"k": 1}}),
        ({"op": "replace", "path": "/map/new", "value": 2}, {"list": ["a", "b"], "map": {"k": 1, "new": 2}}),
        ({"op": "remove", "path": "/list/0"}, {"list": ["b"], "map": {"k": 1}}),
        ({"op": "move", "from": "/map/k", "path": "/moved"}, {"list": ["a", "b"], "map": {}, "moved": 1}),
        ({"op": "copy", "from": "/list", "path": "/map/l"}, {"list": ["a", "b"], "map": {"k": 1, "l": ["a", "b"]}}),
        ({"op": "test", "path": "/map/k", "value": 1}, {"list": ["a", "b"], "map": {"k": 1}}),
        ({"op": "test", "path": "/map/none", "value": None}, {"list": ["a", "b"], "map": {"k": 1}}),
        ({"op": "replace", "path": "", "value": 7}, 7),
    ],
)
def test_a_json_patch_operation(operation: dict[str, Any], patched: Any) -> None:
    target = {"list": ["a", "b"], "map": {"k": 1}}

    assert apply_json_patch(target, [operation]) == patched
    assert target == {"list": ["a", "b"], "map": {"k": 1}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/nowhere/at/all", "value": 1},
        {"op": "remove", "path": "/map/none"},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "/list/7", "value": 1},
        {"op": "add", "path": "/list/01x", "value": 1},
        {"op": "test", "path": "/map/k", "value": 2},
        {"op": "copy", "from": "/none", "path": "/x"},
        {"op": "paint", "path": "/map/k"},
        {"op": "add", "path": "map", "value": 1},
        {"op": "add", "path": "/map/k/deeper", "value": 1},
    ],
)
def test_a_json_patch_that_cannot_be_done_is_refused(operation: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        apply_json_patch({"list": ["a", "b"], "map": {"k": 1}}, [operation])

    assert (caught.value.code, caught.value.reason) == (422, "Invalid")


def test_a_json_patch_is_a_bounded_list_of_operations() -> None:
    with pytest.raises(BadRequestError):
        apply_json_patch({}, {"op": "add"})
    with pytest.raises(ApiError) as caught:
        apply_json_patch({}, [{"op": "add", "path": "/a", "value": 1}] * 10_001)
    assert caught.value.code == 413


def test_a_position_of_thousands_of_digits_is_no_position() -> None:
    with pytest.raises(ApiError, match="rejected our request"):
        apply_json_patch({"a": [1]}, [{"op": "remove", "path": f"/a/{'9' * 5000}"}])


def test_copies_of_copies_are_bounded() -> None:
    doubling = [{"op": "copy", "from": "", "path": "/a"}, {"op": "copy", "from": "", "path": "/b"}] * 40

    with pytest.raises(ApiError, match="rejected our request"):
        apply_json_patch({"text": "x" * 1000}, doubling)


def test_a_json_patch_cannot_nest_deeper_than_a_body() -> None:
    with pytest.raises(BadRequestError, match="nests deeper"):
        apply_json_patch({}, [{"op": "copy", "from": "", "path": "/a"}] * 200)


def containers(*listed: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": list(listed), **others}}}}


def list_container_names(obj: dict[str, Any]) -> list[str]:
    return [each["name"] for each in obj["spec"]["template"]["spec"]["containers"]]


def strategic(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    schema = find_builtin_schema(DEPLOYMENT)
    assert schema is not None
    return apply_strategic_merge_patch(target, patch, schema)


def test_a_strategic_merge_patch_merges_list_items_by_key() -> None:
    target = containers({"name": "app", "image": "a:1", "env": [{"name": "A", "value": "1"}]}, {"name": "side"})
    patch = containers({"name": "app", "env": [{"name": "B", "value": "2"}]})

    patched = strategic(target, patch)

    app, side = patched["spec"]["template"]["spec"]["containers"]
    assert (app["image"], side) == ("a:1", {"name": "side"})
    assert {each["name"] for each in app["env"]} == {"A", "B"}


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ("a b", "c", "c a b"),
        ("a b", "b c", "a b c"),
        ("b c", "a c d", "a b c d"),
    ],
)
def test_what_a_strategic_merge_patch_adds_keeps_its_place_in_the_patch(before: str, patch: str, after: str) -> None:
    target, change = (containers(*({"name": name} for name in text.split())) for text in (before, patch))

    assert list_container_names(strategic(target, change)) == after.split()


def test_a_strategic_merge_patch_may_order_delete_and_replace() -> None:
    target = containers({"name": "a"}, {"name": "b"}, {"name": "c"})
    order = {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}

    ordered = strategic(target, {"spec": {"template": {"spec": order}}})
    deleted = strategic(target, containers({"name": "b", "$patch": "delete"}))
    replaced = strategic(target, containers({"$patch": "replace"}, {"name": "only"}))

    assert list_container_names(ordered) == ["b", "c", "a"]
    assert list_container_names(deleted) == ["a", "c"]
    assert list_container_names(replaced) == ["only"]


def test_a_strategic_merge_patch_grows_and_shrinks_sets() -> None:
    target = {"metadata": {"finalizers": ["a/x", "a/y"]}}

    grown = strategic(target, {"metadata": {"finalizers": ["a/z"]}})
    shrunk = strategic(target, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/x"]}})

    assert sorted(grown["metadata"]["finalizers"]) == ["a/x", "a/y", "a/z"]
    assert shrunk["metadata"]["finalizers"] == ["a/y"]


def test_a_strategic_merge_patch_keeps_only_the_retained_keys() -> None:
    target = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}

    patched = strategic(target, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})

    assert patched["spec"]["strategy"] == {"type": "Recreate"}


def test_a_strategic_merge_patch_names_the_items_it_means() -> None:
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        strategic(containers({"name": "a"}), containers({"image": "a:2"}))


def test_a_patch_does_not_move_an_object(api: ApiServer) -> None:
    api.create(CONFIG_MAP, config_map())

    with pytest.raises(BadRequestError, match="does not match the name on the URL"):
        api.patch(CONFIG_MAP, key("settings"), {"metadata": {"name": "other"}})


def test_a_patch_may_be_guarded_by_a_resource_version(api: ApiServer) -> None:
    api.create(CONFIG_MAP, config_map())

    with pytest.raises(ConflictError):
        api.patch(CONFIG_MAP, key("settings"), {"metadata": {"resourceVersion": "1"}, "data": {"a": "b"}})


def test_a_patch_that_makes_no_object_of_the_kind_is_refused_without_showing_it(api: ApiServer) -> None:
    api.create(DEPLOYMENT, deployment())

    with pytest.raises(InvalidError, match="cannot unmarshal string into Go struct field") as caught:
        api.patch(DEPLOYMENT, key("web"), {"spec": {"replicas": "three"}})
    assert "konverge.test/app" not in caught.value.message


@pytest.mark.parametrize("patch", [{"metadata": None}, {"metadata": {"name": None}}])
def test_a_patch_does_not_take_the_name_away(api: ApiServer, patch: dict[str, Any]) -> None:
    api.create(CONFIG_MAP, config_map())

    with pytest.raises(BadRequestError, match="name must be provided"):
        api.patch(CONFIG_MAP, key("settings"), patch)


@pytest.mark.parametrize("patch", [{"kind": "Pod"}, {"apiVersion": "v2"}, {"kind": 5}])
def test_a_patch_does_not_change_the_kind(api: ApiServer, patch: dict[str, Any]) -> None:
    api.create(CONFIG_MAP, config_map())

    with pytest.raises(InvalidError, match="stays"):
        api.patch(CONFIG_MAP, key("settings"), patch)
    assert api.patch(CONFIG_MAP, key("settings"), {"kind": None})["kind"] == "ConfigMap"


@pytest.mark.parametrize("patch", [{"kind": "Pod"}, {"apiVersion": "demo.konverge.dev/v9"}])
def test_a_patch_does_not_change_the_kind_of_a_custom_resource(
    api: ApiServer, webapps: Object, patch: dict[str, Any]
) -> None:
    api.create(WEBAPP, webapp())

    with pytest.raises(InvalidError, match="must be"):
        api.patch(WEBAPP, key("shop"), patch)


def test_a_strategic_merge_patch_says_nothing_of_the_kind(api: ApiServer) -> None:
    api.create(CONFIG_MAP, config_map())

    patched = api.patch(CONFIG_MAP, key("settings"), {"kind": "Pod", "data": {"a": "1"}}, patch_type="strategic")
    assert (patched["kind"], patched["data"]) == ("ConfigMap", {"a": "1"})


def test_a_patch_of_nothing_is_not_found(api: ApiServer) -> None:
    with pytest.raises(NotFoundError):
        api.patch(CONFIG_MAP, key("settings"), {"data": {}})
