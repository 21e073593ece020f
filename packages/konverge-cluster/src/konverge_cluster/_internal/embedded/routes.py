"""Parsing of URL paths: a resource, an object, a subresource, or a document of the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import unquote

from konverge._internal.kube import ObjectKey
from konverge_cluster._internal.embedded.resource_registry import ResourceRegistry, ServedResource

__all__ = ["RequestTarget", "Verb", "find_verb", "parse_target"]

Verb: TypeAlias = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The target of a request.

    Attributes:
        resource: The resource.
        namespace: The namespace in the path; empty for none.
        name: The name of the object; empty for the collection.
        subresource: The subresource; empty for the object itself.
    """

    resource: ServedResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> ObjectKey:
        """The namespace and name of the object."""
        return ObjectKey(self.namespace, self.name)


def parse_target(path: str, resources: ResourceRegistry) -> RequestTarget | None:
    """Return the target of a path; None if it is not the path of a served resource."""
    match [unquote(step) for step in path.strip("/").split("/")]:
        case ["api", version, *steps]:
            return _parse_resource_target("", version, steps, resources)
        case ["apis", group, version, *steps]:
            return _parse_resource_target(group, version, steps, resources)
        case _:
            return None


def _parse_resource_target(
    group: str, version: str, steps: list[str], resources: ResourceRegistry
) -> RequestTarget | None:
    if not all(steps):
        return None
    match steps:
        # A subresource of a namespace looks like a resource in that namespace.
        case ["namespaces", name, "status" | "finalize" as subresource] if not group:
            resource = resources.find_by_path("", version, "namespaces")
            return None if resource is None else RequestTarget(resource, "", name, subresource)
        case ["namespaces", namespace, plural, *rest]:
            resource = resources.find_by_path(group, version, plural)
            return (
                _parse_object_target(resource, namespace, rest)
                if resource is not None and resource.mapping.namespaced
                else None
            )
        case [plural, *rest]:
            resource = resources.find_by_path(group, version, plural)
            if resource is None or (rest and resource.mapping.namespaced):
                return None
            return _parse_object_target(resource, "", rest)
        case _:
            return None


def _parse_object_target(resource: ServedResource, namespace: str, steps: list[str]) -> RequestTarget | None:
    match steps:
        case []:
            return RequestTarget(resource, namespace)
        case [name]:
            return RequestTarget(resource, namespace, name)
        case [name, subresource] if subresource in resource.mapping.subresources:
            return RequestTarget(resource, namespace, name, subresource)
        case _:
            return None


_OBJECT_VERBS: Mapping[str, Verb] = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS: Mapping[str, Verb] = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


def find_verb(method: str, target: RequestTarget, *, is_watch: bool) -> Verb | None:
    """Return the verb of the request; None if the target does not support the method.

    Args:
        method: The HTTP method.
        target: The target of the path.
        is_watch: True if the query requests a watch.
    """
    if target.subresource in ("binding", "eviction", "token"):
        return "create" if method == "POST" else None
    if target.subresource == "log":
        return "get" if method == "GET" else None
    if target.subresource == "finalize":
        return "update" if method == "PUT" else None
    if target.subresource:
        return _OBJECT_VERBS.get(method) if method != "DELETE" else None
    verb = _OBJECT_VERBS.get(method) if target.name else _COLLECTION_VERBS.get(method)
    if is_watch and verb in ("get", "list"):
        verb = "watch"
    if verb == "create" and target.resource.mapping.namespaced and not target.namespace:
        return None
    return verb if verb in target.resource.mapping.verbs else None
