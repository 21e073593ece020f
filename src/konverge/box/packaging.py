"""The manifests that run a box in a cluster: what `kubectl apply` needs, and nothing of Helm.

In goes a box, what it has to be allowed and the definitions that it brings; out come the objects in the order in which
they can be applied. Who wants them otherwise changes the text: they are the same bytes each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from konverge.box.file import OperatorBox
from konverge.errors import ConfigurationError
from konverge.kube import Object, ObjectKey
from konverge.operator.permissions import Permissions
from konverge.operator.roles import manifests

__all__ = ["Packaging", "package"]

_FILE = "box.yaml"
_FOLDER = "/box"
_MAXIMUM_CONFIG_MAP = 1 << 20
_GRACE_SECONDS = 45
_TERMINATION_SECONDS = 60
_USER = 65532
_METRICS, _PROBES = 8080, 8081


@dataclass(frozen=True, slots=True)
class Packaging:
    """What is to be chosen.

    Args:
        image: The image, whose entry point is ``konverge``.
        namespace: Where the operator lives.
        replicas: How many there are, of which one works.
        watched: The namespaces of the custom resources; none for all.
        is_namespace_made: Whether the namespace is among the manifests.
    """

    image: str
    namespace: str = "konverge-system"
    replicas: int = 2
    watched: tuple[str, ...] = ()
    is_namespace_made: bool = True


def package(
    box: OperatorBox, text: str, permissions: Permissions, definitions: Sequence[Object], chosen: Packaging
) -> list[Object]:
    """The manifests, in the order in which they can be applied.

    Args:
        box: The box.
        text: Its file, which the ConfigMap holds as it is.
        permissions: What the operator has to be allowed.
        definitions: The CustomResourceDefinitions that the box brings.
        chosen: What was chosen.

    Raises:
        ConfigurationError: A name is none, or the file does not fit into a ConfigMap.
    """
    if len(text.encode()) + len(_FILE) > _MAXIMUM_CONFIG_MAP:
        raise ConfigurationError(f"the box does not fit into a ConfigMap, which holds {_MAXIMUM_CONFIG_MAP >> 20} MiB")
    name = box.metadata.name
    found: list[Object] = []
    granted = manifests(permissions, ObjectKey(chosen.namespace, name), chosen.watched)
    if chosen.is_namespace_made:
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": chosen.namespace}})
    found += definitions
    found += ({**each, "metadata": {**each["metadata"], "labels": _labels(name)}} for each in granted)
    found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(name, chosen), "data": {_FILE: text}})
    found.append(_service(name, chosen))
    found.append(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _metadata(name, chosen),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _selected(name)}},
        }
    )
    found.append(_deployment(box, chosen))
    return found


def _selected(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": "konverge-box", "app.kubernetes.io/instance": _label(name)}


def _labels(name: str) -> dict[str, str]:
    return {**_selected(name), "app.kubernetes.io/managed-by": "konverge-box-package"}


def _label(name: str) -> str:
    """A name as a label's value, which is at most 63 letters and ends with a letter or a digit."""
    return name[:63].rstrip("-.")


def _metadata(name: str, chosen: Packaging) -> dict[str, Any]:
    return {"name": name, "namespace": chosen.namespace, "labels": _labels(name)}


def _service(name: str, chosen: Packaging) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**_metadata(name, chosen), "name": f"{_label(name)[:55].rstrip('-.')}-metrics".replace(".", "-")},
        "spec": {
            "selector": _selected(name),
            "ports": [{"name": "metrics", "port": _METRICS, "targetPort": "metrics", "protocol": "TCP"}],
        },
    }


def _deployment(box: OperatorBox, chosen: Packaging) -> Object:
    name = box.metadata.name
    volumes = [
        {"name": "box", "configMap": {"name": name}},  # a folder, not one file of it: only folders follow a change
        {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
    ]
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": _selected(name)},
    }
    pod = {
        "serviceAccountName": name,
        "terminationGracePeriodSeconds": _TERMINATION_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [spread],
        "containers": [_container(box, chosen)],
        "volumes": volumes,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(name, chosen),
        "spec": {
            "replicas": chosen.replicas,
            "selector": {"matchLabels": _selected(name)},
            "template": {"metadata": {"labels": _labels(name)}, "spec": pod},
        },
    }


def _container(box: OperatorBox, chosen: Packaging) -> dict[str, Any]:
    arguments = [
        "box",
        "run",
        f"{_FOLDER}/{_FILE}",
        "--leader-elect",  # with one replica, too: while a new version comes, there are two
        f"--grace={_GRACE_SECONDS}",
        f"--metrics=:{_METRICS}",
        "--metrics-auth",
        f"--probes=:{_PROBES}",
        "--log-format=json",
        *(f"--namespace={namespace}" for namespace in chosen.watched),
    ]
    found: dict[str, Any] = {
        "name": "operator",
        "image": chosen.image,
        "args": arguments,
        "ports": [
            {"name": "metrics", "containerPort": _METRICS, "protocol": "TCP"},
            {"name": "probes", "containerPort": _PROBES, "protocol": "TCP"},
        ],
        "startupProbe": _probe("/livez", period=2, failures=30),
        "livenessProbe": _probe("/livez", period=20, failures=3),
        "readinessProbe": _probe("/readyz", period=10, failures=3),
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "box", "mountPath": _FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # a volume of the Pod's own
        ],
    }
    if _reads_environment(box):
        secret = {"name": f"{box.metadata.name}-environment", "optional": True}
        found["envFrom"] = [{"secretRef": secret}]
    return found


def _probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "probes"}, "periodSeconds": period, "failureThreshold": failures}


def _reads_environment(box: OperatorBox) -> bool:
    """Whether a call proves itself with an environment variable."""
    found = (call for declared in box.spec.crds.values() for call in declared.external)
    return any(call.auth is not None and call.auth.env is not None for call in found)
