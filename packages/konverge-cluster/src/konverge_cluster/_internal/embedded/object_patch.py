"""Application of a patch to an object, for all patch types."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from konverge._internal.kube import Object, ObjectKey
from konverge.errors import BadRequestError
from konverge_cluster._internal.embedded import api_errors
from konverge_cluster._internal.embedded.json_patches import apply_json_patch, apply_merge_patch
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.strategic_merge import apply_strategic_merge_patch

__all__ = ["PatchType", "apply_patch", "check_identity"]

PatchType: TypeAlias = Literal["json", "merge", "strategic"]


def apply_patch(resource: ServedResource, obj: Object, patch: Any, patch_type: PatchType) -> Any:
    """Return the patched object; `obj` is not changed.

    Raises:
        BadRequestError: The patch is malformed.
        ApiError: The patch cannot be applied.
    """
    match patch_type:
        case "json":
            return apply_json_patch(obj, patch)
        case "strategic":
            merged = apply_strategic_merge_patch(obj, patch, resource.schema)
            # The patch's kind is not checked, as long as it is a string.
            identity = {name: obj[name] for name in ("kind", "apiVersion") if isinstance(merged.get(name, ""), str)}
            return {**merged, **identity}
        case "merge":
            if not isinstance(patch, dict):
                raise BadRequestError("error decoding patch: a merge patch of an object is a mapping")
            return apply_merge_patch(obj, patch)


def check_identity(body: Any, key: ObjectKey) -> None:
    """Check that a patch does not move an object to another name.

    Raises:
        BadRequestError: The patch changes the name or the namespace.
    """
    metadata = (body.get("metadata") or {}) if isinstance(body, dict) else None
    if isinstance(metadata, dict):
        if not metadata.get("name"):
            raise api_errors.new_missing_name(key.name)
        if metadata["name"] != key.name:
            raise api_errors.new_wrong_name(str(metadata["name"]), key.name)
        if (metadata.get("namespace") or "") != key.namespace:
            raise api_errors.new_wrong_namespace()
