"""Validation of the kinds that limit a namespace: ResourceQuota and LimitRange."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_label_key
from konverge._internal.kube.quantities import quantity_to_fraction
from konverge_cluster._internal.embedded.validation.containers import NOT_NEGATIVE
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
)

__all__ = ["validate_limit_range", "validate_quota"]

_SCOPES = frozenset(
    {
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    }
)
_CONFLICTS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_WHOLE = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
_QUOTA_NAMES = _WHOLE | {
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
}


def validate_quota(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a ResourceQuota."""
    spec = obj.get("spec") or {}
    for name, quantity in sorted((spec.get("hard") or {}).items()):
        field = f"spec.hard[{name}]"
        for detail in validate_label_key(name):
            yield field_invalid(field, name, detail)
        number = quantity_to_fraction(quantity)
        if number < 0:
            yield field_invalid(field, str(quantity), NOT_NEGATIVE)
        if name in _WHOLE and number.denominator != 1:
            yield field_invalid(field, str(quantity), "must be an integer")
        if "/" not in name and name not in _QUOTA_NAMES:
            yield field_invalid(field, name, "must be a standard resource type or fully qualified")
            yield field_invalid(field, name, "must be a standard resource for quota")
    scopes = spec.get("scopes") or []
    if any(scope not in _SCOPES for scope in scopes):
        yield field_invalid("spec.scopes", scopes, "unsupported scope")
    if any(pair <= set(scopes) for pair in _CONFLICTS):
        yield field_invalid("spec.scopes", scopes, "conflicting scopes")


def validate_limit_range(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a LimitRange."""
    seen: set[str] = set()
    for index, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        field, kind = f"spec.limits[{index}]", item.get("type", "")
        for detail in validate_label_key(kind):
            yield field_invalid(f"{field}.type", kind, detail)
        if kind in seen:
            yield field_duplicate(f"{field}.type", kind)
        seen.add(kind)
        if kind == "Pod":
            for name in ("default", "defaultRequest"):
                if item.get(name):
                    yield field_forbidden(f"{field}.{name}", "may not be specified when `type` is 'Pod'")
        parts: list[Mapping[str, Any]] = [item.get(part) or {} for part in _PARTS]
        for resource in sorted({name for part in parts for name in part}):
            yield from _validate_limits(item, resource, field)


_PARTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _validate_limits(item: Mapping[str, Any], resource: str, field: str) -> Iterator[FieldError]:
    """Yield the errors of one resource, whose bounds must be in order."""
    texts = {part: item[part][resource] for part in _PARTS if resource in (item.get(part) or {})}
    numbers = {part: quantity_to_fraction(text) for part, text in texts.items()}

    def exceeds(low: str, high: str) -> bool:
        return low in numbers and high in numbers and numbers[low] > numbers[high]

    # The API server reports some of these errors with the value of the other bound.
    for low, high, part, reported, detail in (
        ("min", "max", "min", "min", "min value {min} is greater than max value {max}"),
        (
            "min",
            "defaultRequest",
            "defaultRequest",
            "defaultRequest",
            "min value {min} is greater than default request value {defaultRequest}",
        ),
        (
            "defaultRequest",
            "max",
            "defaultRequest",
            "defaultRequest",
            "default request value {defaultRequest} is greater than max value {max}",
        ),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "defaultRequest",
            "default request value {defaultRequest} is greater than default limit value {default}",
        ),
        ("min", "default", "default", "min", "min value {min} is greater than default value {default}"),
        ("default", "max", "default", "max", "default value {default} is greater than max value {max}"),
    ):
        if exceeds(low, high):
            yield field_invalid(f"{field}.{part}[{resource}]", str(texts[reported]), detail.format(**texts))
    if numbers.get("maxLimitRequestRatio", 1) < 1:
        ratio = texts["maxLimitRequestRatio"]
        yield field_invalid(f"{field}.maxLimitRequestRatio[{resource}]", str(ratio), f"ratio {ratio} is less than 1")
