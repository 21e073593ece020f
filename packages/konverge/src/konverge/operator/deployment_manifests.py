"""The manifests that keep an operator's processes up in a cluster: Deployment, disruption budget, Service for metrics.

What the operator is, and which roles it needs, its own modules say; here is what is the same for all: a Pod with no
rights on its machine, probes, time to end, one replica that works and others that stand by. Pure, and the same bytes
each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from konverge.kube import Object
from konverge.operator.permission_derivation import RuntimeFeatures

__all__ = ["DEPLOYED_FEATURES", "DeployedOperator", "build_deployment_manifests"]

DEPLOYED_FEATURES = RuntimeFeatures(elects_leader=True, authenticates_metrics=True)
"""What such an operator uses besides what it declares."""

_GRACE_SECONDS = 45
_TERMINATION_SECONDS = 60
_USER = 65532
_METRICS, _PROBES = 8080, 8081


@dataclass(frozen=True, slots=True)
class DeployedOperator:
    """An operator as it runs.

    Args:
        name: The operator's, of its objects and of its account.
        namespace: Where it lives.
        kind: What ``app.kubernetes.io/name`` calls such operators.
        generator: What ``app.kubernetes.io/managed-by`` says.
        image: The image, whose entry point is ``konverge``.
        command: The arguments before those that all have.
        replicas: How many there are, of which one works.
        watched_namespaces: The namespaces of the custom resources; none for all.
        temporary_folder: How large ``/tmp`` is.
        memory: The limit of memory.
        environment_from: A Secret with environment variables, which need not be there; empty for none.
        volumes: Volumes by name, besides ``/tmp``.
        mounts: Where they are, by name; read-only.
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
        """The labels by which its Pods are found."""
        return {"app.kubernetes.io/name": self.kind, "app.kubernetes.io/instance": _to_label_value(self.name)}

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all of its objects."""
        return {**self.selector_labels, "app.kubernetes.io/managed-by": self.generator}

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of those that have its name."""
        return {"name": self.name, "namespace": self.namespace, "labels": self.labels}

    def add_labels(self, objects: Iterable[Object]) -> list[Object]:
        """Objects with its labels."""
        return [{**each, "metadata": {**each["metadata"], "labels": self.labels}} for each in objects]


def build_deployment_manifests(operator: DeployedOperator) -> list[Object]:
    """Service, PodDisruptionBudget and Deployment."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": operator.metadata,
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": operator.selector_labels}},
    }
    return [_build_service(operator), budget, _build_deployment(operator)]


def _to_label_value(name: str) -> str:
    """A name as a label's value, which is at most 63 letters and ends with a letter or a digit."""
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
        "--leader-elect",  # with one replica, too: while a new version comes, there are two
        f"--grace={_GRACE_SECONDS}",
        f"--metrics=:{_METRICS}",
        "--metrics-auth",
        f"--probes=:{_PROBES}",
        "--log-format=json",
        *(f"--namespace={namespace}" for namespace in operator.watched_namespaces),
    ]
    found: dict[str, Any] = {
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
            {"name": "tmp", "mountPath": "/tmp"},  # a volume of the Pod's own
        ],
    }
    if operator.environment_from:
        found["envFrom"] = [{"secretRef": {"name": operator.environment_from, "optional": True}}]
    return found


def _build_probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "probes"}, "periodSeconds": period, "failureThreshold": failures}
