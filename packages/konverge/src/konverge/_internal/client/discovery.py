"""Discovery: the kinds that a server serves, with their paths.

There are two forms. *Aggregated* discovery (apidiscovery.k8s.io, v2 and v2beta1) is one document for ``/api`` and one
for ``/apis``; *legacy* discovery is one document for each group version. Parsing is pure and lenient: an invalid entry
is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from konverge._internal.kube import GroupVersionKind, RestMapping

__all__ = [
    "AGGREGATED_ACCEPT",
    "ServedKinds",
    "is_aggregated",
    "parse_aggregated",
    "parse_group_versions",
    "parse_legacy",
]

AGGREGATED_ACCEPT = ", ".join(
    (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    )
)
"""The Accept header for ``/api`` and ``/apis``; a server without aggregated discovery returns the legacy form."""


@dataclass(frozen=True, slots=True)
class ServedKinds:
    """The kinds that a server serves.

    Args:
        mappings: The mapping of each kind and version, in the server's order (preferred versions first).
        unreachable: The group versions whose server (an aggregated API) did not respond: their kinds are unknown
            rather than absent.
    """

    mappings: tuple[RestMapping, ...] = ()
    unreachable: frozenset[str] = frozenset()
    by_kind: Mapping[GroupVersionKind, RestMapping] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The first mapping wins: a kind may have a second plural, and the preferred one comes first.
        by_kind: dict[GroupVersionKind, RestMapping] = {}
        for mapping in self.mappings:
            by_kind.setdefault(mapping.gvk, mapping)
        object.__setattr__(self, "by_kind", by_kind)

    def list_versions(self, group: str, kind: str) -> tuple[str, ...]:
        """List the served versions of the kind, the preferred one first."""
        return tuple(mapping.gvk.version for mapping in self.mappings if mapping.gvk.group_kind == (group, kind))

    def merge(self, other: ServedKinds) -> ServedKinds:
        """Return the kinds of both."""
        return ServedKinds(self.mappings + other.mappings, self.unreachable | other.unreachable)


def is_aggregated(document: Mapping[str, Any]) -> bool:
    """Return True if a document of ``/api`` or ``/apis`` is in the aggregated form."""
    return document.get("kind") == "APIGroupDiscoveryList"


def parse_aggregated(document: Mapping[str, Any]) -> ServedKinds:
    """Parse an ``APIGroupDiscoveryList`` of aggregated discovery."""
    mappings: list[RestMapping] = []
    unreachable: set[str] = set()
    for group in _iter_mappings(document.get("items")):
        metadata = group.get("metadata")
        group_name = _get_text(metadata.get("name")) if isinstance(metadata, Mapping) else ""
        for version in _iter_mappings(group.get("versions")):
            version_name = _get_text(version.get("version"))
            if version.get("freshness") == "Stale":
                unreachable.add(f"{group_name}/{version_name}" if group_name else version_name)
            for resource in _iter_mappings(version.get("resources")):
                mapping = _parse_aggregated_resource(group_name, version_name, resource)
                if mapping is not None:
                    mappings.append(mapping)
    return ServedKinds(tuple(mappings), frozenset(unreachable))


def _parse_aggregated_resource(group: str, version: str, resource: Mapping[str, Any]) -> RestMapping | None:
    kind = resource.get("responseKind")
    kind_name = _get_text(kind.get("kind")) if isinstance(kind, Mapping) else ""
    plural = _get_text(resource.get("resource"))
    if not (kind_name and plural):
        return None
    return RestMapping(
        gvk=GroupVersionKind(group, version, kind_name),
        plural=plural,
        namespaced=resource.get("scope") == "Namespaced",
        singular=_get_text(resource.get("singularResource")),
        short_names=_get_texts(resource.get("shortNames")),
        verbs=frozenset(_get_texts(resource.get("verbs"))),
        subresources=frozenset(
            _get_text(entry.get("subresource")) for entry in _iter_mappings(resource.get("subresources"))
        ),
        categories=_get_texts(resource.get("categories")),
    )


def parse_group_versions(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Parse the group versions of a legacy document: ``APIVersions`` of ``/api`` or ``APIGroupList`` of ``/apis``.

    The preferred version of a group comes first.
    """
    if document.get("kind") == "APIVersions":
        return _get_texts(document.get("versions"))
    group_versions: list[str] = []
    for group in _iter_mappings(document.get("groups")):
        preferred = group.get("preferredVersion")
        first = _get_text(preferred.get("groupVersion")) if isinstance(preferred, Mapping) else ""
        names = [_get_text(version.get("groupVersion")) for version in _iter_mappings(group.get("versions"))]
        group_versions += sorted((name for name in names if name), key=lambda name: name != first)
    return tuple(group_versions)


def parse_legacy(document: Mapping[str, Any]) -> ServedKinds:
    """Parse an ``APIResourceList``: resources, with their subresources as separate entries (``pods/status``)."""
    group_version = _get_text(document.get("groupVersion"))
    subresources: dict[str, set[str]] = {}
    resources: list[Mapping[str, Any]] = []
    for entry in _iter_mappings(document.get("resources")):
        name, _, subresource = _get_text(entry.get("name")).partition("/")
        if subresource:
            subresources.setdefault(name, set()).add(subresource)
        elif name and _get_text(entry.get("kind")):
            resources.append(entry)
    return ServedKinds(
        tuple(
            RestMapping(
                gvk=GroupVersionKind.parse(group_version, _get_text(entry.get("kind"))),
                plural=_get_text(entry.get("name")),
                namespaced=entry.get("namespaced") is True,
                singular=_get_text(entry.get("singularName")),
                short_names=_get_texts(entry.get("shortNames")),
                verbs=frozenset(_get_texts(entry.get("verbs"))),
                subresources=frozenset(subresources.get(_get_text(entry.get("name")), ())),
                categories=_get_texts(entry.get("categories")),
            )
            for entry in resources
        )
    )


def _iter_mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, Mapping))


def _get_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _get_texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
