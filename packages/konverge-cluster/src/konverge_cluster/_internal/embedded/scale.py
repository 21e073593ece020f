"""The scale subresource: the replicas of any scalable kind in one form (autoscaling/v1 ``Scale``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from konverge._internal.apply import ApplyConflictError, FieldSet
from konverge._internal.apply.field_set import field_element
from konverge._internal.apply.managed_fields import (
    Manager,
    ManagerEntry,
    decode_managed_fields,
    encode_managed_fields,
)
from konverge._internal.kube import Object, ObjectKey
from konverge._internal.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge.errors import BadRequestError, ServerError
from konverge_cluster._internal.embedded.api_errors import new_unreadable_patch
from konverge_cluster._internal.embedded.resource_registry import ScalePaths, ServedResource
from konverge_cluster._internal.embedded.validation.field_errors import field_invalid, new_invalid

__all__ = [
    "apply_scale",
    "build_scale",
    "check_patched_type",
    "check_type",
    "get_replicas",
    "has_owner",
    "with_replicas",
    "without_owners",
]

_SCALE_TYPE = "autoscaling/v1, Kind=Scale"
_NO_CONVERSION = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
_BUILTIN = ScalePaths(spec=("spec", "replicas"), status=("status", "replicas"), selector=())


def build_scale(resource: ServedResource, obj: Object) -> Object:
    """Return the Scale of an object."""
    paths = resource.scale or _BUILTIN
    metadata = obj["metadata"]
    metadata_fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    desired, current = _get_path(obj, paths.spec), _get_path(obj, paths.status)
    status: Object = {"replicas": current if isinstance(current, int) else 0}
    selector = _get_path(obj, paths.selector) if paths.selector else _format_selector(resource, obj)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in metadata_fields if name in metadata},
        "spec": {"replicas": desired} if desired else {},
        "status": status,
    }


def with_replicas(resource: ServedResource, obj: Object, scale: Any) -> Object:
    """Return the object with the number of replicas of a Scale; neither argument is changed.

    The resourceVersion and UID of the Scale, if present, are preconditions of the write.

    Raises:
        BadRequestError: The body is not a Scale.
        InvalidError: The number is negative.
    """
    parts = (scale, scale.get("spec", {}), scale.get("metadata") or {}) if isinstance(scale, Mapping) else (scale,)
    if not all(isinstance(part, Mapping) for part in parts):
        raise BadRequestError("the body of a scale request is a Scale")
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        message = "json: cannot unmarshal the value into Go struct field ScaleSpec.spec.replicas of type int32"
        raise BadRequestError(f'Scale in version "v1" cannot be handled as a Scale: {message}')
    metadata = scale.get("metadata") or {}
    # Later validation of a custom resource names its own field instead.
    if replicas < 0 and not resource.is_custom:
        error = field_invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise new_invalid("autoscaling", "Scale", obj["metadata"]["name"], [error])
    guards = {name: metadata[name] for name in ("uid", "resourceVersion") if metadata.get(name)}
    scaled = obj | {"metadata": {**obj["metadata"], **guards}}
    paths = resource.scale or _BUILTIN
    return _set_path(scaled, paths.spec, replicas)


def check_type(resource: ServedResource, scale: Any) -> None:
    """Check the type of the body of a PUT; a Scale can lack its apiVersion, its kind or both.

    Raises:
        BadRequestError: The body has another type.
    """
    version, kind = _get_type(scale)
    if (version or "autoscaling/v1", kind or "Scale") == ("autoscaling/v1", "Scale"):
        return
    if resource.is_custom:
        raise BadRequestError(f"no kind is registered for the type v1.Scale {_SCHEME}")
    number = version.rpartition("/")[2] or "v1"
    what = f"converting ({number}.{kind or 'Scale'}) to (autoscaling.Scale): unknown conversion"
    raise BadRequestError(f'{kind or "Scale"} in version "{number}" cannot be handled as a Scale: {what}')


def check_patched_type(resource: ServedResource, scale: Any, name: str) -> None:
    """Check the type of a patched Scale.

    Raises:
        BadRequestError: The patch has removed the type of the Scale of a built-in kind.
        InvalidError: The patch has changed the type.
    """
    version, kind = _get_type(scale)
    if not version and not kind and not resource.is_custom:
        raise BadRequestError(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if (version or "autoscaling/v1", kind or "Scale") != ("autoscaling/v1", "Scale"):
        unknown = f'no kind "{kind or "Scale"}" is registered for version "{version or "autoscaling/v1"}" {_SCHEME}'
        raise new_unreadable_patch(unknown)


def without_owners(resource: ServedResource, obj: Object) -> Object:
    """Return the object without owners of its replicas, as the real server leaves a custom resource.

    It does so for a Scale without an apiVersion: it cannot find the fields of such a body.
    """
    path = _build_path(resource)
    managed = decode_managed_fields(obj["metadata"].get("managedFields"))
    for owner, entry in list(managed.items()):
        fields = entry.fields - FieldSet.of((path,))
        managed[owner] = replace(entry, fields=fields)
        if not fields:
            del managed[owner]
    return obj | {"metadata": {**obj["metadata"], "managedFields": encode_managed_fields(managed)}}


def has_owner(resource: ServedResource, obj: Object) -> bool:
    """Return True if a manager owns the replicas of the object."""
    path = _build_path(resource)
    managed = decode_managed_fields(obj["metadata"].get("managedFields"))
    return any(path in entry.fields for entry in managed.values())


def get_replicas(resource: ServedResource, obj: Object) -> Any:
    """Return the desired number of replicas as it is in the object; None if absent."""
    return _get_path(obj, (resource.scale or _BUILTIN).spec)


def apply_scale(resource: ServedResource, obj: Object, scale: Any, *, manager: str, force: bool) -> Object:
    """Return the object with the replicas of an applied Scale, and its manager as their owner.

    The real server cannot apply the scale of a custom resource: it cannot convert a Scale to the custom resource.

    Raises:
        BadRequestError: The configuration is not a Scale.
        ApplyConflictError: Other managers own replicas that the configuration changes, and `force` is off.
        ServerError: The configuration has unknown fields, or the object is a custom resource.
    """
    body: Mapping[str, Any] = scale if isinstance(scale, Mapping) else {}
    version, kind = _get_type(scale)
    if (version, kind) != ("autoscaling/v1", "Scale"):
        raise BadRequestError(f"invalid object type: {version if '/' in version else f'/{version}'}, Kind={kind}")
    key = ObjectKey.of(obj)
    spec = body.get("spec") or {}
    unknown = next((name for name in spec if name != "replicas"), None) if isinstance(spec, Mapping) else "spec"
    if unknown is not None:
        what = f"failed to create typed patch object (/{key.name}; {_SCALE_TYPE})"
        raise ServerError(f"{what}: .spec.{unknown}: field not declared in schema", reason="", code=500)
    managed = decode_managed_fields(obj["metadata"].get("managedFields"))
    path = _build_path(resource)
    applier = Manager.applier(manager, "scale")
    owners = {owner: FieldSet.of((path,)) for owner, entry in managed.items() if path in entry.fields}
    if resource.is_custom and not owners:
        what = f"failed to create manager for existing fields: failed to convert live object (/; {_SCALE_TYPE})"
        raise ServerError(f"{what} {_NO_CONVERSION}", reason="", code=500)
    replicas = spec.get("replicas") or 0
    others = {owner: fields for owner, fields in owners.items() if owner != applier}
    is_changed = get_replicas(resource, obj) != replicas
    if others and is_changed and not force:
        raise ApplyConflictError({_as_scale_manager(owner): fields for owner, fields in others.items()})
    if resource.is_custom:
        what = f"failed to convert new object ({key.namespace}/{key.name}; {_SCALE_TYPE})"
        raise ServerError(f"{what} {_NO_CONVERSION}", reason="", code=500)
    scaled = with_replicas(resource, obj, body)
    for owner in others if is_changed else ():
        fields = managed[owner].fields - owners[owner]
        managed[owner] = replace(managed[owner], fields=fields)
        if not fields:
            del managed[owner]
    managed[applier] = ManagerEntry(FieldSet.of((path,)), resource.gvk.api_version)
    return scaled | {"metadata": {**scaled["metadata"], "managedFields": encode_managed_fields(managed)}}


def _as_scale_manager(owner: Manager) -> Manager:
    """Return the manager as the owner of a Scale, as conflicts name it."""
    return Manager.updater(owner.name, "autoscaling/v1", owner.subresource) if owner.api_version else owner


def _format_selector(resource: ServedResource, obj: Object) -> str:
    if resource.is_custom:
        return ""
    try:
        selector = LabelSelector.from_object((obj.get("spec") or {}).get("selector"))
    except SelectorSyntaxError:
        return ""
    return str(selector) if selector is not None else ""


def _get_type(scale: Any) -> tuple[str, str]:
    body: Mapping[str, Any] = scale if isinstance(scale, Mapping) else {}
    return str(body.get("apiVersion") or ""), str(body.get("kind") or "")


def _build_path(resource: ServedResource) -> tuple[str, ...]:
    return tuple(field_element(name) for name in (resource.scale or _BUILTIN).spec)


def _get_path(obj: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        obj = obj.get(name) if isinstance(obj, Mapping) else None
    return obj


def _set_path(obj: Mapping[str, Any], path: tuple[str, ...], value: Any) -> Object:
    name, *rest = path
    below = obj.get(name)
    if not rest:
        return {**obj, name: value}
    return {**obj, name: _set_path(below if isinstance(below, Mapping) else {}, tuple(rest), value)}
