"""The same writes on the real API server and through this package; `ServerComparison` compares the responses."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from konverge._internal.apply import build_custom_resource_schema
from konverge.errors import ApiError, ConflictError
from konverge.kube import Object
from tests.apply.conftest import ComparisonServer
from tests.apply.server_comparison import ServerComparison
from tests.apply.widget_strategies import widgets as written_widgets
from tests.apply.widgets import WIDGET_SCHEMA, widget

pytestmark = pytest.mark.real


def config_map(data: dict[str, Any] | None, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def secret(**fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", **fields}


def service(ports: list[Object], **spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Service", "spec": {"ports": ports, **spec}}


def container(name: str = "app", **fields: Any) -> Object:
    return {"name": name, "image": "konverge.test/app:1", **fields}


def deployment(*containers: Object, pod: Object | None = None, **spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**(pod or {}), "containers": list(containers)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


def partial_deployment(*containers: Object, **metadata: Any) -> Object:
    """Build the object of a second manager: only its own containers."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"template": {"spec": {"containers": list(containers)}}},
    }


FULL_WIDGET: Object = {
    "map": {"a": "x"},
    "set": ["a", "b"],
    "inner": {"a": "1"},
    "atomic": {"a": "1"},
    "ports": [{"port": 80}],
    "list": [{"x": 1}],
    "free": {"a": {"b": [1]}, "c": {}},
    "port": 80,
    "text": "t",
    "template": {
        "apiVersion": "v1",
        "kind": "X",
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"q": 1},
    },
}


