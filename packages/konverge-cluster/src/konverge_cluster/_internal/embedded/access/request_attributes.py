"""The attributes of a request for authorization, derived only from its path and query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from konverge._internal.kube.selectors import FieldSelector, SelectorSyntaxError

__all__ = ["RequestAttributes", "parse_attributes"]

_OBJECT_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_COLLECTION_VERBS = {**_OBJECT_VERBS, "GET": "list", "HEAD": "list", "DELETE": "deletecollection"}
_NAMESPACE_PARTS = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class RequestAttributes:
    """The action that a request asks permission for.

    Attributes:
        verb: The API verb.
        group: The API group.
        resource: The plural name; empty for a path that is not a resource.
        subresource: The subresource; empty for the object itself.
        namespace: The namespace; empty for cluster scope.
        name: The name of the object; empty for the collection.
        path: The path if it is not a resource.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """The resource with its subresource, for example ``deployments/scale``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def parse_attributes(method: str, path: str, query: Mapping[str, str], *, is_watch: bool) -> RequestAttributes:
    """Derive the attributes from a request.

    Args:
        method: The HTTP method.
        path: The percent-encoded path.
        query: The query parameters.
        is_watch: True if the query requests a watch.
    """
    match [unquote(step) for step in path.strip("/").split("/")]:
        case ["api", _, *steps] if steps:
            return _parse_resource_attributes(method, "", steps, query, is_watch=is_watch)
        case ["apis", group, _, *steps] if steps:
            return _parse_resource_attributes(method, group, steps, query, is_watch=is_watch)
        case _:
            return RequestAttributes(_OBJECT_VERBS.get(method, method.lower()), path=path)


def _parse_resource_attributes(
    method: str, group: str, steps: list[str], query: Mapping[str, str], *, is_watch: bool
) -> RequestAttributes:
    namespace = ""
    if steps[0] == "namespaces" and len(steps) > 1:
        namespace = steps[1]
        if len(steps) > 2 and steps[2] not in _NAMESPACE_PARTS:
            steps = steps[2:]
    resource, name, subresource = (*steps, "", "")[:3]
    if is_watch and method == "GET":
        verb = "watch"
    else:
        verb = (_OBJECT_VERBS if name else _COLLECTION_VERBS).get(method, method.lower())
    if not name and verb in ("list", "watch", "deletecollection"):
        name = _parse_selected_name(query.get("fieldSelector", ""))
    return RequestAttributes(verb, group, resource, subresource, namespace, name)


def _parse_selected_name(field_selector: str) -> str:
    """Return the single name that a field selector requires; a role can allow a list of just that object."""
    try:
        requirements = FieldSelector.parse(field_selector).requirements
    except SelectorSyntaxError:
        return ""
    for requirement in requirements:
        if requirement.field == "metadata.name" and requirement.equal:
            return requirement.value
    return ""
