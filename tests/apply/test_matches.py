from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from konverge.apply import (
    HIDDEN,
    Difference,
    Schema,
    builtin_schema,
    custom_resource_schema,
    differences,
    server_side_apply,
    stored_form,
    track_update,
)
from konverge.kube import GroupVersionKind, Object
from tests.apply.rich_objects import NAMES, rich
from tests.apply.widgets import WIDGET_SCHEMA, widget

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WIDGETS = custom_resource_schema(WIDGET_SCHEMA)


def schema_of(obj: Object) -> Schema:
    return builtin_schema(GroupVersionKind.of(obj)) or WIDGETS


def applied(obj: Object, live: Object | None = None, *, manager: str = "us") -> Object:
    return server_side_apply(live, obj, schema_of(obj), manager=manager, force=True, now=NOW)


def updated(live: Object, change: Callable[[Object], Any]) -> Object:
    new = copy.deepcopy(live)
    change(new)
    schema = schema_of(live)
    return track_update(live, stored_form(new, schema), schema, manager="somebody", now=NOW)


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


def found(desired: Object, live: Object, schema: Schema | None = None) -> list[tuple[str, str]]:
    return [(each.kind, each.path) for each in differences(desired, live, "us", schema)]


@pytest.mark.parametrize("name", NAMES)
def test_after_an_apply_there_is_no_difference(name: str) -> None:
    assert differences(rich(name), applied(rich(name)), "us") == ()


def test_what_others_own_does_not_count() -> None:
    live = applied(deployment())
    sidecar = with_containers({"name": "sidecar", "image": "konverge.test/other:1"})
    sidecar["spec"].pop("selector")
    live = applied(sidecar, live, manager="them")
    live = updated(live, lambda obj: obj["metadata"]["labels"].update(team="a"))
    live["status"] = {"replicas": 1}
    assert differences(deployment(), live, "us") == ()


def test_an_object_that_we_never_applied_lacks_everything_we_want() -> None:
    assert found(deployment(), applied(deployment(), manager="them")) == [
        ("missing", ".metadata.labels"),
        ("missing", ".spec"),
    ]


def test_an_object_of_which_we_want_nothing_has_no_difference() -> None:
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    assert differences(namespace, stored_form(namespace, schema_of(namespace)), "us") == ()


def test_a_value_that_somebody_changed_is_ours_no_more() -> None:
    live = updated(applied(deployment(replicas=1)), lambda obj: obj["spec"].update(replicas=3))
    assert differences(deployment(replicas=1), live, "us") == (
        Difference(".spec.replicas", "missing", desired=1, live=3),
    )


def test_a_value_that_we_want_to_change_differs() -> None:
    live = applied(deployment(replicas=1))
    assert differences(deployment(replicas=2), live, "us") == (
        Difference(".spec.replicas", "changed", desired=2, live=1),
    )


def test_a_field_given_up_is_extra() -> None:
    live = applied(deployment(replicas=1))
    assert differences(deployment(), live, "us") == (Difference(".spec.replicas", "extra", live=1),)


def test_a_new_field_is_missing_even_if_its_value_is_there() -> None:
    live = applied(deployment())
    assert found(deployment(replicas=1), live) == [("missing", ".spec.replicas")]


def test_items_are_told_by_their_keys() -> None:
    live = applied(with_containers(container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])))
    wanted = with_containers(container(env=[{"name": "A", "value": "x"}, {"name": "C", "value": "3"}]))
    path = '.spec.template.spec.containers[name="app"].env'
    assert found(wanted, live) == [
        ("changed", f'{path}[name="A"].value'),
        ("missing", f'{path}[name="C"]'),
        ("extra", f'{path}[name="B"]'),
    ]


def test_an_item_that_is_gone_from_the_live_list_is_missing() -> None:
    live = applied(with_containers(container(env=[{"name": "A", "value": "1"}])))
    live = updated(live, lambda obj: obj["spec"]["template"]["spec"]["containers"][0].pop("env"))
    wanted = with_containers(container(env=[{"name": "A", "value": "1"}]))
    assert found(wanted, live) == [("missing", '.spec.template.spec.containers[name="app"].env')]


def test_a_key_field_that_is_left_out_has_its_default() -> None:
    ports = [{"containerPort": 80, "protocol": "UDP", "name": "quic"}, {"containerPort": 80, "name": "http"}]
    live = applied(with_containers(container(ports=ports)))
    assert differences(with_containers(container(ports=ports)), live, "us") == ()


def test_the_order_of_items_counts() -> None:
    one, two = container(), {"name": "two", "image": "konverge.test/app:2"}
    live = applied(with_containers(one, two))
    assert found(with_containers(two, one), live) == [("changed", ".spec.template.spec.containers")]