class TestConfigMaps:
    def test_a_second_equal_apply_writes_nothing(self, config_maps: ServerComparison) -> None:
        first = config_maps.apply("one", config_map({"a": "1"}, labels={"x": "y"}))
        second = config_maps.apply("one", config_map({"a": "1"}, labels={"x": "y"}))
        assert first == second

    def test_a_key_no_longer_applied_goes(self, config_maps: ServerComparison) -> None:
        config_maps.apply("one", config_map({"a": "1", "b": "2"}, annotations={"c": "d"}))
        answer = config_maps.apply("one", config_map({"a": "1"}))
        assert answer["data"] == {"a": "1"}
        assert "annotations" not in answer["metadata"]

    def test_a_key_that_another_manager_applies_too_stays(self, config_maps: ServerComparison) -> None:
        config_maps.apply("one", config_map({"a": "1", "b": "2"}))
        config_maps.apply("two", config_map({"a": "1"}))
        assert config_maps.apply("one", config_map({"b": "2"}))["data"] == {"a": "1", "b": "2"}
        assert config_maps.apply("two", config_map({}))["data"] == {"b": "2"}

    def test_another_managers_value_is_a_conflict(self, config_maps: ServerComparison) -> None:
        config_maps.apply("one", config_map({"a": "1", "b": "2"}))
        with pytest.raises(ConflictError, match=r"Apply failed with 2 conflicts"):
            config_maps.apply("two", config_map({"a": "x", "b": "y"}))

    def test_several_managers_conflicts_are_all_told(self, config_maps: ServerComparison) -> None:
        config_maps.apply("one", config_map({"a": "1"}))
        config_maps.patch("updater", {"data": {"b": "2", "c": "3"}})
        with pytest.raises(ConflictError, match=r'conflicts with "updater" using v1:'):
            config_maps.apply("two", config_map({"a": "x", "b": "y", "c": "z"}))

    def test_force_takes_a_value_over(self, config_maps: ServerComparison) -> None:
        config_maps.apply("one", config_map({"a": "1", "b": "2"}))
        config_maps.apply("two", config_map({"a": "x"}), force=True)
        assert config_maps.apply("one", config_map({"b": "2"}))["data"] == {"a": "x", "b": "2"}

    def test_an_update_takes_what_it_changes_from_an_applier(self, config_maps: ServerComparison) -> None:
        config_maps.apply("one", config_map({"a": "1", "b": "2"}))
        config_maps.patch("updater", {"data": {"a": "x"}, "metadata": {"labels": {"l": "m"}}})
        assert config_maps.apply("one", config_map({"b": "2"}))["data"] == {"a": "x", "b": "2"}

    def test_a_field_removed_by_an_update_is_nobodys(self, config_maps: ServerComparison) -> None:
        config_maps.apply("one", config_map({"a": "1", "b": "2"}))
        config_maps.apply("two", config_map({"b": "2"}))
        config_maps.patch("updater", {"data": {"b": None}})
        config_maps.patch("updater", {"data": None})

    def test_an_update_that_changes_nothing_writes_nothing(self, config_maps: ServerComparison) -> None:
        config_maps.apply("one", config_map({"a": "1"}))
        config_maps.patch("updater", {"data": {"a": "1"}})

    def test_one_updater_keeps_one_entry(self, config_maps: ServerComparison) -> None:
        config_maps.create("updater", config_map({"a": "1"}, labels={"x": "y"}))
        config_maps.patch("updater", {"data": {"b": "2"}})
        config_maps.patch("updater", {"data": {"a": None}})

    def test_the_oldest_updaters_beyond_ten_are_merged(self, config_maps: ServerComparison) -> None:
        config_maps.create("first", config_map({"a": "1"}))
        answer: Object = {}
        for number in range(12):
            answer = config_maps.patch(f"updater-{number:02}", {"data": {f"k{number}": "v"}})
        assert "ancient-changes" in {entry["manager"] for entry in answer["metadata"]["managedFields"]}

    def test_an_empty_or_null_mapping_leaves_others_fields_alone(self, config_maps: ServerComparison) -> None:
        config_maps.apply("one", config_map({"a": "1"}))
        config_maps.apply("two", config_map({}, labels={}))
        config_maps.apply("two", config_map(None))
        assert config_maps.apply("one", config_map({}))["metadata"].get("labels") is None

    def test_managed_fields_cannot_be_applied(self, config_maps: ServerComparison) -> None:
        with pytest.raises(ApiError, match=r"metadata.managedFields must be nil"):
            config_maps.apply("one", config_map({}, managedFields=[]))

    def test_an_empty_list_forgets_all_managers(self, config_maps: ServerComparison) -> None:
        config_maps.apply("one", config_map({"a": "1"}))
        config_maps.patch("updater", {"metadata": {"managedFields": []}})
        config_maps.apply("one", config_map({"a": "1"}))

    def test_finalizers_and_owners_merge_by_item(self, config_maps: ServerComparison) -> None:
        def owner(uid: int) -> Object:
            # Of no kind that is served, or the garbage collector would miss it and delete what it owns.
            return {"apiVersion": "no.test/v1", "kind": "No", "name": "x", "uid": f"8a0ce4b0-0000-4000-8000-{uid:012}"}

        def build_config_map(**metadata: Any) -> Object:
            return config_map({"a": "1"}, **metadata)

        config_maps.apply("one", build_config_map(finalizers=["a.test/b", "c.test/d"], ownerReferences=[owner(1)]))
        config_maps.apply("two", build_config_map(finalizers=["e.test/f", "a.test/b"], ownerReferences=[owner(2)]))
        answer = config_maps.apply("one", build_config_map(finalizers=["c.test/d"]))
        assert answer["metadata"]["finalizers"] == ["e.test/f", "a.test/b", "c.test/d"]
        config_maps.patch("updater", {"metadata": {"finalizers": None}})

    def test_kubectl_may_take_what_it_applied_on_the_client_side(self, config_maps: ServerComparison) -> None:
        record = json.dumps(config_map({"a": "1", "b": "2"}))
        annotation = "kubectl.kubernetes.io/last-applied-configuration"
        config_maps.create("kubectl-client-side-apply", config_map({"a": "1"}, annotations={annotation: record}))
        config_maps.patch("other", {"data": {"b": "3"}})
        with pytest.raises(
            ConflictError, match=r'Apply failed with 1 conflict: conflict with "other" using v1: \.data\.b'
        ):
            config_maps.apply("kubectl", config_map({"a": "2", "b": "4"}))
        config_maps.apply("kubectl", config_map({"a": "2"}, annotations={"x": "<y>"}))


