"""The scale subresource: the replicas of any scalable kind in one form (autoscaling/v1 ``Scale``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge.errors import BadRequestError
from konverge_cluster._internal.embedded.resource_registry import ScalePaths, ServedResource
from konverge_cluster._internal.embedded.validation.field_errors import field_invalid, new_invalid

__all__ = ["build_scale", "with_replicas"]

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


def _format_selector(resource: ServedResource, obj: Object) -> str:
    if resource.is_custom:
        return ""
    try:
        selector = LabelSelector.from_object((obj.get("spec") or {}).get("selector"))
    except SelectorSyntaxError:
        return ""
    return str(selector) if selector is not None else ""


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
