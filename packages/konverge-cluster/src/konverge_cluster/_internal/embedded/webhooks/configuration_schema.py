"""The schemas of ValidatingWebhookConfigurations and MutatingWebhookConfigurations, with their defaults."""

from __future__ import annotations

from typing import Any

from konverge._internal.apply import Schema, build_custom_resource_schema

__all__ = ["MUTATING", "VALIDATING", "build_configuration_schema"]

VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
"""The storage name of the configurations of validating webhooks."""
MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
"""The storage name of the configurations of mutating webhooks."""

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "atomic"}
_INTEGER = {"type": "integer", "format": "int32"}
_SELECTOR = {
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "default": {},
    "properties": {
        "matchLabels": {"type": "object", "additionalProperties": _TEXT},
        "matchExpressions": {
            "type": "array",
            "items": {"type": "object", "properties": {"key": _TEXT, "operator": _TEXT, "values": _TEXTS}},
        },
    },
}
_CLIENT_CONFIG = {
    "type": "object",
    "properties": {
        "url": _TEXT,
        "caBundle": {"type": "string", "format": "byte"},
        "service": {
            "type": "object",
            "properties": {
                "name": _TEXT,
                "namespace": _TEXT,
                "path": _TEXT,
                "port": {**_INTEGER, "default": 443},
            },
        },
    },
}
_RULE = {
    "type": "object",
    "properties": {
        "apiGroups": _TEXTS,
        "apiVersions": _TEXTS,
        "operations": _TEXTS,
        "resources": _TEXTS,
        "scope": {"type": "string", "default": "*"},
    },
}
_CONDITIONS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": _TEXT, "expression": _TEXT}},
}


def build_configuration_schema(*, is_mutating: bool) -> Schema:
    """Return the schema of the kind."""
    webhook: dict[str, Any] = {
        "name": _TEXT,
        "clientConfig": _CLIENT_CONFIG,
        "rules": {"type": "array", "items": _RULE, "x-kubernetes-list-type": "atomic"},
        "failurePolicy": {"type": "string", "default": "Fail"},
        "matchPolicy": {"type": "string", "default": "Equivalent"},
        "namespaceSelector": _SELECTOR,
        "objectSelector": _SELECTOR,
        "sideEffects": _TEXT,
        "timeoutSeconds": {**_INTEGER, "default": 10},
        "admissionReviewVersions": _TEXTS,
        "matchConditions": _CONDITIONS,
    }
    if is_mutating:
        webhook["reinvocationPolicy"] = {"type": "string", "default": "Never"}
    webhooks = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": webhook},
    }
    return build_custom_resource_schema({"type": "object", "properties": {"webhooks": webhooks}})
