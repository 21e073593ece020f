from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from konverge._internal.apply import (
    HIDDEN,
    Difference,
    Schema,
    build_custom_resource_schema,
    find_builtin_schema,
    find_drift,
    server_side_apply,
    to_stored_form,
    track_update,
)
from konverge.kube import GroupVersionKind, Object
from tests.apply.rich_objects import NAMES, load_rich_object
from tests.apply.widgets import WIDGET_SCHEMA, widget

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WIDGETS = build_custom_resource_schema(WIDGET_SCHEMA)


def schema_of(obj: Object) -> Schema:
    return find_builtin_schema(GroupVersionKind.of(obj)) or WIDGETS


def apply_to_object(obj: Object, live: Object | None = None, *, manager: str = "us") -> Object:
    return server_side_apply(live, obj, schema_of(obj), manager=manager, force=True, now=NOW)


def update_object(live: Object, change: Callable[[Object], Any]) -> Object:
    new = copy.deepcopy(live)
    change(new)
    schema = schema_of(live)
    return track_update(live, to_stored_form(new, schema), schema, manager="another", now=NOW)


def deployment(**spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container()]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


def container(**fields: Any) -> Object:
    return {"name": "app", "image": "konverge.test/app:1", **fields}


def with_containers(*containers: Object, **pod: Any) -> Object:
    made = deployment()
    made["spec"]["template"]["spec"] = {"containers": list(containers), **pod}
    return made


def find_differences(desired: Object, live: Object, schema: Schema | None = None) -> list[tuple[str, str]]:
    return [(each.kind, each.path) for each in find_drift(desired, live, "us", schema)]


@pytest.mark.parametrize("name", NAMES)
def test_after_an_apply_there_is_no_difference(name: str) -> None:
    assert find_drift(load_rich_object(name), apply_to_object(load_rich_object(name)), "us") == ()


def test_what_others_own_does_not_count() -> None:
    live = apply_to_object(deployment())
    sidecar = with_containers({"name": "sidecar", "image": "konverge.test/other:1"})
    sidecar["spec"].pop("selector")
    live = apply_to_object(sidecar, live, manager="them")
    live = update_object(live, lambda obj: obj["metadata"]["labels"].update(team="a"))
    live["status"] = {"replicas": 1}
    assert find_drift(deployment(), live, "us") == ()


def test_an_object_that_we_never_applied_lacks_everything_we_want() -> None:
    assert find_differences(deployment(), apply_to_object(deployment(), manager="them")) == [
        ("missing", ".metadata.labels"),
        ("missing", ".spec"),
    ]


def test_an_object_of_which_we_want_nothing_has_no_difference() -> None:
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    assert find_drift(namespace, to_stored_form(namespace, schema_of(namespace)), "us") == ()


def test_a_value_that_somebody_changed_is_ours_no_more() -> None:
    live = update_object(apply_to_object(deployment(replicas=1)), lambda obj: obj["spec"].update(replicas=3))
    assert find_drift(deployment(replicas=1), live, "us") == (
        Difference(".spec.replicas", "missing", desired=1, live=3),
    )


def test_a_value_that_we_want_to_change_differs() -> None:
    live = apply_to_object(deployment(replicas=1))
    assert find_drift(deployment(replicas=2), live, "us") == (
        Difference(".spec.replicas", "changed", desired=2, live=1),
    )


def test_a_field_given_up_is_extra() -> None:
    live = apply_to_object(deployment(replicas=1))
    assert find_drift(deployment(), live, "us") == (Difference(".spec.replicas", "extra", live=1),)


def test_a_new_field_is_missing_even_if_its_value_is_there() -> None:
    live = apply_to_object(deployment())
    assert find_differences(deployment(replicas=1), live) == [("missing", ".spec.replicas")]


def test_items_are_told_by_their_keys() -> None:
    live = apply_to_object(with_containers(container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])))
    wanted = with_containers(container(env=[{"name": "A", "value": "x"}, {"name": "C", "value": "3"}]))
    path = '.spec.template.spec.containers[name="app"].env'
    assert find_differences(wanted, live) == [
        ("changed", f'{path}[name="A"].value'),
        ("missing", f'{path}[name="C"]'),
        ("extra", f'{path}[name="B"]'),
    ]


