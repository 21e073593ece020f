"""Validation of the smaller kinds: budgets, autoscalers, claims, Ingresses, roles, Leases and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_dns_subdomain
from konverge_cluster._internal.embedded.validation.field_errors import (
    IMMUTABLE,
    FieldError,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.pods import NOT_NEGATIVE, validate_port
from konverge_cluster._internal.embedded.validation.selectors import validate_selector

__all__ = [
    "validate_autoscaler",
    "validate_binding_update",
    "validate_budget",
    "validate_claim",
    "validate_claim_update",
    "validate_cluster_role_binding",
    "validate_controller_revision",
    "validate_endpoint_slice",
    "validate_ingress",
    "validate_ingress_class",
    "validate_lease",
    "validate_network_policy",
    "validate_role",
    "validate_role_binding",
    "validate_storage_class",
    "validate_volume",
    "validate_volume_update",
]

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SUBJECTS = ("ServiceAccount", "User", "Group")


def validate_budget(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a PodDisruptionBudget."""
    spec = obj.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield field_invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        if isinstance(spec.get(name), int) and spec[name] < 0:
            yield field_invalid(f"spec.{name}", spec[name], NOT_NEGATIVE)
    yield from validate_selector(spec.get("selector"), "spec.selector")


def validate_autoscaler(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a HorizontalPodAutoscaler."""
    spec = obj.get("spec") or {}
    low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if low is not None and low < 1:
        yield field_invalid("spec.minReplicas", low, "must be greater than or equal to 1")
    if high < 1:
        yield field_required("spec.maxReplicas", "must be set and greater than 0")
    if low is not None and high < low:
        yield field_invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    target = spec.get("scaleTargetRef") or {}
    for name in ("kind", "name"):
        if not target.get(name):
            yield field_required(f"spec.scaleTargetRef.{name}")
    if "/" not in target.get("apiVersion", "") and target.get("kind") != "ReplicationController":
        detail = "apiVersion must specify API group"
        yield field_invalid("spec.scaleTargetRef.apiVersion", target.get("apiVersion", ""), detail)


def validate_claim(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a PersistentVolumeClaim."""
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield field_required("spec.accessModes", "at least 1 access mode is required")
    yield from _validate_access_modes(spec.get("accessModes") or [])
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield field_required("spec.resources[storage]")
    yield from validate_selector(spec.get("selector"), "spec.selector")


def _validate_access_modes(modes: Sequence[str]) -> Iterator[FieldError]:
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield field_not_supported("spec.accessModes", mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        yield field_forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def validate_claim_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield errors for changes of a claim, except the size of a bound claim and its volume."""
    before, after = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        after.pop("volumeName", None)
    if (old.get("status") or {}).get("phase") == "Bound":
        for spec in (before, after):
            spec.pop("resources", None)
            spec.pop("volumeAttributesClassName", None)
    if before != after:
        detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
        yield field_forbidden("spec", f"{detail} for bound claims")


def validate_volume(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a PersistentVolume."""
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield field_required("spec.accessModes")
    yield from _validate_access_modes(spec.get("accessModes") or [])
    if not spec.get("capacity"):
        yield field_required("spec.capacity")


# Fields of a PersistentVolume other than its source, which is one of several fields.
_NOT_SOURCE = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


def validate_volume_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield errors for changes of a volume's source and node affinity."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if _get_volume_source(before) != _get_volume_source(after):
        yield field_forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    if before.get("volumeMode") != after.get("volumeMode"):
        yield field_invalid("volumeMode", after.get("volumeMode"), IMMUTABLE)
    if before.get("nodeAffinity") and before["nodeAffinity"] != after.get("nodeAffinity"):
        yield field_invalid(
            "nodeAffinity", after.get("nodeAffinity"), f"{IMMUTABLE}, except for updating from beta label to GA"
        )


def _get_volume_source(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in _NOT_SOURCE}


def validate_storage_class(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a StorageClass."""
    if not obj.get("provisioner"):
        yield field_required("provisioner")


def validate_ingress(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of an Ingress."""
    spec = obj.get("spec") or {}
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield field_invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend"):
        yield from _validate_backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        at, host = f"spec.rules[{index}]", rule.get("host")
        if host:
            for detail in validate_dns_subdomain(host.removeprefix("*.")):
                yield field_invalid(f"{at}.host", host, detail)
        for number, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield from _validate_path(path, f"{at}.http.paths[{number}]")


def validate_ingress_class(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of an IngressClass."""
    if not (obj.get("spec") or {}).get("controller"):
        yield field_required("spec.controller")


def _validate_path(path: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    kinds = ("Exact", "ImplementationSpecific", "Prefix")
    kind = path.get("pathType")
    if not kind:
        yield field_required(f"{field}.pathType", "pathType must be specified")
    elif kind not in kinds:
        yield field_not_supported(f"{field}.pathType", kind, kinds)
    elif kind != "ImplementationSpecific" and not (path.get("path") or "").startswith("/"):
        yield field_invalid(f"{field}.path", path.get("path", ""), "must be an absolute path")
    yield from _validate_backend(path.get("backend") or {}, f"{field}.backend")


def _validate_backend(backend: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    service = backend.get("service")
    if service is None:
        return
    if not service.get("name"):
        yield field_required(f"{field}.service.name")
    port = service.get("port") or {}
    if not port.get("name") and not port.get("number"):
        yield field_required(field, "port name or number is required")
    elif port.get("name") and port.get("number"):
        yield field_invalid(field, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from validate_port(port["name"], f"{field}.service.port.name")
    else:
        yield from validate_port(port["number"], f"{field}.service.port.number")


def validate_network_policy(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a NetworkPolicy."""
    yield from validate_selector((obj.get("spec") or {}).get("podSelector"), "spec.podSelector")


def validate_role(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a Role or a ClusterRole."""
    for index, rule in enumerate(obj.get("rules") or ()):
        at = f"rules[{index}]"
        if not rule.get("verbs"):
            yield field_required(f"{at}.verbs", "verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            continue
        if not rule.get("apiGroups"):
            yield field_required(f"{at}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield field_required(f"{at}.resources", "resource rules must supply at least one resource")


def validate_role_binding(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a RoleBinding."""
    yield from _validate_binding(obj, ("Role", "ClusterRole"))


def validate_cluster_role_binding(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a ClusterRoleBinding."""
    yield from _validate_binding(obj, ("ClusterRole",))


def _validate_binding(obj: Object, kinds: tuple[str, ...]) -> Iterator[FieldError]:
    role = obj.get("roleRef") or {}
    if role.get("kind") not in kinds:
        yield field_not_supported("roleRef.kind", role.get("kind", ""), kinds)
    if not role.get("name"):
        yield field_required("roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        at, kind = f"subjects[{index}]", subject.get("kind", "")
        if not subject.get("name"):
            yield field_required(f"{at}.name")
        if kind not in _SUBJECTS:
            yield field_not_supported(f"{at}.kind", kind, _SUBJECTS)
        elif kind == "ServiceAccount" and not subject.get("namespace"):
            yield field_required(f"{at}.namespace")


def validate_binding_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield an error if a binding changes its role."""
    if old.get("roleRef") != new.get("roleRef"):
        yield field_invalid("roleRef", new.get("roleRef"), "cannot change roleRef")


def validate_lease(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a Lease."""
    spec = obj.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield field_invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield field_invalid("spec.leaseTransitions", transitions, NOT_NEGATIVE)


def validate_endpoint_slice(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of an EndpointSlice."""
    kinds = ("FQDN", "IPv4", "IPv6")
    kind = obj.get("addressType")
    if not kind:
        yield field_required("addressType")
    elif kind not in kinds:
        yield field_not_supported("addressType", kind, kinds)


def validate_controller_revision(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a ControllerRevision."""
    if (obj.get("revision") or 0) < 0:
        yield field_invalid("revision", obj["revision"], NOT_NEGATIVE)
    if obj.get("data") is None:
        yield field_required("data", "data is mandatory")
