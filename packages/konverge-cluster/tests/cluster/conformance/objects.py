"""Short desired objects, and the kinds by name."""

from __future__ import annotations

from typing import Any

from konverge.kube import GroupVersionKind, Object

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SECRET = GroupVersionKind("", "v1", "Secret")
SERVICE = GroupVersionKind("", "v1", "Service")
POD = GroupVersionKind("", "v1", "Pod")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
REPLICA_SET = GroupVersionKind("apps", "v1", "ReplicaSet")
STATEFUL_SET = GroupVersionKind("apps", "v1", "StatefulSet")
DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
JOB = GroupVersionKind("batch", "v1", "Job")
ENDPOINT_SLICE = GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice")
CUSTOM_RESOURCE_DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

IMAGE = "konverge.test/app:1"
SLOW_IMAGE = "konverge.test/slow:1"
NEVER_READY_IMAGE = "konverge.test/never-ready:1"
FAILING_IMAGE = "konverge.test/failing:1"


def new(gvk: GroupVersionKind, namespace: str, name: str, **rest: Any) -> Object:
    """Return an object of that kind; `metadata` in the rest is added to the name and namespace."""
    metadata = {"name": name, "namespace": namespace} | rest.pop("metadata", {})
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **rest}


def config_map(
    namespace: str, name: str = "settings", /, *, labels: dict[str, str] | None = None, **data: str
) -> Object:
    """Return a ConfigMap with that data."""
    return new(CONFIG_MAP, namespace, name, metadata={"labels": labels} if labels else {}, data=data)


def build_owner_metadata(owner: Object, *, blocking: bool = False) -> Object:
    """Return metadata that makes an object a dependent of the owner."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {"ownerReferences": [reference | ({"blockOwnerDeletion": True} if blocking else {})]}


def pod_spec(image: str = IMAGE, **rest: Any) -> Object:
    """Return the spec of a pod with one container."""
    return {"containers": [{"name": "app", "image": image}], **rest}


def deployment(namespace: str, name: str = "web", /, *, image: str = IMAGE, **spec: Any) -> Object:
    """Return a Deployment whose pods are labeled ``app: <name>``."""
    return new(DEPLOYMENT, namespace, name, spec={**_pods_of(name, image), **spec})


def stateful_set(namespace: str, name: str = "db", /, *, image: str = IMAGE, **spec: Any) -> Object:
    """Return a StatefulSet whose pods are labeled ``app: <name>``."""
    return new(STATEFUL_SET, namespace, name, spec={"serviceName": name, **_pods_of(name, image), **spec})


def daemon_set(namespace: str, name: str = "agent", /, *, image: str = IMAGE) -> Object:
    """Return a DaemonSet for the node."""
    return new(DAEMON_SET, namespace, name, spec=_pods_of(name, image))


def _pods_of(name: str, image: str) -> Object:
    labels = {"app": name}
    return {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec(image)},
    }


def job(namespace: str, name: str = "import", /, *, image: str = IMAGE, **spec: Any) -> Object:
    """Return a Job of one pod."""
    template = {"spec": pod_spec(image, restartPolicy="Never")}
    return new(JOB, namespace, name, spec={"template": template, **spec})


def service(namespace: str, name: str = "web", /, **spec: Any) -> Object:
    """Return a Service for the pods labeled ``app: <name>``."""
    return new(SERVICE, namespace, name, spec={"selector": {"app": name}, "ports": [{"port": 80}], **spec})