def test_an_item_that_is_gone_from_the_live_list_is_missing() -> None:
    live = apply_to_object(with_containers(container(env=[{"name": "A", "value": "1"}])))
    live = update_object(live, lambda obj: obj["spec"]["template"]["spec"]["containers"][0].pop("env"))
    wanted = with_containers(container(env=[{"name": "A", "value": "1"}]))
    assert find_differences(wanted, live) == [("missing", '.spec.template.spec.containers[name="app"].env')]


def test_a_key_field_that_is_left_out_has_its_default() -> None:
    ports = [{"containerPort": 80, "protocol": "UDP", "name": "quic"}, {"containerPort": 80, "name": "http"}]
    live = apply_to_object(with_containers(container(ports=ports)))
    assert find_drift(with_containers(container(ports=ports)), live, "us") == ()


def test_the_order_of_items_counts() -> None:
    one, two = container(), {"name": "two", "image": "konverge.test/app:2"}
    live = apply_to_object(with_containers(one, two))
    assert find_differences(with_containers(two, one), live) == [("changed", ".spec.template.spec.containers")]


def test_atomic_values_are_compared_as_a_whole() -> None:
    live = apply_to_object(with_containers(container(args=["a", "b"])))
    assert find_differences(with_containers(container(args=["b", "a"])), live) == [
        ("changed", '.spec.template.spec.containers[name="app"].args')
    ]


@pytest.mark.parametrize(
    "spelled",
    [
        {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
        {"resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}},
        {"resources": {"limits": {"cpu": 1, "memory": "1024Mi"}}},
        {"resources": {"limits": {"cpu": 1.0, "memory": 1073741824}}},
    ],
)
def test_a_quantity_may_be_spelled_in_any_way(spelled: Object) -> None:
    live = apply_to_object(with_containers(container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})))
    del spelled["resources"]["limits"]["memory"]
    wanted = copy.deepcopy(spelled)
    wanted["resources"]["limits"]["memory"] = "1Gi"
    assert find_drift(with_containers(container(**wanted)), live, "us") == ()


def test_another_quantity_differs() -> None:
    live = apply_to_object(with_containers(container(resources={"limits": {"cpu": "1"}})))
    wanted = with_containers(container(resources={"limits": {"cpu": "1001m"}}))
    assert find_differences(wanted, live) == [
        ("changed", '.spec.template.spec.containers[name="app"].resources.limits.cpu')
    ]


def test_a_number_is_not_its_text() -> None:
    wanted = with_containers(container(readinessProbe={"httpGet": {"port": 80}}))
    changed = with_containers(container(readinessProbe={"httpGet": {"port": "80"}}))
    assert len(find_drift(changed, apply_to_object(wanted), "us")) == 1


@pytest.mark.parametrize("field", [{"paused": False}, {"minReadySeconds": 0}, {"strategy": {}}, {"replicas": None}])
def test_a_zero_that_the_server_drops_is_no_difference(field: Object) -> None:
    assert find_drift(deployment(**field), apply_to_object(deployment(**field)), "us") == ()


def test_a_zero_in_place_of_a_value_of_ours_differs() -> None:
    assert find_differences(deployment(paused=False), apply_to_object(deployment(paused=True))) == [
        ("changed", ".spec.paused")
    ]
    assert find_differences(deployment(replicas=0), apply_to_object(deployment(replicas=1))) == [
        ("changed", ".spec.replicas")
    ]


def test_an_empty_list_that_merges_by_item_asks_for_nothing() -> None:
    wanted = with_containers(container(), imagePullSecrets=[])
    live = update_object(
        apply_to_object(wanted),
        lambda obj: obj["spec"]["template"]["spec"].update(imagePullSecrets=[{"name": "theirs"}]),
    )
    assert find_drift(wanted, live, "us") == ()


def test_an_empty_list_that_is_stored_as_null_is_no_difference() -> None:
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r"},
        "rules": [],
    }
    assert find_drift(role, {**apply_to_object(role), "rules": None}, "us") == ()
    assert find_drift(role, {**apply_to_object(role), "rules": [{"verbs": ["get"]}]}, "us") != ()


