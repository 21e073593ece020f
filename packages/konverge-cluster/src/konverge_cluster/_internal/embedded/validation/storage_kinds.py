"""Validation of PersistentVolumeClaims, PersistentVolumes and StorageClasses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_dns_subdomain, validate_label_key
from konverge._internal.kube.quantities import canonicalize_quantity, quantity_to_fraction
from konverge_cluster._internal.embedded.validation.field_errors import (
    IMMUTABLE,
    FieldError,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.selectors import validate_selector

__all__ = [
    "validate_claim",
    "validate_claim_spec",
    "validate_claim_update",
    "validate_storage_class",
    "validate_volume",
    "validate_volume_update",
]

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ALONE = "ReadWriteOncePod"
_POSITIVE = "must be greater than zero"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def validate_claim(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a PersistentVolumeClaim."""
    yield from validate_claim_spec(obj.get("spec") or {}, "spec")


def validate_claim_spec(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Yield the validation errors of the spec of a claim or of a claim template."""
    modes = spec.get("accessModes")
    if not modes:
        yield field_required(f"{field}.accessModes", "at least 1 access mode is required")
    yield from validate_selector(spec.get("selector"), f"{field}.selector")
    yield from _validate_access_modes(modes or (), f"{field}.accessModes")
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield field_required(f"{field}.resources[storage]")
    elif quantity_to_fraction(size) <= 0:
        yield field_invalid(f"{field}.resources[storage]", canonicalize_quantity(size, milli=True), _POSITIVE)
    if spec.get("storageClassName"):
        for detail in validate_dns_subdomain(spec["storageClassName"]):
            yield field_invalid(f"{field}.storageClassName", spec["storageClassName"], detail)
    yield from _validate_volume_mode(spec, field)
    for name in ("dataSource", "dataSourceRef"):
        source = spec.get(name) or {}
        for part in ("name", "kind") if spec.get(name) is not None else ():
            if not source.get(part):
                yield field_required(f"{field}.{name}.{part}")


def _validate_access_modes(modes: Any, field: str) -> Iterator[FieldError]:
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield field_not_supported(field, mode, _ACCESS_MODES)
    if _ALONE in modes and set(modes) != {_ALONE}:
        yield field_forbidden(field, f"may not use {_ALONE} with other access modes")


def _validate_volume_mode(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    mode = spec.get("volumeMode")
    if mode is not None and mode not in ("Block", "Filesystem"):
        yield field_not_supported(f"{field}.volumeMode", mode, ("Block", "Filesystem"))


def validate_claim_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield errors for changes of a claim, except the size of a bound claim and its volume."""
    before, after = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        after.pop("volumeName", None)
    if before.get("storageClassName") is None and after.get("storageClassName") is not None:
        annotation = (old["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
        if annotation in (None, after["storageClassName"]):
            after.pop("storageClassName")  # the default class, assigned later
    if (old.get("status") or {}).get("phase") == "Bound":
        for spec in (before, after):
            spec["resources"] = _without_size(spec.get("resources") or {})
            spec.pop("volumeAttributesClassName", None)
    if before != after:
        detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
        yield field_forbidden("spec", f"{detail} for bound claims")
    size, earlier = _get_size(new), _get_size(old)
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if quantity_to_fraction(size) < quantity_to_fraction(earlier) and (
        quantity_to_fraction(size) <= quantity_to_fraction(capacity)
    ):
        yield field_forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def _without_size(resources: Mapping[str, Any]) -> dict[str, Any]:
    requests = {name: amount for name, amount in (resources.get("requests") or {}).items() if name != "storage"}
    return {**resources, "requests": requests}


def _get_size(claim: Object) -> str:
    return str((((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage", "0"))


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
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")


def validate_volume(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a PersistentVolume."""
    spec = obj.get("spec") or {}
    modes, capacity = spec.get("accessModes") or (), spec.get("capacity") or {}
    if not modes:
        yield field_required("spec.accessModes")
    yield from _validate_access_modes(modes, "spec.accessModes")
    if not capacity:
        yield field_required("spec.capacity")
    for name, size in capacity.items():
        if quantity_to_fraction(size) <= 0:
            text = canonicalize_quantity(size, milli=True)
            yield field_invalid(f"spec.capacity[{name}]", text, _POSITIVE)
            if quantity_to_fraction(size) < 0:
                number = int(text) if text.lstrip("-").isdigit() else text
                yield field_invalid(f"spec.capacity[{name}]", number, "must be a valid resource quantity")
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in _RECLAIM_POLICIES:
        yield field_not_supported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES)
    sources = list(_get_volume_source(spec))
    if not sources:
        yield field_required("spec", "must specify a volume type")
    for name in sources[1:]:
        yield field_forbidden(f"spec.{name}", "may not specify more than 1 volume type")
    yield from _validate_volume_mode(spec, "spec")
    if spec.get("storageClassName"):
        for detail in validate_dns_subdomain(spec["storageClassName"]):
            yield field_invalid("spec.storageClassName", spec["storageClassName"], detail)


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
    provisioner = obj.get("provisioner")
    if not provisioner:
        yield field_required("provisioner")
    else:
        for detail in validate_label_key(provisioner.lower()):
            yield field_invalid("provisioner", provisioner, detail)
    for name in obj.get("parameters") or ():
        if not name:
            yield field_invalid("parameters", name, "field can not be empty.")
    for name, choices in (
        ("reclaimPolicy", ("Delete", "Retain")),
        ("volumeBindingMode", ("Immediate", "WaitForFirstConsumer")),
    ):
        if obj.get(name) and obj[name] not in choices:
            yield field_not_supported(name, obj[name], choices)
    for index, term in enumerate(obj.get("allowedTopologies") or ()):
        for number, entry in enumerate(term.get("matchLabelExpressions") or ()):
            at, key = f"allowedTopologies[{index}].matchLabelExpressions[{number}]", entry.get("key", "")
            if not entry.get("values"):
                yield field_required(f"{at}.values")
            for detail in validate_label_key(key):
                yield field_invalid(f"{at}.key", key, detail)
