"""The queries and bodies of writes, except bodies that are the object itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, is_deleting

__all__ = [
    "PATCH_CONTENT_TYPES",
    "POD",
    "FieldValidation",
    "PatchType",
    "Propagation",
    "build_delete_options",
    "build_eviction",
    "build_scale_patch",
    "build_write_query",
    "is_still_present",
    "strip_managed_fields",
]

PatchType: TypeAlias = Literal["apply", "json", "merge", "strategic"]
"""The type of a patch."""

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]
"""The propagation of a delete to the objects that the deleted object owns."""

FieldValidation: TypeAlias = Literal["Strict", "Warn", "Ignore"]
"""The server's reaction to unknown and duplicate fields: reject, warn (its default), or drop."""

PATCH_CONTENT_TYPES: Mapping[str, str] = {
    "apply": "application/apply-patch+yaml",  # JSON is YAML
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}

POD = GroupVersionKind("", "v1", "Pod")


def build_write_query(
    *, field_manager: str = "", dry_run: bool = False, field_validation: FieldValidation | None = None
) -> dict[str, str]:
    """Build the query of a create, an update or a patch; empty values are not sent."""
    return {
        "fieldManager": field_manager,
        "dryRun": "All" if dry_run else "",
        "fieldValidation": field_validation or "",
    }


def build_delete_options(
    *,
    uid: str | None = None,
    resource_version: str | None = None,
    propagation: Propagation | None = None,
    grace_period_seconds: int | None = None,
    dry_run: bool = False,
) -> Object:
    """Build the body of a delete (meta/v1 ``DeleteOptions``)."""
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    if dry_run:
        options["dryRun"] = ["All"]
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if any(value is not None for value in preconditions.values()):
        options["preconditions"] = {name: value for name, value in preconditions.items() if value is not None}
    return options


def build_eviction(key: ObjectKey, options: Object) -> Object:
    """Build the body of a request for a Pod's eviction (policy/v1)."""
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}


def build_scale_patch(replicas: int, resource_version: str | None) -> Object:
    """Build the merge patch of a scale subresource."""
    patch: Object = {"spec": {"replicas": replicas}}
    if resource_version is not None:
        patch["metadata"] = {"resourceVersion": resource_version}
    return patch


def strip_managed_fields(obj: Object) -> Object:
    """Return the object without its managedFields, which only the server changes."""
    metadata = obj.get("metadata")
    if not (isinstance(metadata, Mapping) and "managedFields" in metadata):
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def is_still_present(obj: Object) -> bool:
    """Return True if the object in the response to a DELETE still exists.

    Some kinds return the object even after it was removed: it then has no finalizer and no grace period.
    """
    metadata = obj.get("metadata") or {}
    return is_deleting(obj) and bool(metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"))
