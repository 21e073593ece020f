"""One table an editor: what was there, what is done, what is there then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from konverge.kube import Object
from konverge.mutation import (
    ConfigMapDataEditor,
    ContainerEditor,
    ContentEditor,
    DeploymentSpecEditor,
    Editor,
    ObjectMetaEditor,
    PodSpecEditor,
    SecretDataEditor,
    ServiceSpecEditor,
    StatefulSetSpecEditor,
)


def case(name: str, before: Object, edit: Callable[[Any], None], after: Object) -> Any:
    return pytest.param(before, edit, after, id=name)


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("label", {}, lambda e: e.ensure_label("a", "b"), {"labels": {"a": "b"}}),
        case("label over null", {"labels": None}, lambda e: e.ensure_label("a", "b"), {"labels": {"a": "b"}}),
        case("label replaced", {"labels": {"a": "x"}}, lambda e: e.ensure_label("a", "b"), {"labels": {"a": "b"}}),
        case("label removed", {"labels": {"a": "b", "c": "d"}}, lambda e: e.remove_label("a"), {"labels": {"c": "d"}}),
        case("last label removed", {"labels": {"a": "b"}}, lambda e: e.remove_label("a"), {}),
        case("no label to remove", {"name": "web"}, lambda e: e.remove_label("a"), {"name": "web"}),
        case("annotation", {}, lambda e: e.ensure_annotation("a", "b"), {"annotations": {"a": "b"}}),
        case("annotation removed", {"annotations": {"a": "b"}}, lambda e: e.remove_annotation("a"), {}),
    ],
)
def test_object_meta(before: Object, edit: Callable[[ObjectMetaEditor], None], after: Object) -> None:
    edit(ObjectMetaEditor(before))
    assert before == after


A = {"name": "A", "value": "1"}
B = {"name": "B", "value": "2"}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("variable appended", {"env": [A]}, lambda e: e.ensure_env_var(B), {"env": [A, B]}),
        case(
            "variable replaced in place",
            {"env": [A, B]},
            lambda e: e.ensure_env_var({"name": "A", "value": "3"}),
            {"env": [{"name": "A", "value": "3"}, B]},
        ),
        case("variables", {}, lambda e: e.ensure_env_vars([A, B]), {"env": [A, B]}),
        case("variable removed, all of the name", {"env": [A, B, A]}, lambda e: e.remove_env_var("A"), {"env": [B]}),
        case("variables removed", {"env": [A, B]}, lambda e: e.remove_env_vars(["A", "B", "C"]), {}),
        case("argument", {}, lambda e: e.ensure_arg("--a"), {"args": ["--a"]}),
        case("argument present", {"args": ["--a"]}, lambda e: e.ensure_arg("--a"), {"args": ["--a"]}),
        case(
            "argument of another value", {"args": ["-a=1"]}, lambda e: e.ensure_arg("-a=2"), {"args": ["-a=1", "-a=2"]}
        ),
        case("arguments", {"args": ["a"]}, lambda e: e.ensure_args(["a", "b"]), {"args": ["a", "b"]}),
        case("argument removed, all", {"args": ["a", "b", "a"]}, lambda e: e.remove_arg("a"), {"args": ["b"]}),
        case("arguments removed", {"args": ["a", "b"]}, lambda e: e.remove_args(["a", "b"]), {}),
        case(
            "limit",
            {"resources": {"requests": {"cpu": "1"}}},
            lambda e: e.set_resource_limit("cpu", "2"),
            {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}},
        ),
        case("request", {}, lambda e: e.set_resource_request("cpu", "1"), {"resources": {"requests": {"cpu": "1"}}}),
        case(
            "resources",
            {"resources": {"requests": {"cpu": "1"}}},
            lambda e: e.set(resources={"limits": {"cpu": "2"}}),
            {"resources": {"limits": {"cpu": "2"}}},
        ),
    ],
)
def test_container(before: Object, edit: Callable[[ContainerEditor], None], after: Object) -> None:
    edit(ContainerEditor(before))
    assert before == after


SPOT = {"key": "spot", "operator": "Exists"}
GPU = {"key": "gpu", "operator": "Exists"}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("service account", {}, lambda e: e.set(serviceAccountName="web"), {"serviceAccountName": "web"}),
        case(
            "volume replaced",
            {"volumes": [{"name": "tmp", "hostPath": {"path": "/tmp"}}]},
            lambda e: e.ensure_volume({"name": "tmp", "emptyDir": {}}),
            {"volumes": [{"name": "tmp", "emptyDir": {}}]},
        ),
        case("volume removed", {"volumes": [{"name": "tmp"}]}, lambda e: e.remove_volume("tmp"), {}),
        case("toleration", {"tolerations": [SPOT]}, lambda e: e.ensure_toleration(GPU), {"tolerations": [SPOT, GPU]}),
        case(
            "toleration present", {"tolerations": [SPOT]}, lambda e: e.ensure_toleration(SPOT), {"tolerations": [SPOT]}
        ),
        case(
            "toleration differs in one field",
            {"tolerations": [SPOT]},
            lambda e: e.ensure_toleration({**SPOT, "effect": "NoExecute"}),
            {"tolerations": [SPOT, {**SPOT, "effect": "NoExecute"}]},
        ),
        case(
            "tolerations removed",
            {"tolerations": [SPOT, GPU]},
            lambda e: e.remove_tolerations(lambda found: found["key"] == "spot"),
            {"tolerations": [GPU]},
        ),
        case("node selector", {}, lambda e: e.ensure_node_selector("disk", "ssd"), {"nodeSelector": {"disk": "ssd"}}),
        case("node selector removed", {"nodeSelector": {"disk": "ssd"}}, lambda e: e.remove_node_selector("disk"), {}),
        case("pull secret", {}, lambda e: e.ensure_image_pull_secret("reg"), {"imagePullSecrets": [{"name": "reg"}]}),
        case(
            "pull secret present",
            {"imagePullSecrets": [{"name": "reg"}]},
            lambda e: e.ensure_image_pull_secret("reg"),
            {"imagePullSecrets": [{"name": "reg"}]},
        ),
        case(
            "pull secret removed",
            {"imagePullSecrets": [{"name": "reg"}]},
            lambda e: e.remove_image_pull_secret("reg"),
            {},
        ),
    ],
)
def test_pod_spec(before: Object, edit: Callable[[PodSpecEditor], None], after: Object) -> None:
    edit(PodSpecEditor(before))
    assert before == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("replicas", {"replicas": 1}, lambda e: e.set(replicas=3), {"replicas": 3}),
    ],
)
def test_deployment_spec(before: Object, edit: Callable[[DeploymentSpecEditor], None], after: Object) -> None:
    edit(DeploymentSpecEditor(before))
    assert before == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("replicas", {}, lambda e: e.set(replicas=3), {"replicas": 3}),
    ],
)
def test_stateful_set_spec(before: Object, edit: Callable[[StatefulSetSpecEditor], None], after: Object) -> None:
    edit(StatefulSetSpecEditor(before))
    assert before == after


HTTP = {"name": "http", "port": 80}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("type", {}, lambda e: e.set(type="NodePort"), {"type": "NodePort"}),
        case(
            "port replaced by name",
            {"ports": [HTTP]},
            lambda e: e.ensure_port({"name": "http", "port": 8080}),
            {"ports": [{"name": "http", "port": 8080}]},
        ),
        case(
            "port of another name appended",
            {"ports": [HTTP]},
            lambda e: e.ensure_port({"name": "https", "port": 443}),
            {"ports": [HTTP, {"name": "https", "port": 443}]},
        ),
        case(
            "unnamed port: no protocol is TCP",
            {"ports": [{"port": 80, "targetPort": 1}]},
            lambda e: e.ensure_port({"port": 80, "protocol": "TCP", "targetPort": 2}),
            {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 2}]},
        ),
        case(
            "unnamed port of another protocol appended",
            {"ports": [{"port": 53}]},
            lambda e: e.ensure_port({"port": 53, "protocol": "UDP"}),
            {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]},
        ),
        case("port removed", {"ports": [HTTP]}, lambda e: e.remove_port("http"), {}),
        case("selector", {}, lambda e: e.ensure_selector("a", "b"), {"selector": {"a": "b"}}),
        case("selector removed", {"selector": {"a": "b"}}, lambda e: e.remove_selector("a"), {}),
    ],
)
def test_service_spec(before: Object, edit: Callable[[ServiceSpecEditor], None], after: Object) -> None:
    edit(ServiceSpecEditor(before))
    assert before == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("text", {}, lambda e: e.set("mode", "fast"), {"data": {"mode": "fast"}}),
        case("text removed", {"data": {"mode": "fast"}}, lambda e: e.remove("mode"), {}),
        case("binary", {}, lambda e: e.set_binary("logo", b"\x00\x01"), {"binaryData": {"logo": "AAE="}}),
        case("binary removed", {"binaryData": {"logo": "AAE="}}, lambda e: e.remove_binary("logo"), {}),
        case("raw", {}, lambda e: e.raw().update(a="b"), {"data": {"a": "b"}}),
        case("raw binary", {}, lambda e: e.raw_binary().update(a="AA=="), {"binaryData": {"a": "AA=="}}),
    ],
)
def test_config_map_data(before: Object, edit: Callable[[ConfigMapDataEditor], None], after: Object) -> None:
    edit(ConfigMapDataEditor(before))
    assert before == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("bytes are encoded", {}, lambda e: e.set("token", b"abc"), {"data": {"token": "YWJj"}}),
        case("removed", {"data": {"token": "YWJj"}}, lambda e: e.remove("token"), {}),
        case("string", {}, lambda e: e.set_string("token", "abc"), {"stringData": {"token": "abc"}}),
        case("string removed", {"stringData": {"token": "abc"}}, lambda e: e.remove_string("token"), {}),
        case("raw", {}, lambda e: e.raw().update(a="AA=="), {"data": {"a": "AA=="}}),
        case("raw string data", {}, lambda e: e.raw_string_data().update(a="b"), {"stringData": {"a": "b"}}),
    ],
)
def test_secret_data(before: Object, edit: Callable[[SecretDataEditor], None], after: Object) -> None:
    edit(SecretDataEditor(before))
    assert before == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("set", {}, lambda e: e.set_nested_field({"x": [1]}, "spec", "a"), {"spec": {"a": {"x": [1]}}}),
        case("removed", {"spec": {"a": 1, "b": 2}}, lambda e: e.remove_nested_field("spec", "a"), {"spec": {"b": 2}}),
        case("nothing to remove", {}, lambda e: e.remove_nested_field("spec", "a"), {}),
        case(
            "entry",
            {},
            lambda e: e.ensure_nested_string_map_entry("k", "v", "spec", "tags"),
            {"spec": {"tags": {"k": "v"}}},
        ),
        case(
            "entry removed",
            {"spec": {"tags": {"k": "v"}}},
            lambda e: e.remove_nested_string_map_entry("k", "spec", "tags"),
            {"spec": {}},
        ),
    ],
)
def test_content(before: Object, edit: Callable[[ContentEditor], None], after: Object) -> None:
    edit(ContentEditor(before))
    assert before == after


@pytest.mark.parametrize(
    "editor",
    [
        ContainerEditor,
        ContentEditor,
        DeploymentSpecEditor,
        ObjectMetaEditor,
        PodSpecEditor,
        ServiceSpecEditor,
        StatefulSetSpecEditor,
    ],
)
def test_raw_is_the_mapping_itself(editor: type[Editor]) -> None:
    fields: Object = {}
    editor(fields).raw()["anything"] = 1
    assert fields == {"anything": 1}


def test_an_editor_s_repr_shows_no_content() -> None:
    assert "hunter2" not in repr(SecretDataEditor({"stringData": {"password": "hunter2"}}))
