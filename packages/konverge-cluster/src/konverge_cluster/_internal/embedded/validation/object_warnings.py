"""Warnings about objects that are valid but probably wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.validation.custom_resource_definitions import list_definition_warnings
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = ["list_warnings"]

_HISTORY = "a negative value retains all historical revisions; a value >= 0 is recommended"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_TEMPLATES = frozenset({"deployments.apps", "replicasets.apps", "daemonsets.apps", "statefulsets.apps", "jobs.batch"})


def list_warnings(resource: ServedResource, obj: Object) -> list[str]:
    """Return the warnings of the real server about an object."""
    spec = obj.get("spec") or {}
    warnings: list[str] = []
    if resource.storage == "pods":
        warnings += _list_annotation_warnings(obj, "")
        warnings += _list_pod_warnings(spec, "spec")
    elif resource.storage in _TEMPLATES:
        template = spec.get("template") or {}
        warnings += _list_annotation_warnings(template, "spec.template.")
        warnings += _list_pod_warnings(template.get("spec") or {}, "spec.template.spec")
    if resource.storage == "statefulsets.apps" and (spec.get("revisionHistoryLimit") or 0) < 0:
        warnings.append(f"spec.revisionHistoryLimit: {_HISTORY}")
    if resource.storage == "customresourcedefinitions.apiextensions.k8s.io":
        warnings += list_definition_warnings(obj)
    if resource.storage == "endpoints":
        warnings.append("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
    return warnings


def _list_annotation_warnings(pod: Mapping[str, Any], field: str) -> Iterator[str]:
    """Yield the warnings about seccomp profiles in annotations, which have no effect."""
    annotations, spec = (pod.get("metadata") or {}).get("annotations") or {}, pod.get("spec") or {}
    parts = [(_SECCOMP_POD, spec)]
    for kind in ("initContainers", "containers"):
        parts += [(f"{_SECCOMP_CONTAINER}{entry.get('name', '')}", entry) for entry in spec.get(kind) or ()]
    for name, part in parts:
        if name in annotations and (part.get("securityContext") or {}).get("seccompProfile") is None:
            at = f"{field}metadata.annotations[{name}]"
            yield f'{at}: non-functional in v1.27+; use the "seccompProfile" field instead'


def _list_pod_warnings(spec: Mapping[str, Any], field: str) -> Iterator[str]:
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{field}.imagePullSecrets[{index}].name: invalid empty name ""'
    for volume in spec.get("volumes") or ():
        projected = volume.get("projected")
        if projected is not None and not any(projected.get("sources") or ()):
            yield f"volume {quote(volume.get('name', ''))} (Projected) has no sources provided"
    seen: dict[tuple[Any, ...], str] = {}
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            at = f"{field}.containers[{index}].ports[{number}]"
            protocol, address = port.get("protocol", "TCP"), port.get("hostIP", "")
            if address and not port.get("hostPort"):
                written = (
                    f"Name:{port.get('name', '')} HostPort:0 ContainerPort:{port.get('containerPort')} "
                    f"Protocol:{protocol} HostIP:{address}"
                )
                yield f"{at}: hostIP set without hostPort: {{{written}}}"
            key = (port.get("containerPort"), protocol, port.get("hostPort") or 0, address)
            if key in seen:
                yield f"{at}: duplicate port definition with {seen[key]}"
            seen.setdefault(key, at)
