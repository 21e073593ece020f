"""The permissions that a box needs, derived from the file alone."""

from __future__ import annotations

from collections.abc import Iterator

from konverge._internal.kube import GroupVersionKind
from konverge._internal.operator import READ, WRITE
from konverge_box._internal.file import KINDS, BoxResource, CustomResource, OperatorBox

__all__ = ["list_uses"]

_RBAC = "rbac.authorization.k8s.io"
_SECRET = GroupVersionKind("", "v1", "Secret")
_JOB = GroupVersionKind("batch", "v1", "Job")
# The API server refuses to grant permissions that the client does not have itself, except with these verbs.
_VERBS_TO_GRANT = {
    "Role": (("roles", "escalate"),),
    "ClusterRole": (("clusterroles", "escalate"),),
    "RoleBinding": (("roles", "bind"), ("clusterroles", "bind")),
    "ClusterRoleBinding": (("clusterroles", "bind"),),
}


def list_uses(box: OperatorBox, declared: CustomResource) -> Iterator[tuple[GroupVersionKind, tuple[str, ...]]]:
    """Return the kinds that the box uses besides the custom resource itself, with the verbs for each.

    Args:
        box: The box.
        declared: One of its custom resources.
    """
    own = declared.resource.gvk
    if declared.on_create or declared.on_reconcile or declared.providers or declared.on_delete:
        yield own, ("patch",)  # annotations record objects that are created once and items of providers
    for entry in declared.cross:
        yield _find_cross_kind(box, entry.crd, entry.api_version, entry.kind), READ
    if any(call.auth is not None and call.auth.secret_ref is not None for call in declared.external):
        yield _SECRET, READ
    if declared.providers:
        yield _SECRET, READ
    for resource in declared.resources:
        yield from _list_resource_uses(resource)
    for step in () if declared.on_delete is None else declared.on_delete.groups:
        if step.run:
            yield _JOB, (*READ, "create", "delete")
        for key, targets in step.delete.items():
            for target in targets:
                kind = KINDS[key].gvk or GroupVersionKind.parse(target.api_version or "", target.kind or "")
                yield kind, (*READ, "delete")


def _list_resource_uses(resource: BoxResource) -> Iterator[tuple[GroupVersionKind, tuple[str, ...]]]:
    gvk = resource.gvk
    yield gvk, (*READ, *WRITE, "delete")
    if gvk.group == _RBAC:
        for plural, verb in _VERBS_TO_GRANT.get(gvk.kind, ()):
            yield GroupVersionKind(_RBAC, "v1", "ClusterRole" if plural == "clusterroles" else "Role"), (verb,)


def _find_cross_kind(box: OperatorBox, crd: str | None, api_version: str | None, kind: str | None) -> GroupVersionKind:
    return box.spec.crds[crd].resource.gvk if crd else GroupVersionKind.parse(api_version or "", kind or "")
