"""The scale subresource: the number of replicas of anything that has one, in one form (autoscaling/v1 ``Scale``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.errors import BadRequestError
from konverge.kube import Object
from konverge.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge_cluster.embedded.resource_registry import ScalePaths, ServedResource
from konverge_cluster.embedded.validation.field_errors import field_invalid, new_invalid

__all__ = ["build_scale", "with_replicas"]

_BUILTIN = ScalePaths(spec=("spec", "replicas"), status=("status", "replicas"), selector=())


def build_scale(resource: ServedResource, obj: Object) -> Object:
    """The Scale of an object."""
    paths = resource.scale or _BUILTIN
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    wanted, found = _get_path(obj, paths.spec), _get_path(obj, paths.status)
    status: Object = {"replicas": found if isinstance(found, int) else 0}
    selector = _get_path(obj, paths.selector) if paths.selector else _format_selector(resource, obj)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def with_replicas(resource: ServedResource, obj: Object, scale: Any) -> Object:
    """The object with the number of replicas that a Scale asks for; neither is changed.

    The Scale's resourceVersion and UID, if it has them, guard the write.

    Raises:
        BadRequestError: It is no Scale.
        InvalidError: The number is negative.
    """
    parts = (scale, scale.get("spec", {}), scale.get("metadata") or {}) if isinstance(scale, Mapping) else (scale,)
    if not all(isinstance(part, Mapping) for part in parts):
        raise BadRequestError("the body of a scale request is a Scale")
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        told = "json: cannot unmarshal the value into Go struct field ScaleSpec.spec.replicas of type int32"
        raise BadRequestError(f'Scale in version "v1" cannot be handled as a Scale: {told}')
    metadata = scale.get("metadata") or {}
    # A custom resource is held to its own rules afterwards, which name its own field.
    if replicas < 0 and not resource.is_custom:
        mistake = field_invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise new_invalid("autoscaling", "Scale", obj["metadata"]["name"], [mistake])
    guards = {name: metadata[name] for name in ("uid", "resourceVersion") if metadata.get(name)}
    scaled = obj | {"metadata": {**obj["metadata"], **guards}}
    paths = resource.scale or _BUILTIN
    return _set_path(scaled, paths.spec, replicas)


def _format_selector(resource: ServedResource, obj: Object) -> str:
    if resource.is_custom:
        return ""
    try:
        found = LabelSelector.from_object((obj.get("spec") or {}).get("selector"))
    except SelectorSyntaxError:
        return ""
    return str(found) if found is not None else ""


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
