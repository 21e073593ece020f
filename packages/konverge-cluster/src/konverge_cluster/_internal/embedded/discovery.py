"""Discovery: the served groups, versions and resources, in both formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.access.access_reviews import REVIEWS
from konverge_cluster._internal.embedded.resource_registry import ResourceRegistry, ServedResource

__all__ = [
    "build_aggregated_discovery",
    "build_api_group",
    "build_api_group_list",
    "build_api_resource_list",
    "build_api_versions",
    "list_group_versions",
]

_SUBRESOURCE_VERBS: Mapping[str, tuple[str, ...]] = {
    "binding": ("create",),
    "eviction": ("create",),
    "finalize": ("update",),
    "log": ("get",),
    "scale": ("get", "patch", "update"),
    "status": ("get", "patch", "update"),
    "token": ("create",),
}
# Subresources whose objects have another kind: group, version, kind.
_SUBRESOURCE_KINDS: Mapping[str, tuple[str, str, str]] = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}


def list_group_versions(resources: Iterable[ServedResource]) -> list[tuple[str, str]]:
    """Return the group-versions: the core group first, the others by name, including those of access reviews."""
    group_versions = {(resource.gvk.group, resource.gvk.version) for resource in resources}
    return sorted(group_versions | {(review.group, review.version) for review in REVIEWS})


def build_api_versions() -> Object:
    """Return the document of ``/api``."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def build_api_group_list(resources: ResourceRegistry) -> Object:
    """Return the document of ``/apis``."""
    groups = sorted({group for group, _ in list_group_versions(resources) if group})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_build_group(group, resources) for group in groups]}


def build_api_group(group: str, resources: ResourceRegistry) -> Object | None:
    """Return the document of ``/apis/<group>``; None for an unknown group."""
    if not any(group == known for known, _ in list_group_versions(resources)):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_build_group(group, resources)}


def _build_group(group: str, resources: ResourceRegistry) -> Object:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version} for version in _list_versions(group, resources)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _list_versions(group: str, resources: ResourceRegistry) -> list[str]:
    versions = [version for known, version in list_group_versions(resources) if known == group]
    return sorted(versions, key=_version_priority)


def _version_priority(version: str) -> tuple[int, int, int, str]:
    """Order newer before older, and stable before beta before alpha before others, as for CRD versions."""
    for rank, suffix in enumerate(("", "beta", "alpha")):
        major, _, minor = version.removeprefix("v").partition(suffix) if suffix else (version.removeprefix("v"), "", "")
        if version.startswith("v") and major.isdigit() and (minor.isdigit() or not suffix):
            return rank, -int(major), -int(minor or 0), version
    return 9, 0, 0, version


def build_api_resource_list(group: str, version: str, resources: ResourceRegistry) -> Object | None:
    """Return the document of ``/api/v1`` or ``/apis/<group>/<version>``; None for an unknown version."""
    if (group, version) not in list_group_versions(resources):
        return None
    listed: list[Object] = []
    for resource in _list_resources(group, version, resources):
        mapping = resource.mapping
        entry: Object = {
            "name": mapping.plural,
            "singularName": mapping.singular,
            "namespaced": mapping.namespaced,
            "kind": mapping.gvk.kind,
            "verbs": sorted(mapping.verbs),
        }
        if mapping.short_names:
            entry["shortNames"] = list(mapping.short_names)
        if mapping.categories:
            entry["categories"] = list(mapping.categories)
        listed.append(entry)
        for name in sorted(mapping.subresources):
            listed.append(_build_legacy_subresource(resource, name))
    for review in REVIEWS:
        if (review.group, review.version) == (group, version):
            singular = review.kind.lower()
            listed.append(
                {
                    "name": review.plural,
                    "singularName": singular,
                    "namespaced": review.namespaced,
                    "kind": review.kind,
                    "verbs": ["create"],
                }
            )
    api_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}


def _build_legacy_subresource(resource: ServedResource, name: str) -> Object:
    group, version, kind = _SUBRESOURCE_KINDS.get(name, ("", "", resource.gvk.kind))
    entry: Object = {
        "name": f"{resource.mapping.plural}/{name}",
        "singularName": "",
        "namespaced": resource.mapping.namespaced,
        "kind": kind,
        "verbs": list(_SUBRESOURCE_VERBS[name]),
    }
    if group:
        entry |= {"group": group, "version": version}
    return entry


def build_aggregated_discovery(resources: ResourceRegistry, *, is_core: bool, version: str) -> Object:
    """Return ``/api`` or ``/apis`` in the aggregated format, which contains all resources (``APIGroupDiscoveryList``).

    Args:
        resources: The served resources.
        is_core: True for the core group, False for all others.
        version: The version of the format.
    """
    groups = [""] if is_core else sorted({group for group, _ in list_group_versions(resources) if group})
    items = []
    for group in groups:
        versions = [
            {
                "version": each,
                "resources": [
                    *(_build_aggregated_resource(resource) for resource in _list_resources(group, each, resources)),
                    *(_build_aggregated_reviews(group, each)),
                ],
                "freshness": "Current",
            }
            for each in _list_versions(group, resources)
        ]
        items.append({"metadata": {"name": group} if group else {}, "versions": versions})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _build_aggregated_resource(resource: ServedResource) -> Object:
    mapping = resource.mapping
    entry: Object = {
        "resource": mapping.plural,
        "responseKind": {"group": mapping.gvk.group, "version": mapping.gvk.version, "kind": mapping.gvk.kind},
        "scope": "Namespaced" if mapping.namespaced else "Cluster",
        "singularResource": mapping.singular,
        "verbs": sorted(mapping.verbs),
    }
    if mapping.short_names:
        entry["shortNames"] = list(mapping.short_names)
    if mapping.categories:
        entry["categories"] = list(mapping.categories)
    if mapping.subresources:
        entry["subresources"] = [_build_aggregated_subresource(resource, name) for name in sorted(mapping.subresources)]
    return entry


def _build_aggregated_subresource(resource: ServedResource, name: str) -> Object:
    own = (resource.gvk.group, resource.gvk.version, resource.gvk.kind)
    group, version, kind = _SUBRESOURCE_KINDS.get(name, own)
    return {
        "subresource": name,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "verbs": list(_SUBRESOURCE_VERBS[name]),
    }


def _build_aggregated_reviews(group: str, version: str) -> list[Object]:
    return [
        {
            "resource": review.plural,
            "responseKind": {"group": group, "version": version, "kind": review.kind},
            "scope": "Namespaced" if review.namespaced else "Cluster",
            "singularResource": review.kind.lower(),
            "verbs": ["create"],
        }
        for review in REVIEWS
        if (review.group, review.version) == (group, version)
    ]


def _list_resources(group: str, version: str, resources: ResourceRegistry) -> list[ServedResource]:
    listed = [resource for resource in resources if (resource.gvk.group, resource.gvk.version) == (group, version)]
    return sorted(listed, key=lambda resource: resource.mapping.plural)
