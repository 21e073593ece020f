"""In which order each kind makes the edits of one mutation: from the outside to the inside (see `EditCategory`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from konverge.mutation import Mutation, all_containers
from konverge.primitives import (
    ClusterRole,
    ClusterRoleBinding,
    ConfigMap,
    CronJob,
    DaemonSet,
    Deployment,
    HorizontalPodAutoscaler,
    Ingress,
    Job,
    NetworkPolicy,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    Primitive,
    ReplicaSet,
    Role,
    RoleBinding,
    Secret,
    Service,
    StatefulSet,
    StatefulSetMutator,
    Static,
)
from tests.primitives.objects import build_named, build_widget

PODS = ["edit_pod_spec", "edit_containers", "edit_init_containers"]
TEMPLATE = ["edit_pod_template_metadata", *PODS]
OF_PODS: list[tuple[type[Primitive[Any]], list[str]]] = [
    (Deployment, ["edit_deployment_spec", *TEMPLATE]),
    (StatefulSet, ["edit_stateful_set_spec", *TEMPLATE]),
    (DaemonSet, ["edit_daemon_set_spec", *TEMPLATE]),
    (ReplicaSet, ["edit_replica_set_spec", *TEMPLATE]),
    (Job, ["edit_job_spec", *TEMPLATE]),
    (CronJob, ["edit_cron_job_spec", "edit_job_spec", *TEMPLATE]),
    (Pod, PODS),
]
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
OF_CONTENT: list[tuple[Callable[..., Primitive[Any]], dict[str, Any], str]] = [
    (ConfigMap, build_named(), "edit_data"),
    (Secret, build_named(), "edit_data"),
    (Service, build_named(), "edit_service_spec"),
    (Ingress, build_named(), "edit_ingress_spec"),
    (HorizontalPodAutoscaler, build_named(), "edit_horizontal_pod_autoscaler_spec"),
    (PodDisruptionBudget, build_named(), "edit_spec"),
    (NetworkPolicy, build_named(), "edit_network_policy_spec"),
    (PersistentVolume, {"metadata": {"name": "web"}}, "edit_persistent_volume_spec"),
    (PersistentVolumeClaim, build_named(), "edit_persistent_volume_claim_spec"),
    (Role, build_named(), "edit_rules"),
    (ClusterRole, {"metadata": {"name": "web"}}, "edit_rules"),
    (RoleBinding, build_named(roleRef=ROLE_REF), "edit_subjects"),
    (ClusterRoleBinding, {"metadata": {"name": "web"}, "roleRef": ROLE_REF}, "edit_subjects"),
    (Static, build_widget(), "edit_content"),
]


def name_of(value: Any) -> str:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(("kind", "edits"), OF_PODS, ids=name_of)
def test_a_kind_of_pods_is_edited_part_by_part(kind: Callable[..., Primitive[Any]], edits: list[str]) -> None:
    made: list[str] = []
    expected = ["edit_object_metadata", *edits]

    def backwards(mutator: Any) -> None:
        mutator.edit_init_containers(all_containers(), lambda _: made.append("edit_init_containers"))
        mutator.edit_containers(all_containers(), lambda _: made.append("edit_containers"))
        for edit in reversed(expected[:-2]):
            getattr(mutator, edit)(lambda _, edit=edit: made.append(edit))
        # Made before the containers are edited, or there would be none.
        mutator.ensure_init_container({"name": "setup"})
        mutator.ensure_container({"name": "app"})

    kind(build_named(), mutations=Mutation("backwards", backwards)).render()

    assert made == expected


def test_volume_claim_templates_come_last() -> None:
    def backwards(mutator: StatefulSetMutator) -> None:
        mutator.remove_volume_claim_template("data")
        mutator.edit_stateful_set_spec(
            lambda spec: spec.raw().update(volumeClaimTemplates=[{"metadata": {"name": "data"}}])
        )

    desired = StatefulSet(build_named(), mutations=Mutation("backwards", backwards)).render()

    assert "volumeClaimTemplates" not in desired["spec"]


@pytest.mark.parametrize(("kind", "obj", "edit"), OF_CONTENT, ids=name_of)
def test_any_other_kind_is_edited_after_its_metadata(
    kind: Callable[..., Primitive[Any]], obj: dict[str, Any], edit: str
) -> None:
    made: list[str] = []

    def backwards(mutator: Any) -> None:
        getattr(mutator, edit)(lambda _: made.append(edit))
        mutator.edit_object_metadata(lambda _: made.append("edit_object_metadata"))

    kind(obj, mutations=Mutation("backwards", backwards)).render()

    assert made == ["edit_object_metadata", edit]
