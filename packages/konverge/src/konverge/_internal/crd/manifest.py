"""The CustomResourceDefinition of a custom resource class (apiextensions.k8s.io/v1)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from konverge._internal.crd.definition import PrintColumn, ResourceDefinition, find_definition
from konverge._internal.crd.status_class import find_status_class
from konverge._internal.kube import Object
from konverge.errors import BuildError

__all__ = ["crd_manifest"]

_GENERATION: Object = {"type": "integer", "format": "int64", "minimum": 0}

# meta/v1 Condition with its limits, from the API documentation.
_CONDITIONS: Object = {
    "type": "array",
    "description": "What the operator reports about the object, one condition a component.",
    "items": {
        "type": "object",
        "properties": {
            "type": {
                "type": "string",
                "maxLength": 316,
                "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            },
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "observedGeneration": _GENERATION,
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "message": {"type": "string", "maxLength": 32768},
        },
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}


def crd_manifest(cls: type[Any], *, conversion: Mapping[str, Any] | None = None) -> Object:
    """Return the CustomResourceDefinition of the class and the other versions of its kind.

    Each call returns a new object. Its fields have a fixed order, so that its text is always the same.

    Args:
        cls: The class of the stored version.
        conversion: The ``clientConfig`` of the webhook that converts between versions (``url``, or ``service`` and
            ``caBundle``). Without one, ``spec.conversion`` is absent and the server changes only the apiVersion.

    Raises:
        konverge.errors.BuildError: The class is not a custom resource, or its definition is external.
    """
    definition = find_definition(cls)
    if definition.is_external:
        raise BuildError(
            f"custom resource {definition.gvk.kind}",
            ["expected a class with its own definition, found one whose definition the cluster already has"],
        )
    names: Object = {
        "kind": definition.gvk.kind,
        "listKind": f"{definition.gvk.kind}List",
        "plural": definition.plural,
        "singular": definition.singular,
    }
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    if definition.categories:
        names["categories"] = list(definition.categories)
    spec: Object = {"group": definition.gvk.group}
    if conversion is not None:
        webhook = {"clientConfig": copy.deepcopy(dict(conversion)), "conversionReviewVersions": ["v1"]}
        spec["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    spec["names"] = names
    spec["scope"] = "Namespaced" if definition.namespaced else "Cluster"
    spec["versions"] = [_build_version(found, is_stored=found is definition) for found in definition.versions]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition.name},
        "spec": spec,
    }


def _build_version(definition: ResourceDefinition, *, is_stored: bool) -> Object:
    version: Object = {"name": definition.gvk.version, "served": definition.is_served, "storage": is_stored}
    if definition.deprecation is not None:
        version["deprecated"] = True
        if definition.deprecation:
            version["deprecationWarning"] = definition.deprecation
    if definition.print_columns:
        version["additionalPrinterColumns"] = [_build_column(column) for column in definition.print_columns]
    if definition.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in definition.selectable_fields]
    version["schema"] = {"openAPIV3Schema": _build_root_schema(definition)}
    version["subresources"] = {"status": {}}
    if definition.scale is not None:
        version["subresources"]["scale"] = definition.scale.to_manifest()
    return version


def _build_root_schema(definition: ResourceDefinition) -> Object:
    schema = copy.deepcopy(definition.schema)
    declared = schema["properties"]
    status = declared.get("status", {"type": "object", "properties": {}})
    status = {name: value for name, value in status.items() if name not in ("default", "nullable")}
    typed = find_status_class(definition.cls)
    own = {"observedGeneration": dict(_GENERATION)} if typed is not None and typed.names else {}
    status["properties"] = {"conditions": copy.deepcopy(_CONDITIONS), **own, **status["properties"]}
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": declared["spec"],
        "status": status,
    }
    required = [name for name in schema.get("required", []) if name == "spec"]
    root: Object = {"type": "object"}
    if "description" in schema:
        root["description"] = schema["description"]
    root["properties"] = properties
    if required:
        root["required"] = required
    rules = [*schema.get("x-kubernetes-validations", ()), *(rule.to_manifest() for rule in definition.rules)]
    if rules:
        root["x-kubernetes-validations"] = rules
    return root


def _build_column(column: PrintColumn) -> Object:
    found: Object = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.description:
        found["description"] = column.description
    if column.priority:
        found["priority"] = column.priority
    return found
