"""The custom resource of W1, its five children and its condition, which both programs write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from konverge.crd import Metadata, custom_resource
from konverge.kube import GroupVersionKind, Object

__all__ = ["PARENT", "Parent", "account", "config", "deployment", "is_ready", "new_parent", "secret", "service"]

PARENT = GroupVersionKind("bench.konverge.dev", "v1", "Parent")


@dataclass
class ParentSpec:
    image: str
    greeting: str = "Hello"


@custom_resource(group=PARENT.group, version=PARENT.version)
@dataclass
class Parent:
    """An application with five objects."""

    metadata: Metadata
    spec: ParentSpec


def new_parent(name: str, namespace: str) -> Object:
    """Return a parent as the loader creates it."""
    return {
        "apiVersion": PARENT.api_version,
        "kind": PARENT.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"image": "nginx:1.29", "greeting": "Hello"},
    }


def config(name: str, namespace: str, greeting: str) -> Object:
    """Return the ConfigMap with the settings."""
    data = {"GREETING": greeting, **{f"SETTING_{number}": str(number) for number in range(5)}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _build_metadata(name, namespace), "data": data}


def secret(name: str, namespace: str) -> Object:
    """Return the Secret with the access to a store; base64, as the server stores it."""
    data = {"STORE_URL": "cmVkaXM6Ly9zdG9yZQ=="}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _build_metadata(name, namespace),
        "type": "Opaque",
        "data": data,
    }


def account(name: str, namespace: str) -> Object:
    """Return the ServiceAccount of the pods."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _build_metadata(name, namespace)}


def service(name: str, namespace: str) -> Object:
    """Return the Service in front of the pods."""
    metadata = _build_metadata(name, namespace)
    spec = {"selector": metadata["labels"], "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def deployment(name: str, namespace: str, image: str) -> Object:
    """Return the Deployment, without pods, so that the kubelet is not part of the measurement."""
    metadata = _build_metadata(name, namespace)
    container = {
        "name": "main",
        "image": image,
        "ports": [{"name": "http", "containerPort": 8080}],
        "envFrom": [{"configMapRef": {"name": name}}, {"secretRef": {"name": name}}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    template = {
        "metadata": {"labels": metadata["labels"]},
        "spec": {"serviceAccountName": name, "containers": [container]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": metadata["labels"]}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def is_ready(parent: Mapping[str, Any]) -> bool:
    """Return True if the parent is Ready."""
    conditions = (parent.get("status") or {}).get("conditions") or ()
    return any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)


def _build_metadata(name: str, namespace: str) -> Object:
    return {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/instance": name}}
