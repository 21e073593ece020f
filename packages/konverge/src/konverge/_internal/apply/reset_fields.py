"""The paths that each endpoint of a kind resets to their stored value on every write.

So a write there neither changes them nor makes the writer their owner. The rules are those of the API server's
strategies.
"""

from __future__ import annotations

from konverge._internal.apply.field_set import EMPTY, FieldSet
from konverge._internal.kube import GroupVersionKind

__all__ = ["find_reset_fields"]

_STATUS = FieldSet.of([("f:status",)])
_SPEC = FieldSet.of([("f:spec",)])
_METADATA_AND_SPEC = FieldSet.of([("f:metadata",), ("f:spec",)])

# Groups that the API server itself serves; all others have custom resources, whose status endpoint is stricter.
_BUILTIN_GROUPS = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)

_STATUS_ENDPOINTS = {
    ("apps", "Deployment"): FieldSet.of([("f:spec",), ("f:metadata", "f:labels")]),
    ("", "Pod"): FieldSet.of([("f:spec",), ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")]),
    ("storage.k8s.io", "VolumeAttachment"): _METADATA_AND_SPEC,
    ("networking.k8s.io", "ServiceCIDR"): _METADATA_AND_SPEC,
}


def find_reset_fields(gvk: GroupVersionKind, subresource: str = "") -> FieldSet:
    """Return the paths that the endpoint resets.

    For a custom resource without a status subresource, ``status`` is a field like any other: use an empty set instead
    of this function.
    """
    if not subresource:
        return _STATUS
    if subresource != "status":
        return EMPTY
    paths = _STATUS_ENDPOINTS.get(gvk.group_kind)
    if paths is not None:
        return paths
    return _SPEC if gvk.group in _BUILTIN_GROUPS else _METADATA_AND_SPEC
