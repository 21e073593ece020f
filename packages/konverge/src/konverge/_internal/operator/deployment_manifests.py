"""The manifests that run an operator in a cluster: Deployment, PodDisruptionBudget, and Service for metrics.

They contain what all operators share: a Pod without privileges, probes, a termination grace period, and one active
replica with standbys. Other modules have the roles and the specific parts. Pure; the result is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.operator.permission_derivation import RuntimeFeatures

__all__ = ["DEPLOYED_FEATURES", "DeployedOperator", "build_deployment_manifests"]

DEPLOYED_FEATURES = RuntimeFeatures(elects_leader=True, authenticates_metrics=True)
"""The features of a deployed operator that require permissions."""

_GRACE_SECONDS = 45
_TERMINATION_SECONDS = 60
_USER = 65532
_METRICS, _PROBES = 8080, 8081


@dataclass(frozen=True, slots=True)
class DeployedOperator:
    """The parameters of an operator's deployment.

    Args:
        name: The name of the operator, its objects and its ServiceAccount.
        namespace: The namespace of the operator.
        kind: The value of the label ``app.kubernetes.io/name``.
        generator: The value of the label ``app.kubernetes.io/managed-by``.
        image: The image, whose entry point is ``konverge``.
        command: The arguments before the common ones.
        replicas: The number of replicas; one is active.
        watched_namespaces: The namespaces of the custom resources; all if empty.
        temporary_folder: The size limit of ``/tmp``.
        memory: The memory limit.
        environment_from: An optional Secret with environment variables; empty for none.
        volumes: The volumes by name, in addition to ``/tmp``.
        mounts: The mount paths of the volumes by name; read-only.
    """

    name: str
    namespace: str
    kind: str
    generator: str
    image: str
    command: Sequence[str]
    replicas: int = 2
    watched_namespaces: tuple[str, ...] = ()
    temporary_folder: str = "64Mi"
    memory: str = "512Mi"
    environment_from: str = ""
    volumes: dict[str, Object] = field(default_factory=dict)
    mounts: dict[str, str] = field(default_factory=dict)

    @property
    def selector_labels(self) -> dict[str, str]:
        """The labels that select its Pods."""
        return {"app.kubernetes.io/name": self.kind, "app.kubernetes.io/instance": _to_label_value(self.name)}

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all its objects."""
        return {**self.selector_labels, "app.kubernetes.io/managed-by": self.generator}

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the objects with the operator's name."""
        return {"name": self.name, "namespace": self.namespace, "labels": self.labels}

    def add_labels(self, objects: Iterable[Object]) -> list[Object]:
        """Return copies of the objects with its labels."""
        return [{**obj, "metadata": {**obj["metadata"], "labels": self.labels}} for obj in objects]


def build_deployment_manifests(operator: DeployedOperator) -> list[Object]:
    """Build the Service, the PodDisruptionBudget and the Deployment."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": operator.metadata,
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": operator.selector_labels}},
    }
    return [_build_service(operator), budget, _build_deployment(operator)]


def _to_label_value(name: str) -> str:
    """Convert a name to a label value: at most 63 characters, with a letter or a digit at the end."""
    return name[:63].rstrip("-.")


def _build_service(operator: DeployedOperator) -> Object:
    name = f"{_to_label_value(operator.name)[:55].rstrip('-.')}-metrics".replace(".", "-")
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**operator.metadata, "name": name},
        "spec": {
            "selector": operator.selector_labels,
            "ports": [{"name": "metrics", "port": _METRICS, "targetPort": "metrics", "protocol": "TCP"}],
        },
    }


def _build_deployment(operator: DeployedOperator) -> Object:
    volumes = [
        *({"name": name, **volume} for name, volume in operator.volumes.items()),
        {"name": "tmp", "emptyDir": {"sizeLimit": operator.temporary_folder}},
    ]
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": operator.selector_labels},
    }
    pod = {
        "serviceAccountName": operator.name,
        "terminationGracePeriodSeconds": _TERMINATION_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [spread],
        "containers": [_build_container(operator)],
        "volumes": volumes,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": operator.metadata,
        "spec": {
            "replicas": operator.replicas,
            "selector": {"matchLabels": operator.selector_labels},
            "template": {"metadata": {"labels": operator.labels}, "spec": pod},
        },
    }


def _build_container(operator: DeployedOperator) -> dict[str, Any]:
    arguments = [
        *operator.command,
        "--leader-elect",  # with one replica, too: there are two during a rolling update
        f"--grace={_GRACE_SECONDS}",
        f"--metrics=:{_METRICS}",
        "--metrics-auth",
        f"--probes=:{_PROBES}",
        "--log-format=json",
        *(f"--namespace={namespace}" for namespace in operator.watched_namespaces),
    ]
    container: dict[str, Any] = {
        "name": "operator",
        "image": operator.image,
        "args": arguments,
        "ports": [
            {"name": "metrics", "containerPort": _METRICS, "protocol": "TCP"},
            {"name": "probes", "containerPort": _PROBES, "protocol": "TCP"},
        ],
        "startupProbe": _build_probe("/livez", period=2, failures=30),
        "livenessProbe": _build_probe("/livez", period=20, failures=3),
        "readinessProbe": _build_probe("/readyz", period=10, failures=3),
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": operator.memory}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            *({"name": name, "mountPath": path, "readOnly": True} for name, path in operator.mounts.items()),
            {"name": "tmp", "mountPath": "/tmp"},  # an emptyDir of the Pod
        ],
    }
    if operator.environment_from:
        container["envFrom"] = [{"secretRef": {"name": operator.environment_from, "optional": True}}]
    return container


def _build_probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "probes"}, "periodSeconds": period, "failureThreshold": failures}
