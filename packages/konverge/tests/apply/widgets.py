"""A custom resource with every merge rule."""

from __future__ import annotations

from typing import Any

from konverge.kube import Object

WIDGET_SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "default": 1},
        "text": {"type": "string"},
        "nothing": {"type": "string", "nullable": True, "default": "something"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "inner": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "B"}},
        },
        "atomic": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "B"}},
        },
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {
                    "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"},
                    "name": {"type": "string"},
                },
            },
        },
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "list": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 5}},
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "port": {"x-kubernetes-int-or-string": True},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}

WIDGET_STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
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
}

WIDGET_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"spec": WIDGET_SPEC, "status": WIDGET_STATUS}}

WIDGETS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.apply.konverge.test"},
    "spec": {
        "group": "apply.konverge.test",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": WIDGET_SCHEMA},
            }
        ],
    },
}


def widget(spec: dict[str, Any] | None = None, *, status: dict[str, Any] | None = None, **metadata: Any) -> Object:
    """Build a Widget without a name; the write adds the name."""
    made: Object = {"apiVersion": "apply.konverge.test/v1", "kind": "Widget", "metadata": metadata}
    if spec is not None:
        made["spec"] = spec
    if status is not None:
        made["status"] = status
    return made
