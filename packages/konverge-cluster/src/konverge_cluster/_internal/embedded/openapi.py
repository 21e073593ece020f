"""The OpenAPI v3 documents: one for each group-version, generated from the schemas of its resources.

They contain the parts that clients use: the schema of each kind, and for each path its kind and the query parameters of
its operations (kubectl checks them for server-side field validation). Descriptions are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object
from konverge_cluster._internal.embedded.resource_registry import ServedResource

__all__ = ["build_document", "build_index"]

_REFERENCE = "#/components/schemas/"
_KIND_EXTENSION = "x-kubernetes-group-version-kind"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "get": (),
    "post": _WRITE_PARAMETERS,
    "put": _WRITE_PARAMETERS,
    "patch": (*_WRITE_PARAMETERS, "force"),
    "delete": ("dryRun", "gracePeriodSeconds", "propagationPolicy"),
}
_LIST_PARAMETERS = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_BOOLEANS = frozenset({"allowWatchBookmarks", "force", "sendInitialEvents", "watch"})
_INTEGERS = frozenset({"gracePeriodSeconds", "limit", "timeoutSeconds"})
_ACTIONS = {"get": "get", "post": "post", "put": "put", "patch": "patch", "delete": "delete"}


def build_index(group_versions: Iterable[tuple[str, str]], revision: str) -> Object:
    """Return the index of the documents.

    Args:
        group_versions: The served group-versions.
        revision: Changes with the contents of the documents, so that clients can cache them.
    """
    paths = {}
    for group, version in group_versions:
        place = f"apis/{group}/{version}" if group else f"api/{version}"
        paths[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={revision}"}
    return {"paths": paths}


def build_document(resources: Iterable[ServedResource]) -> Object:
    """Return the document of a group-version.

    Args:
        resources: The resources of the group-version.
    """
    paths: Object = {}
    schemas: Object = {}
    for resource in resources:
        name = _build_schema_name(resource)
        spec = resource.schema.spec if not resource.schema.name else resource.schema.definitions.find_spec(name)
        gvk = _to_gvk_object(resource.gvk)
        schemas[name] = {
            **_publish_schema(spec, resource.schema.definitions.find_spec, schemas),
            _KIND_EXTENSION: [gvk],
        }
        _add_paths(resource, name, paths)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _to_gvk_object(gvk: GroupVersionKind) -> Object:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _build_schema_name(resource: ServedResource) -> str:
    if resource.schema.name:
        return resource.schema.name
    gvk = resource.gvk
    return ".".join([*reversed(gvk.group.split(".")), gvk.version, gvk.kind])


def _publish_schema(spec: Any, find: Any, schemas: Object) -> Any:
    """Return a schema node for clients, without internal keywords; add the referenced types to `schemas`."""
    if isinstance(spec, list):
        return [_publish_schema(node, find, schemas) for node in spec]
    if not isinstance(spec, Mapping):
        return spec
    published: Object = {}
    for key, value in spec.items():
        if key.startswith("x-konverge-"):
            continue
        if key == "properties" and isinstance(value, Mapping):
            published[key] = {name: _publish_schema(node, find, schemas) for name, node in value.items()}
        elif key in ("default", "enum", "example", "x-kubernetes-validations"):
            published[key] = value
        else:
            published[key] = _publish_schema(value, find, schemas)
    reference = spec.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix(_REFERENCE)
        if name not in schemas:
            schemas[name] = {}
            schemas[name] = _publish_schema(find(name), find, schemas)
    if spec.get("x-kubernetes-list-type") == "map" and spec.get("x-kubernetes-list-map-keys"):
        published["x-kubernetes-patch-strategy"] = "merge"
        published["x-kubernetes-patch-merge-key"] = spec["x-kubernetes-list-map-keys"][0]
    elif spec.get("x-kubernetes-list-type") == "set":
        published["x-kubernetes-patch-strategy"] = "merge"
    return published


def _add_paths(resource: ServedResource, schema: str, paths: Object) -> None:
    mapping, gvk = resource.mapping, resource.gvk
    group = f"/apis/{gvk.group}" if gvk.group else "/api"
    places = [f"{group}/{gvk.version}/namespaces/{{namespace}}/{mapping.plural}"] if mapping.namespaced else []
    plain = f"{group}/{gvk.version}/{mapping.plural}"
    home = places[0] if places else plain
    paths[home] = _build_operations(resource, schema, ("get", "post", "delete"), is_collection=True)
    if mapping.namespaced:
        paths[plain] = _build_operations(resource, schema, ("get",), is_collection=True)
    paths[f"{home}/{{name}}"] = _build_operations(resource, schema, ("get", "put", "patch", "delete"))
    if "status" in mapping.subresources:
        paths[f"{home}/{{name}}/status"] = _build_operations(resource, schema, ("get", "put", "patch"))


def _build_operations(
    resource: ServedResource, schema: str, methods: Iterable[str], *, is_collection: bool = False
) -> Object:
    operations: Object = {}
    for method in methods:
        names = _LIST_PARAMETERS if is_collection and method in ("get", "delete") else _PARAMETERS[method]
        content = {"application/json": {"schema": {"$ref": _REFERENCE + schema}}}
        operations[method] = {
            "parameters": [{"name": name, "in": "query", "schema": _build_parameter_schema(name)} for name in names],
            "responses": {"200": {"description": "OK", "content": content}},
            "x-kubernetes-action": "list" if is_collection and method == "get" else _ACTIONS[method],
            _KIND_EXTENSION: _to_gvk_object(resource.gvk),
        }
        if method in ("post", "put", "patch"):
            operations[method]["requestBody"] = {"content": content, "required": True}
    return operations


def _build_parameter_schema(name: str) -> Object:
    kind = "boolean" if name in _BOOLEANS else "integer" if name in _INTEGERS else "string"
    return {"type": kind, "uniqueItems": True}
