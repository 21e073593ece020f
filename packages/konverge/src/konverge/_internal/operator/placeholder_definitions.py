"""Definitions for kinds that a private cluster does not serve, for example those of an add-on such as cert-manager.

A cluster of a simulation, a rendering or ``konverge run --local`` has no add-ons. With a definition that accepts any
object, an operator can create objects of their kinds there. No controller works on them.
"""

from __future__ import annotations

from collections.abc import Mapping

from konverge._internal.client import Client
from konverge._internal.crd import crd_manifest, unstructured_resource
from konverge._internal.kube import GroupVersionKind, Object
from konverge.errors import KindNotServedError

__all__ = ["FIELD_MANAGER", "build_placeholder", "install_placeholders"]

FIELD_MANAGER = "konverge-placeholder"
"""The field manager of these definitions."""


async def install_placeholders(client: Client, kinds: Mapping[GroupVersionKind, bool]) -> list[GroupVersionKind]:
    """Apply a definition for each kind that the server does not serve; return these kinds.

    A kind of the core group that Kubernetes does not have stays unknown: no definition can add it.

    Args:
        client: The client of a private cluster. Its cached discovery does not contain the new kinds at once.
        kinds: The kinds, and whether they are namespaced.

    Raises:
        konverge.errors.KonvergeError: The server rejects a definition.
    """
    installed: list[GroupVersionKind] = []
    for gvk, is_namespaced in kinds.items():
        try:
            await client.mapping(gvk)
        except KindNotServedError:
            if gvk.group:
                await client.apply(build_placeholder(gvk, is_namespaced=is_namespaced), field_manager=FIELD_MANAGER)
                installed.append(gvk)
    return installed


def build_placeholder(gvk: GroupVersionKind, *, is_namespaced: bool) -> Object:
    """Build a CustomResourceDefinition that accepts any object of a kind."""
    manifest = crd_manifest(unstructured_resource(gvk, {}, scope="Namespaced" if is_namespaced else "Cluster"))
    if gvk.group.endswith(".k8s.io"):  # the API server requires an approval for this group
        manifest["metadata"].setdefault("annotations", {})["api-approved.kubernetes.io"] = "unapproved, made up"
    for version in manifest["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"] = True
    return manifest
