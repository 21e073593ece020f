"""Knowledge about the values that a Katalog's templates read: their types, and which are always present."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CHILDREN", "KnownFields"]

_WORDS = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "bool",
    "array": "list",
    "object": "map",
}
_ALWAYS_TEXT = {
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("metadata", "uid"),
    ("metadata", "creationTimestamp"),
}
_CROSS_FIELDS = {"found": "", "name": "text", "namespace": "text", "spec": "map", "status": "map"}
_EXTERNAL_FIELDS = {"status": "text", "body": "text", "error": "text", "called": "text"}

CHILDREN: dict[str, str] = {
    "deployment": "deployment",
    "deployments": "deployments",
    "statefulset": "statefulSet",
    "statefulsets": "statefulSets",
    "replicaset": "replicaSet",
    "replicasets": "replicaSets",
    "custom": "custom",
    "service": "service",
    "services": "services",
    "secret": "secret",
    "secrets": "secrets",
    "configmap": "configMap",
    "configmaps": "configMaps",
    "job": "job",
    "jobs": "jobs",
    "cronjob": "cronJob",
    "cronjobs": "cronJobs",
    "pod": "pod",
    "pods": "pods",
    "serviceaccount": "serviceAccount",
    "serviceaccounts": "serviceAccounts",
    "namespace": "namespace",
    "namespaces": "namespaces",
    "ingress": "ingress",
    "ingresses": "ingresses",
    "hpa": "horizontalPodAutoscaler",
    "hpas": "horizontalPodAutoscalers",
    "pdb": "podDisruptionBudget",
    "pdbs": "podDisruptionBudgets",
    "pvc": "persistentVolumeClaim",
    "persistentvolumeclaim": "persistentVolumeClaim",
    "persistentvolumeclaims": "persistentVolumeClaims",
    "pv": "persistentVolume",
    "persistentvolume": "persistentVolume",
    "persistentvolumes": "persistentVolumes",
    "networkpolicy": "networkPolicy",
    "networkpolicies": "networkPolicies",
    "resourcequota": "resourceQuota",
    "resourcequotas": "resourceQuotas",
    "limitrange": "limitRange",
    "limitranges": "limitRanges",
    "role": "role",
    "roles": "roles",
    "rolebinding": "roleBinding",
    "rolebindings": "roleBindings",
    "clusterrole": "clusterRole",
    "clusterroles": "clusterRoles",
    "clusterrolebinding": "clusterRoleBinding",
    "clusterrolebindings": "clusterRoleBindings",
}
"""The names of children in a Katalog, in lowercase, and in a box."""


@dataclass(frozen=True)
class KnownFields:
    """Known types and names at the position of a template.

    Args:
        schema: The schema of the custom resource's spec; None if there is none.
        renamed: Results that have another name in the box: ``("external", "health-check")`` is ``healthCheck``.
        items: The names that forEach defines, each with its type; an empty type is unknown.
        notes: The functions that the Katalog defines, as templates.
    """

    schema: Mapping[str, Any] | None = None
    renamed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    items: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def find_type(self, path: tuple[str, ...]) -> str:
        """Return the type at a path: ``text``, ``number``, ``bool``, ``list``, ``map``; empty if unknown."""
        if path in _ALWAYS_TEXT or path[:2] in (("metadata", "labels"), ("metadata", "annotations")):
            return "text" if path in _ALWAYS_TEXT or len(path) > 2 else "map"
        if len(path) == 1:
            return self.items.get(path[0], "map" if path[0] in ("metadata", "spec", "status") else "")
        if path[0] == "spec":
            found = self._find_schema(path[1:])
            return _WORDS.get(str(found.get("type")), "") if found is not None else ""
        if path[0] == "cross" and len(path) == 3:
            return _CROSS_FIELDS.get(path[2], "")
        return _EXTERNAL_FIELDS.get(path[2], "") if path[0] == "external" and len(path) == 3 else ""

    def is_always_there(self, path: tuple[str, ...]) -> bool:
        """Tell whether every object has the value at a path."""
        if path in _ALWAYS_TEXT or path[0] in self.items:
            return len(path) == 1 or path[0] not in self.items
        if len(path) == 1:
            return path[0] in ("metadata", "spec")
        match path[0]:
            case "spec":
                return self._is_required(path[1:])
            case "cross":
                return len(path) == 2 or (len(path) == 3 and path[2] in _CROSS_FIELDS)
            case "external":
                return len(path) == 2 or (len(path) == 3 and path[2] in _EXTERNAL_FIELDS)
            case "children":
                return len(path) == 2 or (len(path) == 3 and path[2] == "status")
        return False

    def find_item_types(self, path: tuple[str, ...]) -> tuple[str, str]:
        """Return the types of the items of a list, or of the keys and values of a map, at a path."""
        found = self._find_schema(path[1:]) if path[0] == "spec" else None
        if found is None:
            return "", ""
        if found.get("type") == "array" or "items" in found:
            items = found.get("items")
            return (_WORDS.get(str(items.get("type")), "") if isinstance(items, Mapping) else ""), ""
        values = found.get("additionalProperties")
        return "text", (_WORDS.get(str(values.get("type")), "") if isinstance(values, Mapping) else "")

    def _find_schema(self, steps: tuple[str, ...]) -> Mapping[str, Any] | None:
        found: Any = self.schema
        for step in steps:
            properties = found.get("properties") if isinstance(found, Mapping) else None
            found = properties.get(step) if isinstance(properties, Mapping) else None
        return found if isinstance(found, Mapping) else None

    def _is_required(self, steps: tuple[str, ...]) -> bool:
        found: Any = self.schema
        for step in steps:
            if not isinstance(found, Mapping):
                return False
            properties, required = found.get("properties"), found.get("required")
            below = properties.get(step) if isinstance(properties, Mapping) else None
            has_default = isinstance(below, Mapping) and below.get("default") is not None
            if not (has_default or (isinstance(required, list) and step in required)):
                return False
            found = below
        return True
