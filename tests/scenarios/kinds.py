"""The table of scenarios: for each kind the desired object, a change, a drift, and the expected reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge import primitives
from konverge.kube import GroupVersionKind, Object
from konverge.mutation import WorkloadMutator, all_containers
from konverge.primitives import (
    ConfigMapMutator,
    ContentMutator,
    Convergence,
    ConvergingStatus,
    Primitive,
    Suspension,
    SuspensionStatus,
)
from tests.scenarios.scenario import MOMENT, NAME, NAMESPACE, VOLUME, Scenario, condition, provides_volume, reports
from tests.scenarios.scenario_harness import get_at

__all__ = ["CROSS_SCOPE", "DEFINITIONS", "SCENARIOS"]

RBAC = "rbac.authorization.k8s.io"
CONTAINER = {"name": "main", "image": "konverge.test/app:1"}
POD = {"containers": [CONTAINER]}
READ = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
LIST = {"apiGroups": [""], "resources": ["services"], "verbs": ["list"]}
ADA = {"kind": "User", "name": "ada", "apiGroup": RBAC}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def build_templated_spec(**fields: Any) -> Object:
    """Return the spec of a kind that creates pods from a template."""
    labels = {"app": NAME}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": POD}, **fields}


def build_task(**fields: Any) -> Object:
    return {"template": {"spec": {**POD, "restartPolicy": "Never"}}, **fields}


def enable_tracing(pods: WorkloadMutator) -> None:
    """Apply one mutation that works for every workload kind."""
    pods.ensure_container_env_var({"name": "TRACING", "value": "on"})


TRACED = ("spec.template.spec.containers.0.env.0.value", "on")


def definition(group: str, kind: str, plural: str) -> Object:
    """Return the definition of a kind that accepts any fields."""
    fields = {"spec": ANYTHING, "status": ANYTHING}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
        "subresources": {"status": {}},
    }
    metadata: Object = {"name": f"{plural}.{group}"}
    if group.endswith("k8s.io"):
        # The server rejects a definition of this group without the name of an approval.
        metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    gvk = primitives.CustomResourceDefinition.gvk
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "metadata": metadata,
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


WIDGET = GroupVersionKind("widgets.konverge.test", "v1", "Widget")
DEFINITIONS = (
    definition(WIDGET.group, "Widget", "widgets"),
    definition(primitives.Gateway.gvk.group, "Gateway", "gateways"),
    definition(primitives.HTTPRoute.gvk.group, "HTTPRoute", "httproutes"),
)
"""The kinds that the scenarios need and no cluster has."""

WIDGET_CONTENT = {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "spec": {"size": 3, "colour": "blue"}}


def set_orange(widget: ContentMutator) -> None:
    widget.edit_content(lambda content: content.set_nested_field("orange", "spec", "trim"))


def shrinks(widget: ContentMutator) -> None:
    widget.edit_content(lambda content: content.set_nested_field(0, "spec", "size"))


def has_shrunk(live: Object) -> Suspension:
    is_small = get_at(live, "spec.size") == 0
    return Suspension(SuspensionStatus.SUSPENDED if is_small else SuspensionStatus.SUSPENDING, "Widget shrinks")


def build_state_check(ready: ConvergingStatus, late: ConvergingStatus) -> Callable[[Object, object], Convergence]:
    """Return the check of a kind with its own status: it is ready if its status has ``state: Done``."""

    def judge(live: Object, operation: object) -> Convergence:
        is_done = get_at(live, "status.state") == "Done"
        return Convergence(ready, "Widget is done") if is_done else Convergence(late, "Waiting for the widget")

    return judge


def widget(kind: Callable[..., Primitive[Any]], **fields: Any) -> Scenario:
    """Return a scenario of a generic primitive: a custom resource that the author describes."""
    given: Object = {
        "change": set_orange,
        "changed": ("spec.trim", "orange"),
        "drift": {"spec": {"colour": "red"}},
        "outside": reports({"state": "Done"}),
    }
    return Scenario(kind=kind, content=WIDGET_CONTENT, **(given | fields))


def set_version_label(mutator: Any) -> None:
    mutator.edit_object_metadata(lambda metadata: metadata.ensure_label("version", "two"))


def build_field_setter(*path: str, to: Any) -> Callable[[ContentMutator], None]:
    return lambda mutator: mutator.edit_content(lambda content: content.set_nested_field(to, *path))


def add_entry(settings: ConfigMapMutator) -> None:
    settings.set_entry("tracing", "on")


LABELLED = ("metadata.labels.version", "two")
RELABELLED = {"metadata": {"labels": {"part": "foreign"}}}

SCENARIOS: Mapping[str, Scenario] = {
    # Workloads.
    "Deployment": Scenario(
        kind=primitives.Deployment,
        content={"spec": build_templated_spec(replicas=1)},
        change=enable_tracing,
        changed=TRACED,
        drift={"spec": {"replicas": 2}},
        first="False Creating",
        asleep={"spec.replicas": 0},
    ),
    "StatefulSet": Scenario(
        kind=primitives.StatefulSet,
        content={"spec": build_templated_spec(replicas=1, serviceName="web")},
        change=enable_tracing,
        changed=TRACED,
        drift={"spec": {"replicas": 2}},
        first="False Creating",
        asleep={"spec.replicas": 0},
    ),
    "DaemonSet": Scenario(
        kind=primitives.DaemonSet,
        content={"spec": build_templated_spec(revisionHistoryLimit=5)},
        change=enable_tracing,
        changed=TRACED,
        drift={"spec": {"revisionHistoryLimit": 1}},
        first="False Creating",
        asleep=None,
    ),
    "ReplicaSet": Scenario(
        kind=primitives.ReplicaSet,
        content={"spec": build_templated_spec(replicas=1)},
        change=enable_tracing,
        changed=TRACED,
        drift={"spec": {"replicas": 2}},
        first="False Creating",
        asleep={"spec.replicas": 0},
    ),
    "Pod": Scenario(
        kind=primitives.Pod,
        content={"spec": POD},
        change=lambda pod: pod.edit_containers(
            all_containers(), lambda container: container.raw().update(image="konverge.test/app:2")
        ),
        changed=("spec.containers.0.image", "konverge.test/app:2"),
        drift=RELABELLED,
        first="False Creating",
        asleep=None,
    ),
    # Tasks.
    "Job": Scenario(
        kind=primitives.Job,
        content={"spec": build_task(backoffLimit=1)},
        change=lambda job: job.edit_job_spec(lambda spec: spec.set(parallelism=2)),
        changed=("spec.parallelism", 2),
        drift={"spec": {"backoffLimit": 9}},
        ready="Completed",
        first="False TaskPending",
        asleep=None,
    ),
    # Integrations.
    "CronJob": Scenario(
        kind=primitives.CronJob,
        content={
            "spec": {"schedule": "0 0 1 1 *", "concurrencyPolicy": "Allow", "jobTemplate": {"spec": build_task()}},
        },
        change=lambda job: job.edit_cron_job_spec(lambda spec: spec.set(schedule="0 0 2 1 *")),
        changed=("spec.schedule", "0 0 2 1 *"),
        drift={"spec": {"concurrencyPolicy": "Forbid"}},
        ready="Operational",
        first="True Operational",
        asleep={"spec.suspend": True},
    ),
    "Service": Scenario(
        kind=primitives.Service,
        content={
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
        },
        change=lambda service: service.edit_service_spec(lambda spec: spec.ensure_port({"name": "https", "port": 443})),
        changed=("spec.ports.1.port", 443),
        drift={"spec": {"selector": {"app": "other"}}},
        ready="Operational",
        first="False OperationPending",
        outside=reports({"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}}),
    ),
    "Ingress": Scenario(
        kind=primitives.Ingress,
        content={
            "spec": {
                "ingressClassName": "web",
                "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}},
            }
        },
        change=lambda ingress: ingress.edit_ingress_spec(lambda spec: spec.ensure_rule({"host": "a.test"})),
        changed=("spec.rules.0.host", "a.test"),
        drift={"spec": {"ingressClassName": "other"}},
        ready="Operational",
        first="False OperationPending",
        outside=reports({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}),
    ),
    "PersistentVolumeClaim": Scenario(
        kind=primitives.PersistentVolumeClaim,
        content={
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "volumeName": f"disk-{NAMESPACE}",
                "resources": {"requests": {"storage": "1024Mi"}},
            }
        },
        change=set_version_label,
        changed=LABELLED,
        drift=RELABELLED,
        ready="Operational",
        first="False OperationPending",
        outside=provides_volume,
    ),
    "PersistentVolume": Scenario(
        kind=primitives.PersistentVolume,
        content={"spec": {**VOLUME, "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "none"}},
        change=lambda volume: volume.set_mount_options(["hard"]),
        changed=("spec.mountOptions.0", "hard"),
        drift={"spec": {"persistentVolumeReclaimPolicy": "Delete"}},
        ready="Operational",
        first="False OperationPending",
        outside=reports({"phase": "Available"}),
    ),
    "HorizontalPodAutoscaler": Scenario(
        kind=primitives.HorizontalPodAutoscaler,
        content={
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "absent"},
            }
        },
        change=lambda scaler: scaler.edit_horizontal_pod_autoscaler_spec(lambda spec: spec.set(minReplicas=2)),
        changed=("spec.minReplicas", 2),
        drift={"spec": {"maxReplicas": 9}},
        ready="Operational",
        first="False OperationPending",
        outside=reports(
            {
                "desiredReplicas": 1,
                "currentMetrics": None,
                "conditions": [
                    {
                        "type": "ScalingActive",
                        "status": "True",
                        "reason": "Tested",
                        "message": "as the test says",
                        "lastTransitionTime": MOMENT,
                    }
                ],
            }
        ),
        asleep=None,
    ),
    # Kinds that are ready once they exist.
    "ConfigMap": Scenario(
        kind=primitives.ConfigMap,
        content={"data": {"colour": "blue"}},
        change=add_entry,
        changed=("data.tracing", "on"),
        drift={"data": {"colour": "red"}},
    ),
    "Secret": Scenario(
        kind=primitives.Secret,
        content={"stringData": {"password": "hunter2"}},
        change=lambda secret: secret.set_data("token", b"abc"),
        changed=("data.token", "YWJj"),
        drift={"data": {"password": "eA=="}},
    ),
    "ServiceAccount": Scenario(
        kind=primitives.ServiceAccount,
        content={"automountServiceAccountToken": False},
        change=lambda account: account.ensure_image_pull_secret("mirror"),
        changed=("imagePullSecrets.0.name", "mirror"),
        drift={"automountServiceAccountToken": True},
    ),
    "Role": Scenario(
        kind=primitives.Role,
        content={"rules": [READ]},
        change=lambda role: role.add_rule(LIST),
        changed=("rules.1.resources.0", "services"),
        drift={"rules": []},
    ),
    "RoleBinding": Scenario(
        kind=primitives.RoleBinding,
        content={"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "role"}, "subjects": [ADA]},
        change=lambda binding: binding.edit_subjects(
            lambda subjects: subjects.ensure_service_account("robot", "default")
        ),
        changed=("subjects.1.name", "robot"),
        drift={"subjects": []},
    ),
    "ClusterRole": Scenario(
        kind=primitives.ClusterRole,
        content={"rules": [READ]},
        change=lambda role: role.add_rule(LIST),
        changed=("rules.1.resources.0", "services"),
        drift={"rules": []},
    ),
    "ClusterRoleBinding": Scenario(
        kind=primitives.ClusterRoleBinding,
        content={"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "absent"}, "subjects": [ADA]},
        change=lambda binding: binding.edit_subjects(
            lambda subjects: subjects.ensure_service_account("robot", "default")
        ),
        changed=("subjects.1.name", "robot"),
        drift={"subjects": []},
    ),
    "PodDisruptionBudget": Scenario(
        kind=primitives.PodDisruptionBudget,
        content={"spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}}},
        change=lambda budget: budget.edit_spec(lambda spec: spec.set(unhealthyPodEvictionPolicy="AlwaysAllow")),
        changed=("spec.unhealthyPodEvictionPolicy", "AlwaysAllow"),
        drift={"spec": {"maxUnavailable": "10%"}},
    ),
    "NetworkPolicy": Scenario(
        kind=primitives.NetworkPolicy,
        content={"spec": {"podSelector": {"matchLabels": {"app": "web"}}}},
        change=lambda policy: policy.edit_network_policy_spec(
            lambda spec: spec.append_ingress_rule({"ports": [{"port": 80}]})
        ),
        changed=("spec.ingress.0.ports.0.port", 80),
        drift={"spec": {"podSelector": {"matchLabels": {"app": "other"}}}},
    ),
    # Other kinds, described by the author.
    "Static": widget(primitives.Static, outside=None),
    "Workload": widget(
        primitives.Workload,
        first="False Creating",
        asleep={"spec.size": 0},
        options={
            "converging_status": build_state_check(ConvergingStatus.HEALTHY, ConvergingStatus.CREATING),
            "suspend": shrinks,
            "suspension_status": has_shrunk,
        },
    ),
    "Task": widget(
        primitives.Task,
        ready="Completed",
        first="False TaskPending",
        asleep=None,
        options={
            "converging_status": build_state_check(ConvergingStatus.COMPLETED, ConvergingStatus.TASK_PENDING),
            "delete_on_suspend": True,
        },
    ),
    "Integration": widget(
        primitives.Integration,
        ready="Operational",
        first="False OperationPending",
        options={
            "converging_status": build_state_check(ConvergingStatus.OPERATIONAL, ConvergingStatus.OPERATION_PENDING),
        },
    ),
    # Kinds with health from conditions, without code of the author.
    "Custom": widget(
        primitives.Custom,
        ready="Operational",
        first="False OperationPending",
        outside=reports({"observedGeneration": "GENERATION", "conditions": [condition("Ready")]}),
        options={"required_conditions": "Ready"},
    ),
    "Gateway": Scenario(
        kind=primitives.Gateway,
        content={"spec": {"gatewayClassName": "tested", "listeners": [{"name": "http", "port": 80}]}},
        change=build_field_setter("spec", "gatewayClassName", to="newer"),
        changed=("spec.gatewayClassName", "newer"),
        drift={"spec": {"listeners": []}},
        ready="Operational",
        first="False OperationPending",
        outside=reports({"conditions": [condition("Accepted"), condition("Programmed")]}),
    ),
    "HTTPRoute": Scenario(
        kind=primitives.HTTPRoute,
        content={"spec": {"parentRefs": [{"name": "gateway"}], "hostnames": ["a.test"]}},
        change=build_field_setter("spec", "hostnames", to=["a.test", "b.test"]),
        changed=("spec.hostnames.1", "b.test"),
        drift={"spec": {"hostnames": []}},
        ready="Operational",
        first="False OperationPending",
        outside=reports(
            {
                "parents": [
                    {
                        "parentRef": {"name": "gateway"},
                        "controllerName": "konverge.test/controller",
                        "conditions": [condition("Accepted"), condition("ResolvedRefs")],
                    }
                ]
            }
        ),
    ),
    "Namespace": Scenario(
        kind=primitives.Namespace,
        content={},
        change=set_version_label,
        changed=LABELLED,
        drift=RELABELLED,
        ready="Operational",
        first="True Operational",
    ),
    "CustomResourceDefinition": Scenario(
        kind=primitives.CustomResourceDefinition,
        content=definition(f"{NAMESPACE}.konverge.test", "Gadget", "gadgets"),
        change=build_field_setter("spec", "names", "shortNames", to=["gt"]),
        changed=("spec.names.shortNames.0", "gt"),
        drift=RELABELLED,
        ready="Operational",
        first=None,  # the embedded cluster establishes it at once
    ),
}
"""By the name of the primitive."""

CROSS_SCOPE = ("ClusterRole", "ClusterRoleBinding", "PersistentVolume", "ConfigMap", "Deployment")
"""Those that an owner outside namespaces goes through too: kinds of both scopes."""
