"""Kinds and objects for the tests of the embedded server."""

from __future__ import annotations

from typing import Any

from konverge.kube import GroupVersionKind, Object, ObjectKey

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
CORE_EVENT = GroupVersionKind("", "v1", "Event")
DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
JOB = GroupVersionKind("batch", "v1", "Job")
LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
POD = GroupVersionKind("", "v1", "Pod")
SECRET = GroupVersionKind("", "v1", "Secret")
SERVICE = GroupVersionKind("", "v1", "Service")
STATEFUL_SET = GroupVersionKind("apps", "v1", "StatefulSet")
WEBAPP = GroupVersionKind("demo.konverge.dev", "v1", "WebApp")
WEBAPP_BETA = GroupVersionKind("demo.konverge.dev", "v1beta1", "WebApp")


def key(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey(namespace, name)


def config_map(name: str = "settings", namespace: str = "default", /, **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


def pod(name: str = "web", **spec: Any) -> Object:
    spec.setdefault("containers", [{"name": "app", "image": "konverge.test/app:1"}])
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def deployment(name: str = "web", **spec: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": workload(**spec)}


def workload(**spec: Any) -> Object:
    labels = {"app": "web"}
    container = {"name": "app", "image": "konverge.test/app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"selector": {"matchLabels": labels}, "template": template, **spec}


def service(name: str = "web", **spec: Any) -> Object:
    spec.setdefault("ports", [{"port": 80}])
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def webapp(name: str = "shop", **spec: Any) -> Object:
    return {
        "apiVersion": WEBAPP.api_version,
        "kind": WEBAPP.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"image": "shop:1", **spec},
    }


WEBAPP_SCHEMA: Object = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["image"],
            "properties": {
                "image": {"type": "string", "minLength": 3, "pattern": "^[a-z]"},
                "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
                "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10},
                "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 0.25},
                "hosts": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "ports": {
                    "type": "array",
                    "maxItems": 3,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "port": {"x-kubernetes-int-or-string": True},
                            "protocol": {"type": "string", "default": "TCP"},
                        },
                    },
                },
                "limits": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}},
                "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "note": {"type": "string", "nullable": True},
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "source": {
                    "type": "object",
                    "properties": {"git": {"type": "string"}, "oci": {"type": "string"}},
                    "oneOf": [{"required": ["git"]}, {"required": ["oci"]}],
                },
                "since": {"type": "string", "format": "date-time"},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                    },
                },
            },
        },
    },
}


def webapp_definition(**version: Any) -> Object:
    served = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": WEBAPP_SCHEMA},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
            {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Image", "type": "string", "jsonPath": ".spec.image", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        **version,
    }
    return {
        "metadata": {"name": "webapps.demo.konverge.dev"},
        "spec": {
            "group": "demo.konverge.dev",
            "scope": "Namespaced",
            "names": {"plural": "webapps", "kind": "WebApp", "shortNames": ["wa"], "categories": ["all"]},
            "versions": [served],
        },
    }