def test_what_a_service_is_given_for_a_zero_is_no_difference() -> None:
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "clusterIP": "", "ports": [{"port": 80, "nodePort": 0}]},
    }
    live = apply_to_object(service)
    live["spec"]["clusterIP"] = "10.0.0.9"
    live["spec"]["ports"][0]["nodePort"] = 30000
    assert find_drift(service, live, "us") == ()
    service["spec"]["ports"][0]["nodePort"] = 30001
    assert [found.path for found in find_drift(service, live, "us")] == ['.spec.ports[port=80,protocol="TCP"].nodePort']


def test_what_belongs_to_the_server_does_not_count() -> None:
    live = apply_to_object(deployment())
    wanted = deployment()
    wanted["metadata"] |= {"uid": "x", "resourceVersion": "1", "generation": 3, "creationTimestamp": None}
    wanted["status"] = {"replicas": 7}
    assert find_drift(wanted, live, "us") == ()


def test_an_entry_of_another_version_proves_nothing() -> None:
    live = apply_to_object(deployment())
    live["metadata"]["managedFields"][0]["apiVersion"] = "apps/v1beta1"
    assert find_differences(deployment(), live) == [("missing", ".metadata.labels"), ("missing", ".spec")]


def test_an_entry_for_a_subresource_is_another_one() -> None:
    live = apply_to_object(deployment())
    live["metadata"]["managedFields"][0]["subresource"] = "status"
    assert find_drift(deployment(), live, "us") != ()


class TestSecrets:
    def secret(self, **fields: Any) -> Object:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **fields}

    def test_plain_text_counts_as_data(self) -> None:
        live = apply_to_object(self.secret(stringData={"a": "x"}))
        assert find_drift(self.secret(stringData={"a": "x"}), live, "us") == ()
        assert find_drift(self.secret(data={"a": "eA=="}), live, "us") == ()

    def test_a_changed_value_is_found_and_never_shown(self) -> None:
        live = apply_to_object(self.secret(stringData={"a": "before"}))
        (found,) = find_drift(self.secret(stringData={"a": "after"}), live, "us")
        assert (found.path, found.kind, found.desired, found.live) == (".data.a", "changed", HIDDEN, HIDDEN)

    def test_nothing_of_it_is_shown_when_everything_is_missing(self) -> None:
        live = apply_to_object(self.secret(data={"a": "eA=="}), manager="them")
        (found,) = find_drift(self.secret(data={"a": "eA=="}), live, "us")
        assert (found.path, found.desired, found.live) == (".data", HIDDEN, HIDDEN)

    def test_a_difference_does_not_print_its_values(self) -> None:
        assert repr(Difference(".a", "changed", desired="one", live="two")) == "Difference(path='.a', kind='changed')"


class TestPods:
    def pod(self, *tolerations: Object) -> Object:
        spec = {"containers": [container()], "tolerations": list(tolerations)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}

    def admit_and_apply(self, *tolerations: Object) -> Object:
        live = apply_to_object(self.pod(*tolerations))
        live["spec"]["tolerations"] = [
            *tolerations,
            self.build_added_toleration("not-ready"),
            self.build_added_toleration("unreachable"),
        ]
        return live

    def build_added_toleration(self, why: str) -> Object:
        key = f"node.kubernetes.io/{why}"
        return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}

    def test_tolerations_that_admission_adds_do_not_count(self) -> None:
        ours = {"key": "a", "operator": "Exists"}
        assert find_drift(self.pod(ours), self.admit_and_apply(ours), "us") == ()

    def test_other_tolerations_count(self) -> None:
        assert (
            len(find_drift(self.pod({"key": "b", "operator": "Exists"}), self.admit_and_apply({"key": "a"}), "us")) == 1
        )


