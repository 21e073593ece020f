"""Defaults that are hard to test with the rich objects on the real server, which cover each kind."""

from __future__ import annotations

from typing import Any

import pytest

from konverge._internal.apply import with_builtin_defaults
from konverge.kube import Object
from tests.apply.rich_objects import NAMES, load_rich_object


def container_of(**fields: Any) -> Object:
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", **fields}]}}
    found: Object = with_builtin_defaults(pod)["spec"]["containers"][0]
    return found


def service(**spec: Any) -> Object:
    found: Object = with_builtin_defaults({"apiVersion": "v1", "kind": "Service", "spec": spec})["spec"]
    return found


def deployment(**spec: Any) -> Object:
    found: Object = with_builtin_defaults({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec})["spec"]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_filled_once(name: str) -> None:
    filled = with_builtin_defaults(load_rich_object(name))
    assert with_builtin_defaults(filled) == filled


@pytest.mark.parametrize("name", NAMES)
def test_an_object_is_not_changed_by_filling_it(name: str) -> None:
    obj = load_rich_object(name)
    with_builtin_defaults(obj)
    assert obj == load_rich_object(name)


def test_an_object_of_an_unknown_kind_comes_back() -> None:
    obj = {"apiVersion": "a.test/v1", "kind": "A", "spec": {"x": None}}
    assert with_builtin_defaults(obj) == obj


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("host:5000/app", "Always"),
        ("host:5000/a/b:1.2", "IfNotPresent"),
        (f"app@sha256:{'0' * 64}", "IfNotPresent"),
        (f"app:latest@sha256:{'0' * 64}", "Always"),
        ("Not/An:Image", "IfNotPresent"),
        ("", "IfNotPresent"),
        (None, "IfNotPresent"),
    ],
)
def test_a_moving_image_is_always_pulled(image: str | None, policy: str) -> None:
    assert container_of(image=image)["imagePullPolicy"] == policy


def test_an_endless_image_name_does_no_harm() -> None:
    assert container_of(image="a-" * 100_000)["imagePullPolicy"] == "IfNotPresent"


def test_a_pod_requests_what_it_limits_and_a_template_does_not() -> None:
    limits = {"cpu": "2000m", "memory": "1Gi"}
    resources = {"limits": limits, "requests": {"memory": "1Mi"}}
    assert container_of(resources=resources)["resources"]["requests"] == {"cpu": "2", "memory": "1Mi"}
    template = {"spec": {"containers": [{"name": "a", "resources": resources}]}}
    filled = deployment(template=template)["template"]["spec"]["containers"][0]
    assert filled["resources"]["requests"] == {"memory": "1Mi"}


def test_ports_of_the_host_are_those_of_the_container() -> None:
    spec = {"hostNetwork": True, "containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}
    filled = with_builtin_defaults({"apiVersion": "v1", "kind": "Pod", "spec": spec})["spec"]
    assert filled["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_a_recreating_deployment_gets_no_rolling_numbers() -> None:
    assert deployment(strategy={"type": "Recreate"})["strategy"] == {"type": "Recreate"}


def test_zero_replicas_are_not_absent() -> None:
    assert deployment(replicas=0)["replicas"] == 0
    assert deployment(replicas=None)["replicas"] == 1


def test_a_load_balancer_has_more_defaults_than_an_inner_service() -> None:
    assert service(type="LoadBalancer") == {
        "type": "LoadBalancer",
        "sessionAffinity": "None",
        "externalTrafficPolicy": "Cluster",
        "internalTrafficPolicy": "Cluster",
        "allocateLoadBalancerNodePorts": True,
    }
    assert service(type="ExternalName", externalName="a.test") == {
        "type": "ExternalName",
        "externalName": "a.test",
        "sessionAffinity": "None",
    }


def test_unknown_fields_and_odd_values_are_left_for_validation() -> None:
    filled = with_builtin_defaults(
        {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": "some", "color": {"a": None}}}
    )
    assert filled["spec"]["containers"] == "some"
    assert filled["spec"]["color"] == {"a": None}


@pytest.mark.parametrize("odd", [None, "x", 1, [], [None], {"a": None}, [[]], {"": {}}])
@pytest.mark.parametrize("name", NAMES)
def test_odd_values_never_make_filling_fail(name: str, odd: Any) -> None:
    obj = load_rich_object(name)
    odd_fields = {field: odd for field in obj if field not in ("apiVersion", "kind", "metadata")}
    odd_specs = {field: dict.fromkeys(value, odd) for field, value in obj.items() if isinstance(value, dict)}
    assert with_builtin_defaults({**obj, **odd_fields})["kind"] == obj["kind"]
    assert with_builtin_defaults({**obj, **odd_specs})["kind"] == obj["kind"]