def test_atomic_values_are_compared_as_a_whole() -> None:
    live = applied(with_containers(container(args=["a", "b"])))
    assert found(with_containers(container(args=["b", "a"])), live) == [
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
    live = applied(with_containers(container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})))
    del spelled["resources"]["limits"]["memory"]
    wanted = copy.deepcopy(spelled)
    wanted["resources"]["limits"]["memory"] = "1Gi"
    assert differences(with_containers(container(**wanted)), live, "us") == ()


def test_another_quantity_differs() -> None:
    live = applied(with_containers(container(resources={"limits": {"cpu": "1"}})))
    wanted = with_containers(container(resources={"limits": {"cpu": "1001m"}}))
    assert found(wanted, live) == [("changed", '.spec.template.spec.containers[name="app"].resources.limits.cpu')]


def test_a_number_is_not_its_text() -> None:
    wanted = with_containers(container(readinessProbe={"httpGet": {"port": 80}}))
    changed = with_containers(container(readinessProbe={"httpGet": {"port": "80"}}))
    assert len(differences(changed, applied(wanted), "us")) == 1


@pytest.mark.parametrize("field", [{"paused": False}, {"minReadySeconds": 0}, {"strategy": {}}, {"replicas": None}])
def test_a_zero_that_the_server_drops_is_no_difference(field: Object) -> None:
    assert differences(deployment(**field), applied(deployment(**field)), "us") == ()


def test_a_zero_in_place_of_a_value_of_ours_differs() -> None:
    assert found(deployment(paused=False), applied(deployment(paused=True))) == [("changed", ".spec.paused")]
    assert found(deployment(replicas=0), applied(deployment(replicas=1))) == [("changed", ".spec.replicas")]


def test_an_empty_list_that_merges_by_item_asks_for_nothing() -> None:
    wanted = with_containers(container(), imagePullSecrets=[])
    live = updated(
        applied(wanted), lambda obj: obj["spec"]["template"]["spec"].update(imagePullSecrets=[{"name": "theirs"}])
    )
    assert differences(wanted, live, "us") == ()


def test_an_empty_list_that_is_stored_as_null_is_no_difference() -> None:
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r"},
        "rules": [],
    }
    assert differences(role, {**applied(role), "rules": None}, "us") == ()
    assert differences(role, {**applied(role), "rules": [{"verbs": ["get"]}]}, "us") != ()


def test_what_a_service_is_given_for_a_zero_is_no_difference() -> None:
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "clusterIP": "", "ports": [{"port": 80, "nodePort": 0}]},
    }
    live = applied(service)
    live["spec"]["clusterIP"] = "10.0.0.9"
    live["spec"]["ports"][0]["nodePort"] = 30000
    assert differences(service, live, "us") == ()
    service["spec"]["ports"][0]["nodePort"] = 30001
    assert [found.path for found in differences(service, live, "us")] == [
        '.spec.ports[port=80,protocol="TCP"].nodePort'
    ]


def test_what_belongs_to_the_server_does_not_count() -> None:
    live = applied(deployment())
    wanted = deployment()
    wanted["metadata"] |= {"uid": "x", "resourceVersion": "1", "generation": 3, "creationTimestamp": None}
    wanted["status"] = {"replicas": 7}
    assert differences(wanted, live, "us") == ()


def test_an_entry_of_another_version_proves_nothing() -> None:
    live = applied(deployment())
    live["metadata"]["managedFields"][0]["apiVersion"] = "apps/v1beta1"
    assert found(deployment(), live) == [("missing", ".metadata.labels"), ("missing", ".spec")]


def test_an_entry_for_a_subresource_is_another_one() -> None:
    live = applied(deployment())
    live["metadata"]["managedFields"][0]["subresource"] = "status"
    assert differences(deployment(), live, "us") != ()


class TestSecrets:
    def secret(self, **fields: Any) -> Object:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **fields}

    def test_plain_text_counts_as_data(self) -> None:
        live = applied(self.secret(stringData={"a": "x"}))
        assert differences(self.secret(stringData={"a": "x"}), live, "us") == ()
        assert differences(self.secret(data={"a": "eA=="}), live, "us") == ()

    def test_a_changed_value_is_found_and_never_shown(self) -> None:
        live = applied(self.secret(stringData={"a": "before"}))
        (found,) = differences(self.secret(stringData={"a": "after"}), live, "us")
        assert (found.path, found.kind, found.desired, found.live) == (".data.a", "changed", HIDDEN, HIDDEN)

    def test_nothing_of_it_is_shown_when_everything_is_missing(self) -> None:
        live = applied(self.secret(data={"a": "eA=="}), manager="them")
        (found,) = differences(self.secret(data={"a": "eA=="}), live, "us")
        assert (found.path, found.desired, found.live) == (".data", HIDDEN, HIDDEN)

    def test_a_difference_does_not_print_its_values(self) -> None:
        assert repr(Difference(".a", "changed", desired="one", live="two")) == "Difference(path='.a', kind='changed')"


