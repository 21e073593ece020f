"""A custom resource with each feature of a structural schema."""

from __future__ import annotations

from typing import Any

from konverge.errors import KindNotServedError
from konverge.kube import GroupVersionKind, Object
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import new

SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "colour": {"type": "string", "enum": ["blue", "red"], "default": "blue"},
        "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "weight": {"type": "integer", "default": 1}},
            },
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "order": {"type": "array", "items": {"type": "string"}},
        "port": {"x-kubernetes-int-or-string": True},
    },
}
STATUS = {
    "type": "object",
    "properties": {"phase": {"type": "string"}, "observedGeneration": {"type": "integer"}},
}


class Widgets:
    """The kind ``Widget`` in a group on one cluster."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._cluster = cluster
        self.group = group
        self.gvk = GroupVersionKind(group, "v1", "Widget")

    def definition(self, **version: Any) -> Object:
        """Return the CustomResourceDefinition; `version` replaces parts of its only version."""
        schema = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"]},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                        "subresources": {"status": {}},
                        **version,
                    }
                ],
            },
        }

    async def is_served(self) -> bool:
        """Return True if instances can be listed, which discovery reports earlier."""
        try:
            await self._cluster.client.list(self.gvk)
        except KindNotServedError:
            return False
        return True

    def new(self, name: str = "one", /, metadata: Object | None = None, **spec: Any) -> Object:
        """Return a desired Widget, of size 1 unless the spec overrides it."""
        return new(self.gvk, self._cluster.namespace, name, metadata=metadata or {}, spec={"size": 1, **spec})
