"""A harness for the controllers: an API server in simulated time, with short functions for tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from konverge.clock import SeededEntropy, SimulatedClock
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.controllers import DEFAULT_INTEGRATIONS, ControllerManager
from konverge_cluster._internal.embedded.deletion import Propagation
from konverge_cluster._internal.embedded.storage import StorageChange

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
CONTROLLER_REVISION = GroupVersionKind("apps", "v1", "ControllerRevision")
DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
ENDPOINTS = GroupVersionKind("", "v1", "Endpoints")
ENDPOINT_SLICE = GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice")
JOB = GroupVersionKind("batch", "v1", "Job")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
PERSISTENT_VOLUME_CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
POD = GroupVersionKind("", "v1", "Pod")
REPLICA_SET = GroupVersionKind("apps", "v1", "ReplicaSet")
SERVICE = GroupVersionKind("", "v1", "Service")
STATEFUL_SET = GroupVersionKind("apps", "v1", "StatefulSet")

APP = "konverge.test/app:1"
NEVER_READY = "konverge.test/never-ready:1"
SLOW = "konverge.test/slow:1"


class ControllerHarness:
    """An API server and its controllers. Times are those of the simulated clock."""

    def __init__(self, *, seed: int = 1, integrations: Collection[str] = DEFAULT_INTEGRATIONS) -> None:
        self.clock = SimulatedClock()
        entropy = SeededEntropy(seed)
        self.api = ApiServer(clock=self.clock, entropy=entropy)
        self.players = ControllerManager(self.api, self.clock, entropy, integrations=integrations)
        self.rules = self.players.rules
        self.changes: list[StorageChange] = []
        self.api.subscribe(self.changes.append)

    async def advance(self, seconds: float = 1.0) -> None:
        """Advance the simulated time."""
        await self.clock.sleep(seconds)

    def create(self, obj: Object) -> Object:
        """Create an object as a user does."""
        return self.api.create(GroupVersionKind.of(obj), obj, manager="test")

    def get(self, gvk: GroupVersionKind, name: str, namespace: str = "default") -> Object:
        """Return an object that must exist."""
        return self.api.get(gvk, ObjectKey(namespace, name))

    def find(self, gvk: GroupVersionKind, name: str, namespace: str = "default") -> Object | None:
        """Return an object; None if it does not exist."""
        return self.api.find(gvk, ObjectKey(namespace, name))

    def list_objects(self, gvk: GroupVersionKind, namespace: str = "default") -> list[Object]:
        """Return all objects of a kind in a namespace."""
        return self.api.list(gvk, namespace=namespace)

    def list_names(self, gvk: GroupVersionKind, namespace: str = "default") -> list[str]:
        """Return the names of all objects of a kind in a namespace, sorted."""
        return [obj["metadata"]["name"] for obj in self.list_objects(gvk, namespace)]

    def change_spec(self, gvk: GroupVersionKind, name: str, **fields: Any) -> None:
        """Replace fields of an object's spec."""
        obj = self.get(gvk, name)
        obj["spec"] |= fields
        self.api.update(gvk, obj, manager="test")

    def set_image(self, gvk: GroupVersionKind, name: str, image: str) -> None:
        """Change the image in a workload's template."""
        obj = self.get(gvk, name)
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = image
        self.api.update(gvk, obj, manager="test")

    def delete(
        self, gvk: GroupVersionKind, name: str, propagation: Propagation | None = None, namespace: str = "default"
    ) -> None:
        """Delete an object as a user does."""
        self.api.delete(gvk, ObjectKey(namespace, name), propagation=propagation)

    def list_changes(self, *resources: str) -> list[str]:
        """Return the stored changes, as ``ADDED pods web-1``, optionally only of these resources."""
        return [
            f"{change.type} {change.resource} {change.key.name}"
            for change in self.changes
            if not resources or change.resource in resources
        ]

    @property
    def revision(self) -> int:
        """The revision of the last change."""
        return self.api.storage.revision


def build_template(name: str, image: str = APP, **spec: Any) -> Object:
    """Return a pod template with one container."""
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def build_deployment(name: str = "web", image: str = APP, replicas: int = 1, **spec: Any) -> Object:
    """Return a Deployment; `spec` extends or overrides its spec."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": build_template(name, image),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            **spec,
        },
    }


def build_stateful_set(name: str = "db", image: str = APP, replicas: int = 3, **spec: Any) -> Object:
    """Return a StatefulSet; `spec` extends or overrides its spec."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "serviceName": name,
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": build_template(name, image),
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": 10,
            **spec,
        },
    }


def build_service(name: str = "web", **spec: Any) -> Object:
    """Return a Service that selects ``app=<name>``; `spec` extends or overrides its spec."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec},
    }


def build_config_map(name: str, *owners: Object, **extra: Any) -> Object:
    """Return a ConfigMap with these owner references."""
    metadata: Object = {"name": name, "namespace": "default", **extra}
    if owners:
        metadata["ownerReferences"] = list(owners)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def read_condition(obj: Object, condition_type: str) -> tuple[str, str]:
    """Return the status and the reason of a condition that must exist."""
    found = find_condition(obj, condition_type)
    assert found is not None, f"no condition {condition_type} in {obj.get('status')}"
    return found.status, found.reason


def read_counts(obj: Mapping[str, Any], *names: str) -> tuple[int, ...]:
    """Return numbers of an object's status; an absent number is 0."""
    return tuple((obj.get("status") or {}).get(name, 0) for name in names)
