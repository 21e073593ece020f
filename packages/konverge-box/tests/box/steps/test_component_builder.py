"""The component of a planned group."""

from __future__ import annotations

import pytest

from konverge._internal.component.resource_options import OnAbsence, ResourceMode
from konverge.component import Component
from konverge.errors import KonvergeError
from konverge.kube import Object
from konverge.primitives import Convergence, Grace, GraceStatus, Operation, Static
from konverge_box._internal.file import CUSTOM, KINDS
from konverge_box._internal.steps.component_builder import PRIMITIVES, build_component
from konverge_box.expressions import ExpressionError, to_sensitive
from tests.box.steps.sample_plans import build_applied_object, build_plan, to_stored_object


def component(steps: str, spec: Object | None = None, *objects: Object) -> Component:
    (group,) = build_plan(steps, spec, *objects).groups
    return build_component(group)


def test_every_kind_of_the_file_is_a_primitive_of_that_kind() -> None:
    assert list(PRIMITIVES) == list(KINDS)
    for key, primitive in PRIMITIVES.items():
        if key != CUSTOM and primitive is not Static:
            assert primitive.gvk == KINDS[key].gvk
            assert primitive.is_cluster_scoped is not KINDS[key].namespaced


def test_every_kind_with_the_least_that_it_needs_makes_a_component() -> None:
    more = {
        CUSTOM: "apiVersion: test.konverge.dev/v1, kind: Boat",
        "jobs": "image: a",
        "cronJobs": "image: a, schedule: '@daily'",
        "clusterRoleBindings": "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}",
        "roleBindings": "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}",
        "statefulSets": "image: a, serviceName: a",
        "ingresses": "host: a.b",
        "gateways": "gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP}]",
        "limitRanges": "limits: [{type: Pod}]",
        "horizontalPodAutoscalers": "maxReplicas: 3",
        "networkPolicies": "podSelector: {}",
        "customResourceDefinitions": (
            "manifest: {spec: {group: a.b, scope: Namespaced, names: {plural: boats, kind: Boat}, versions: []}}"
        ),
    }
    lists = [
        f"{key}: [{{{more.get(key, 'image: a' if kind.pods is not None else '')}}}]" for key, kind in KINDS.items()
    ]

    made = component(f"onReconcile: {{{', '.join(lists)}}}")

    assert [entry.resource.gvk.kind for entry in made.entries] == [
        "Boat" if kind.gvk is None else kind.gvk.kind for kind in KINDS.values()
    ]
    for entry in made.entries:
        assert entry.treatment.mode is ResourceMode.MANAGED
        assert entry.treatment.is_unowned is (not entry.resource.key.namespace)
        assert entry.resource.render()["metadata"]["name"] == "site"


def test_pods_are_made_anew_when_they_cannot_be_changed_and_nothing_else_is() -> None:
    made = component("onReconcile: {deployments: [{image: a}], pods: [{image: a}]}")

    assert {entry.resource.gvk.kind: entry.resource.recreates for entry in made.entries} == {
        "Deployment": False,
        "Pod": True,
    }


def test_secrets_are_revealed_where_the_engine_gets_the_object_and_only_there() -> None:
    steps = (
        "onReconcile: {configMaps: [{data: {key: '{{ spec.key }}'}}], secrets: [{stringData: {key: '{{ spec.key }}'}}]}"
    )
    made = component(steps, {"key": to_sensitive("hunter2")})

    assert "hunter2" not in repr(made)
    assert [obj.get("data", obj.get("stringData")) for obj in made.preview()] == [{"key": "hunter2"}] * 2


def test_a_mistake_in_an_object_holds_it_back_and_is_told_without_its_values() -> None:
    steps = "onReconcile: {secrets: [{data: {key: '{{ spec.key }}'}}]}"
    (entry,) = component(steps, {"key": to_sensitive("hunter2")}).entries

    assert entry.unplannable is not None
    assert entry.unplannable.is_failure
    assert "spec.crds.web.onReconcile.secrets[0]: data['key']: expected base64" in entry.unplannable.reason
    assert "hunter2" not in entry.unplannable.reason


@pytest.mark.parametrize(
    "kind", ["deployments: [{image: a}]", "roleBindings: [{roleRef: {apiGroup: a, kind: b, name: c}}]"]
)
def test_what_is_left_as_it_is_is_only_looked_at_and_may_be_absent(kind: str) -> None:
    steps = f"onCreate: {{{kind}}}"
    (entry,) = component(steps, None, build_applied_object(build_plan(steps))).entries

    assert (entry.treatment.mode, entry.treatment.on_absence) == (ResourceMode.READ_ONLY, OnAbsence.IGNORE)