class TestPods:
    def pod(self, *tolerations: Object) -> Object:
        spec = {"containers": [container()], "tolerations": list(tolerations)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}

    def admitted(self, *tolerations: Object) -> Object:
        live = applied(self.pod(*tolerations))
        live["spec"]["tolerations"] = [*tolerations, self.added("not-ready"), self.added("unreachable")]
        return live

    def added(self, why: str) -> Object:
        key = f"node.kubernetes.io/{why}"
        return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}

    def test_tolerations_that_admission_adds_do_not_count(self) -> None:
        ours = {"key": "a", "operator": "Exists"}
        assert differences(self.pod(ours), self.admitted(ours), "us") == ()

    def test_other_tolerations_count(self) -> None:
        assert len(differences(self.pod({"key": "b", "operator": "Exists"}), self.admitted({"key": "a"}), "us")) == 1


class TestCustomResources:
    def test_after_an_apply_there_is_no_difference_with_the_schema(self) -> None:
        wanted = widget({"ports": [{"port": 1}], "list": [{"x": 1}], "atomic": {"a": "1"}, "size": None}, name="w")
        assert differences(wanted, applied(wanted), "us", WIDGETS) == ()

    def test_after_an_apply_there_is_hardly_a_difference_without_it(self) -> None:
        wanted = widget({"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}], "set": ["a"], "map": {"a": "b"}})
        assert differences(wanted, applied(wanted), "us") == ()

    def test_without_it_defaults_in_a_whole_value_are_a_difference(self) -> None:
        wanted = widget({"list": [{"x": 1}]})
        assert found(wanted, applied(wanted)) == [("changed", ".spec.list")]

    def test_zeros_are_values(self) -> None:
        live = applied(widget({"free": {"a": 0, "b": "", "c": None}}))
        assert differences(widget({"free": {"a": 0, "b": "", "c": None}}), live, "us", WIDGETS) == ()
        del live["spec"]["free"]["a"]
        assert found(widget({"free": {"a": 0, "b": "", "c": None}}), live, WIDGETS) == [("changed", ".spec.free.a")]

    def test_metadata_is_of_the_servers_own_type(self) -> None:
        wanted = widget({}, labels={}, annotations=None)
        live = applied(wanted)
        assert "labels" not in live["metadata"]
        assert differences(wanted, live, "us", WIDGETS) == ()

    def test_the_order_of_a_set_counts(self) -> None:
        live = applied(widget({"set": ["a", "b"]}))
        assert found(widget({"set": ["b", "a"]}), live, WIDGETS) == [("changed", ".spec.set")]

    def test_members_of_a_set_are_told_apart(self) -> None:
        live = applied(widget({"set": ["a", "b"]}))
        assert found(widget({"set": ["a", "c"]}), live, WIDGETS) == [
            ("missing", '.spec.set[="c"]'),
            ("extra", '.spec.set[="b"]'),
        ]

    def test_true_is_not_one(self) -> None:
        live = applied(widget({"free": {"a": True}}))
        assert found(widget({"free": {"a": 1}}), live, WIDGETS) == [("changed", ".spec.free.a")]

    @pytest.mark.parametrize("odd", [1, "text", [1], {"x": 1}, None, [{"port": {}}], [[]]])
    def test_a_value_of_the_wrong_type_is_a_difference_and_no_failure(self, odd: Any) -> None:
        live = applied(widget({"ports": [{"port": 1}], "set": ["a"], "map": {"a": "b"}}))
        wanted = widget({"ports": odd, "set": odd, "map": odd})
        assert differences(wanted, live, "us", WIDGETS) != ()


@pytest.mark.parametrize("managed_fields", [None, [], "x", [None], [{}], [{"manager": "us", "operation": "Apply"}]])
def test_an_entry_that_cannot_be_read_counts_as_none(managed_fields: Any) -> None:
    live = applied(deployment())
    live["metadata"]["managedFields"] = managed_fields
    assert found(deployment(), live) == [("missing", ".metadata.labels"), ("missing", ".spec")]


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
    live = applied(deployment())
    live["metadata"]["managedFields"][0]["fieldsV1"] = fields
    assert differences(deployment(), live, "us") != ()


@pytest.mark.parametrize("odd", [1, "x", [1], [{"name": []}], {"a": 1}, None])
def test_an_odd_live_value_is_a_difference_and_no_failure(odd: Any) -> None:
    live = applied(deployment())
    live["spec"]["template"]["spec"]["containers"] = odd
    assert differences(deployment(), live, "us") != ()
    live["spec"] = odd
    assert differences(deployment(), live, "us") != ()