class TestSecrets:
    def test_plain_text_is_stored_as_data(self, secrets: ServerComparison) -> None:
        secrets.apply("one", secret(data={"both": "b2xk"}, stringData={"both": "new", "plain": "x"}))
        secrets.apply("one", secret(data={"both": "b2xk"}, stringData={"both": "new", "plain": "x"}))
        secrets.apply("one", secret(data={"both": "b2xk"}))

    def test_the_type_is_filled_in(self, secrets: ServerComparison) -> None:
        assert secrets.create("one", secret(stringData={"a": "b"}))["type"] == "Opaque"


class TestServices:
    def test_ports_merge_by_number_and_protocol(self, services: ServerComparison) -> None:
        services.apply("one", service([{"port": 80, "name": "http"}], selector={"app": "web"}))
        services.apply("two", service([{"port": 80, "protocol": "UDP", "name": "quic"}]))
        services.apply("one", service([{"port": 81, "name": "http"}], selector={"app": "web"}))
        services.apply("one", service([{"port": 81, "name": "http", "protocol": "TCP"}], selector={"app": "web"}))

    def test_a_target_port_changes_by_force(self, services: ServerComparison) -> None:
        services.apply("one", service([{"port": 80, "targetPort": "http"}]))
        with pytest.raises(ConflictError, match=r'\.spec\.ports\[port=80,protocol="TCP"\]\.targetPort'):
            services.apply("two", service([{"port": 80, "targetPort": 8080}]))
        services.apply("two", service([{"port": 80, "targetPort": 8080}]), force=True)