def test_what_others_need_is_deleted_last() -> None:
    steps = """
        onReconcile:
          when: [{field: spec.on, equals: true}]
          configMaps: [{name: a}]
          deployments: [{name: b, image: a}]
        """
    there = [build_applied_object(build_plan(steps, {"on": True}), name) for name in "ab"]
    made = component(steps, {"on": False}, *there)

    assert [entry.resource.gvk.kind for entry in made.entries] == ["Deployment", "ConfigMap"]
    assert {entry.treatment.mode for entry in made.entries} == {ResourceMode.DELETE}
    assert made.gate is not None
    assert not made.gate.enabled()


def test_required_conditions_of_a_custom_kind_are_waited_for() -> None:
    from konverge.primitives import Operation

    steps = "onReconcile: {custom: [{apiVersion: t/v1, kind: Boat, requiredConditions: [Afloat]}]}"
    (entry,) = component(steps).entries
    live = to_stored_object(entry.resource.render())

    judged = entry.resource.converging_status(live, Operation.NONE)
    assert judged is not None
    assert not judged.status.is_ready


# Readiness by conditions of the file.


def judge(steps: str, live: Object, operation: Operation = Operation.UPDATED) -> tuple[Convergence, Grace | None]:
    (entry,) = component(steps).entries
    resource = entry.resource
    rendered = resource.render()
    seen = {**rendered, **live, "metadata": rendered["metadata"]}
    convergence = resource.converging_status(seen, operation)
    assert convergence is not None
    return convergence, resource.grace_status(seen)


DEPLOYMENT = (
    "onReconcile: {deployments: [{image: a, replicas: 3, readyWhen: [{field: self.status.readyReplicas, min: 1}]}]}"
)
CONFIG_MAP = "onReconcile: {configMaps: [{readyWhen: [\"{{ self.data.state == 'done' }}\"]}]}"
JOB = "onReconcile: {jobs: [{image: a, readyWhen: [{field: self.status.succeeded, min: 1}]}]}"
BOAT = (
    "onReconcile: {custom: [{apiVersion: t/v1, kind: Boat, readyWhen: ["
    '"{{ all(self.status.sails, sail, sail.up) }}", {field: self.status.phase, equals: Afloat}]}]}'
)


@pytest.mark.parametrize(
    ("steps", "live", "status", "reason"),
    [
        (DEPLOYMENT, {"status": {"readyReplicas": 1}}, "Healthy", ""),
        (DEPLOYMENT, {"status": {}}, "Updating", "waiting for self.status.readyReplicas is at least 1"),
        (CONFIG_MAP, {"data": {"state": "done"}}, "Operational", ""),
        (CONFIG_MAP, {"data": {"state": "begun"}}, "OperationPending",
         "waiting for {{ self.data.state == 'done' }} equals true"),
        (CONFIG_MAP, {}, "OperationPending", "waiting for self.data.state"),
        (JOB, {"status": {"succeeded": 1}}, "Completed", ""),
        (JOB, {"status": {}}, "TaskRunning", "waiting for self.status.succeeded is at least 1"),
        (BOAT, {"status": {"sails": [{"up": True}], "phase": "Afloat"}}, "Operational", ""),
        (BOAT, {"status": {"sails": [{"up": True}], "phase": "Dry"}}, "OperationPending",
         "waiting for self.status.phase equals Afloat"),
        (BOAT, {"status": {}}, "OperationPending", "waiting for self.status.sails"),
        (BOAT, {"status": {"sails": [{}]}}, "OperationPending", "waiting for sail.up"),
    ],
)  # fmt: skip
def test_an_object_is_ready_when_the_conditions_of_the_file_hold(
    steps: str, live: Object, status: str, reason: str
) -> None:
    convergence, grace = judge(steps, live)

    assert (convergence.status.value, convergence.reason) == (status, reason)
    assert (grace is None) is ("jobs" in steps)
    if grace is not None:
        assert (grace.status is GraceStatus.HEALTHY) is convergence.status.is_ready


def test_a_workload_that_was_just_created_is_creating_and_one_without_pods_is_down() -> None:
    convergence, grace = judge(DEPLOYMENT, {"status": {}}, Operation.CREATED)

    assert convergence.status.value == "Creating"
    assert grace is not None
    assert grace.status is GraceStatus.DOWN


def test_an_expression_that_fails_for_another_reason_is_an_error() -> None:
    with pytest.raises(ExpressionError, match=r"readyWhen\[0\]\.field, .*: expected two numbers"):
        judge('onReconcile: {configMaps: [{readyWhen: ["{{ self.data.a + 1 > 2 }}"]}]}', {"data": {"a": "x"}})
    with pytest.raises(ExpressionError, match="spec.wanted is absent"):
        judge('onReconcile: {configMaps: [{readyWhen: ["{{ self.data.a == spec.wanted }}"]}]}', {"data": {"a": "x"}})


def test_the_values_of_a_secret_stay_hidden_in_its_readiness() -> None:
    steps = 'onReconcile: {secrets: [{readyWhen: ["{{ self.data.key + 1 }}"]}]}'

    with pytest.raises(KonvergeError) as caught:
        judge(steps, {"data": {"key": "aHVudGVyMg=="}})

    assert "aHVudGVyMg" not in str(caught.value)