class TestCustomResources:
    def test_after_an_apply_there_is_no_difference_with_the_schema(self) -> None:
        wanted = widget({"ports": [{"port": 1}], "list": [{"x": 1}], "atomic": {"a": "1"}, "size": None}, name="w")
        assert find_drift(wanted, apply_to_object(wanted), "us", WIDGETS) == ()

    def test_after_an_apply_there_is_hardly_a_difference_without_it(self) -> None:
        wanted = widget({"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}], "set": ["a"], "map": {"a": "b"}})
        assert find_drift(wanted, apply_to_object(wanted), "us") == ()

    def test_without_it_defaults_in_a_whole_value_are_a_difference(self) -> None:
        wanted = widget({"list": [{"x": 1}]})
        assert find_differences(wanted, apply_to_object(wanted)) == [("changed", ".spec.list")]

    def test_zeros_are_values(self) -> None:
        live = apply_to_object(widget({"free": {"a": 0, "b": "", "c": None}}))
        assert find_drift(widget({"free": {"a": 0, "b": "", "c": None}}), live, "us", WIDGETS) == ()
        del live["spec"]["free"]["a"]
        assert find_differences(widget({"free": {"a": 0, "b": "", "c": None}}), live, WIDGETS) == [
            ("changed", ".spec.free.a")
        ]

    def test_metadata_is_of_the_servers_own_type(self) -> None:
        wanted = widget({}, labels={}, annotations=None)
        live = apply_to_object(wanted)
        assert "labels" not in live["metadata"]
        assert find_drift(wanted, live, "us", WIDGETS) == ()

    def test_the_order_of_a_set_counts(self) -> None:
        live = apply_to_object(widget({"set": ["a", "b"]}))
        assert find_differences(widget({"set": ["b", "a"]}), live, WIDGETS) == [("changed", ".spec.set")]

    def test_members_of_a_set_are_told_apart(self) -> None:
        live = apply_to_object(widget({"set": ["a", "b"]}))
        assert find_differences(widget({"set": ["a", "c"]}), live, WIDGETS) == [
            ("missing", '.spec.set[="c"]'),
            ("extra", '.spec.set[="b"]'),
        ]

    def test_true_is_not_one(self) -> None:
        live = apply_to_object(widget({"free": {"a": True}}))
        assert find_differences(widget({"free": {"a": 1}}), live, WIDGETS) == [("changed", ".spec.free.a")]

    @pytest.mark.parametrize("odd", [1, "text", [1], {"x": 1}, None, [{"port": {}}], [[]]])
    def test_a_value_of_the_wrong_type_is_a_difference_and_no_failure(self, odd: Any) -> None:
        live = apply_to_object(widget({"ports": [{"port": 1}], "set": ["a"], "map": {"a": "b"}}))
        wanted = widget({"ports": odd, "set": odd, "map": odd})
        assert find_drift(wanted, live, "us", WIDGETS) != ()


@pytest.mark.parametrize("managed_fields", [None, [], "x", [None], [{}], [{"manager": "us", "operation": "Apply"}]])
def test_an_entry_that_cannot_be_read_counts_as_none(managed_fields: Any) -> None:
    live = apply_to_object(deployment())
    live["metadata"]["managedFields"] = managed_fields
    assert find_differences(deployment(), live) == [("missing", ".metadata.labels"), ("missing", ".spec")]


@pytest.mark.parametrize(
    "fields",
    [
        {"f:metadata": 1, "f:spec": None},
        {"f:spec": {"f:template": []}},
        {"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{": {}, "k:[]": {}, 'k:{"name":{}}': {}}}}}},
        {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': "x", "x": {}}}}}},
    ],
)
def test_an_entry_that_makes_no_sense_is_a_difference_and_no_failure(fields: Any) -> None:
    live = apply_to_object(deployment())
    live["metadata"]["managedFields"][0]["fieldsV1"] = fields
    assert find_drift(deployment(), live, "us") != ()


@pytest.mark.parametrize("odd", [1, "x", [1], [{"name": []}], {"a": 1}, None])
def test_an_odd_live_value_is_a_difference_and_no_failure(odd: Any) -> None:
    live = apply_to_object(deployment())
    live["spec"]["template"]["spec"]["containers"] = odd
    assert find_drift(deployment(), live, "us") != ()
    live["spec"] = odd
    assert find_drift(deployment(), live, "us") != ()
