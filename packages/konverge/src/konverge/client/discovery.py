"""Discovery: which kinds a server serves, and where.

Two forms of the same knowledge. *Aggregated* discovery (apidiscovery.k8s.io, v2 and v2beta1) is one document for
``/api`` and one for ``/apis``; *legacy* discovery is one document a group version. Parsing is pure and lenient: an
entry that makes no sense is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from konverge.kube import GroupVersionKind, RestMapping

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
"""What to accept for ``/api`` and ``/apis``: a server without aggregated discovery answers in the legacy form."""


@dataclass(frozen=True, slots=True)
class ServedKinds:
    """What a server serves.

    Args:
        mappings: One for each kind and version, in the server's order (preferred versions first).
        unreachable: The group versions whose server (an aggregated API) did not answer: their kinds are unknown rather
            than absent.
    """

    mappings: tuple[RestMapping, ...] = ()
    unreachable: frozenset[str] = frozenset()
    by_kind: Mapping[GroupVersionKind, RestMapping] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The first wins: a kind may be served under a second plural, and the preferred one comes first.
        by_kind: dict[GroupVersionKind, RestMapping] = {}
        for mapping in self.mappings:
            by_kind.setdefault(mapping.gvk, mapping)
        object.__setattr__(self, "by_kind", by_kind)

    def list_versions(self, group: str, kind: str) -> tuple[str, ...]:
        """The versions in which the kind is served, the preferred one first."""
        return tuple(found.gvk.version for found in self.mappings if found.gvk.group_kind == (group, kind))

    def merge(self, other: ServedKinds) -> ServedKinds:
        """Both together."""
        return ServedKinds(self.mappings + other.mappings, self.unreachable | other.unreachable)


def is_aggregated(document: Mapping[str, Any]) -> bool:
    """Tell whether a document of ``/api`` or ``/apis`` is in the aggregated form."""
    return document.get("kind") == "APIGroupDiscoveryList"


def parse_aggregated(document: Mapping[str, Any]) -> ServedKinds:
    """Read an ``APIGroupDiscoveryList``."""
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
                found = _parse_aggregated_resource(group_name, version_name, resource)
                if found is not None:
                    mappings.append(found)
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
            _get_text(found.get("subresource")) for found in _iter_mappings(resource.get("subresources"))
        ),
        categories=_get_texts(resource.get("categories")),
    )


def parse_group_versions(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The group versions that a legacy document names: ``APIVersions`` of ``/api`` or ``APIGroupList`` of ``/apis``.

    A group's preferred version comes first.
    """
    if document.get("kind") == "APIVersions":
        return _get_texts(document.get("versions"))
    found: list[str] = []
    for group in _iter_mappings(document.get("groups")):
        preferred = group.get("preferredVersion")
        first = _get_text(preferred.get("groupVersion")) if isinstance(preferred, Mapping) else ""
        listed = [_get_text(version.get("groupVersion")) for version in _iter_mappings(group.get("versions"))]
        found += sorted((name for name in listed if name), key=lambda name: name != first)
    return tuple(found)


def parse_legacy(document: Mapping[str, Any]) -> ServedKinds:
    """Read an ``APIResourceList``: resources, and their subresources as entries of their own (``pods/status``)."""
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


def _iter_mappings(found: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(found, list):
        yield from (item for item in found if isinstance(item, Mapping))


def _get_text(found: object) -> str:
    return found if isinstance(found, str) else ""


def _get_texts(found: object) -> tuple[str, ...]:
    return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()