class TestDeployments:
    def test_a_second_equal_apply_writes_nothing(self, deployments: ServerComparison) -> None:
        wanted = deployment(
            container(
                ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                resources={"limits": {"cpu": "1000m", "memory": "0.5Gi"}},
                env=[{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            ),
            replicas=0,
            paused=False,
        )
        deployments.apply("one", wanted)
        deployments.apply("one", wanted)

    def test_a_create_is_tracked_as_an_update(self, deployments: ServerComparison) -> None:
        deployments.create("one", deployment(container(ports=[{"containerPort": 80}]), replicas=0))

    def test_replicas_can_be_handed_to_a_scaler(self, deployments: ServerComparison) -> None:
        deployments.apply("one", deployment(container(), replicas=0, paused=True))
        deployments.patch("scaler", {"spec": {"replicas": 1}})
        with pytest.raises(ConflictError, match=r'conflict with "scaler" using apps/v1: \.spec\.replicas'):
            deployments.apply("one", deployment(container(), replicas=2, paused=True))
        assert deployments.apply("one", deployment(container(), paused=True))["spec"]["replicas"] == 1

    def test_a_value_given_up_goes_back_to_its_default(self, deployments: ServerComparison) -> None:
        deployments.apply("one", deployment(container(), replicas=0, revisionHistoryLimit=3, paused=True))
        answer = deployments.apply("one", deployment(container(), replicas=0, paused=True))
        assert answer["spec"]["revisionHistoryLimit"] == 10

    def test_two_managers_share_the_containers(self, deployments: ServerComparison) -> None:
        deployments.apply("one", deployment(container(env=[{"name": "A", "value": "1"}]), replicas=0))
        deployments.apply("two", partial_deployment(container("sidecar")))
        deployments.apply("two", partial_deployment(container("sidecar"), {"name": "app", "env": [{"name": "B"}]}))
        deployments.apply("one", deployment(container(env=[{"name": "C", "value": "1"}]), replicas=0))
        answer = deployments.apply("two", partial_deployment({"name": "app", "env": [{"name": "B"}]}))
        assert [each["name"] for each in answer["spec"]["template"]["spec"]["containers"]] == ["app"]

    def test_items_take_the_order_in_which_they_are_applied(self, deployments: ServerComparison) -> None:
        deployments.apply("one", deployment(container("a"), container("b"), container("c"), replicas=0))
        deployments.apply("two", partial_deployment(container("x")))
        answer = deployments.apply("one", deployment(container("c"), container("d"), container("a"), replicas=0))
        assert [each["name"] for each in answer["spec"]["template"]["spec"]["containers"]] == ["c", "x", "d", "a"]

    def test_atomic_values_change_as_a_whole(self, deployments: ServerComparison) -> None:
        deployments.apply("one", deployment(container(args=["a", "b"], command=["c"]), replicas=0))
        with pytest.raises(ConflictError, match=r"containers\[name=\"app\"\]\.args"):
            deployments.apply("two", partial_deployment({"name": "app", "args": ["a"]}))
        deployments.apply("two", partial_deployment({"name": "app", "args": ["a"]}), force=True)
        deployments.apply("one", deployment(container(command=["c"]), replicas=0))

    def test_a_volumes_source_can_be_exchanged(self, deployments: ServerComparison) -> None:
        def build_deployment(**source: Any) -> Object:
            return deployment(container(), pod={"volumes": [{"name": "data", **source}]}, replicas=0)

        deployments.apply("one", build_deployment(emptyDir={"sizeLimit": "1024Mi"}))
        deployments.apply("one", build_deployment(configMap={"name": "x"}))
        deployments.apply("one", build_deployment(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}))

    def test_the_strategy_can_be_exchanged(self, deployments: ServerComparison) -> None:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
        deployments.apply("one", deployment(container(), replicas=0, strategy=rolling))
        deployments.apply("one", deployment(container(), replicas=0, strategy={"rollingUpdate": {"maxSurge": "20%"}}))
        deployments.apply("one", deployment(container(), replicas=0))

    def test_status_has_managers_of_its_own(self, deployments: ServerComparison) -> None:
        deployments.apply("one", deployment(container(), replicas=0, paused=True))
        condition = {"type": "Tested", "status": "True"}
        status = {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"conditions": [condition]}}
        deployments.apply("reporter", status, subresource="status")
        deployments.patch("writer", {"status": {"collisionCount": 2}, "spec": {"replicas": 9}}, subresource="status")

    def test_an_unknown_field_is_refused(self, deployments: ServerComparison) -> None:
        with pytest.raises(ApiError, match=r"\.spec\.color: field not declared in schema"):
            deployments.apply("one", deployment(container(), color="blue"))

    def test_the_same_item_twice_is_refused(self, deployments: ServerComparison) -> None:
        with pytest.raises(ApiError, match=r'duplicate entries for key \[name="app"\]'):
            deployments.apply("one", deployment(container(), container()))


class TestStatefulSets:
    def test_claim_templates_merge_as_a_whole(self, stateful_sets: ServerComparison) -> None:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
        wanted = deployment(
            container(), replicas=0, serviceName="db", volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": claim}]
        )
        wanted["kind"] = "StatefulSet"
        stateful_sets.apply("one", wanted)
        stateful_sets.apply("one", wanted)


class TestWidgets:
    def test_a_second_equal_apply_writes_nothing(self, widgets: ServerComparison) -> None:
        widgets.apply("one", widget(FULL_WIDGET))
        widgets.apply("one", widget(FULL_WIDGET))

    def test_a_create_is_tracked_as_an_update(self, widgets: ServerComparison) -> None:
        widgets.create("one", widget(FULL_WIDGET, labels={"a": "b"}))

    def test_everything_given_up_goes(self, widgets: ServerComparison) -> None:
        widgets.apply("one", widget(FULL_WIDGET))
        answer = widgets.apply("one", widget({}))
        assert answer["spec"] == {"size": 1, "nothing": "something"}

    def test_a_spec_given_up_goes(self, widgets: ServerComparison) -> None:
        widgets.apply("one", widget({"text": "t"}))
        widgets.apply("one", widget(None, labels={"a": "b"}))

    def test_set_members_belong_to_who_applies_them(self, widgets: ServerComparison) -> None:
        widgets.apply("one", widget({"set": ["a", "b"]}))
        widgets.apply("two", widget({"set": ["c", "b"]}))
        assert widgets.apply("one", widget({"set": ["d"]}))["spec"]["set"] == ["c", "b", "d"]

    def test_an_empty_list_that_merges_by_item_owns_nothing(self, widgets: ServerComparison) -> None:
        widgets.apply("one", widget({"set": [], "ports": [], "list": [], "free": {"l": []}}))
        widgets.apply("two", widget({"set": ["a"], "ports": [{"port": 1}]}))
        widgets.apply("one", widget({"set": [], "ports": []}))

    def test_an_atomic_mapping_is_one_value(self, widgets: ServerComparison) -> None:
        widgets.apply("one", widget({"atomic": {"a": "1"}, "list": [{"x": 1}]}))
        with pytest.raises(ConflictError, match=r"\.spec\.atomic"):
            widgets.apply("two", widget({"atomic": {"b": "2"}}))
        widgets.apply("two", widget({"atomic": {"b": "2"}, "list": []}), force=True)

    def test_a_null_where_there_is_a_default_asks_for_it(self, widgets: ServerComparison) -> None:
        widgets.apply("one", widget({"size": 3, "nothing": "x"}))
        answer = widgets.apply("one", widget({"size": None, "nothing": None}))
        assert answer["spec"] == {"size": 1, "nothing": None}

    def test_number_and_text_are_different_ports(self, widgets: ServerComparison) -> None:
        widgets.apply("one", widget({"port": 80}))
        widgets.apply("one", widget({"port": "80"}))

    def test_values_of_free_fields_may_change_their_type(self, widgets: ServerComparison) -> None:
        for value in (1, "one", [1], {"a": {"b": 1}}, {"a": 1}, True, 1, 1.5, None, {}):
            widgets.apply("one", widget({"free": {"x": value}}))

    def test_updates_of_every_kind_of_field_are_tracked(self, widgets: ServerComparison) -> None:
        widgets.apply("one", widget(FULL_WIDGET))
        widgets.patch("updater", {"spec": {"map": {"b": "y"}, "set": ["b", "c"], "ports": [{"port": 80, "name": "n"}]}})
        widgets.patch("updater", {"spec": {"atomic": {"b": "2"}, "list": [{"x": 2}], "free": {"a": None}}})
        widgets.patch("other", {"spec": {"map": None, "set": [], "ports": [], "inner": {}}})
        widgets.apply("one", widget(FULL_WIDGET), force=True)

    def test_status_and_spec_do_not_touch_each_other(self, widgets: ServerComparison) -> None:
        widgets.apply("one", widget({"size": 2}))
        widgets.apply("two", widget(status={"conditions": [{"type": "A", "status": "True"}]}), subresource="status")
        widgets.patch("writer", {"status": {"count": 1}, "spec": {"size": 9}}, subresource="status")
        widgets.apply("two", widget(status={"conditions": []}), subresource="status")


_writes = st.lists(
    st.tuples(st.sampled_from(["one", "two", "three"]), written_widgets, st.booleans()), min_size=2, max_size=5
)


# Each example is an object of its own, so the server can be shared.
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_writes)
def test_any_sequence_of_applies_means_the_same(
    server: ComparisonServer, writes: list[tuple[str, Object, bool]]
) -> None:
    twin = server.new_comparison("apis/apply.konverge.test/v1", "widgets", build_custom_resource_schema(WIDGET_SCHEMA))
    for manager, wanted, force in writes:
        with suppress(ApiError):  # A refusal is compared, too.
            # (Without labels: empty ones make the server write again each time, though it stores none.)
            twin.apply(manager, {**wanted, "metadata": {}}, force=force)
