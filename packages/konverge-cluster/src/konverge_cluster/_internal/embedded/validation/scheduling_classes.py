"""Validation of PriorityClasses and RuntimeClasses."""

from __future__ import annotations

from collections.abc import Iterator

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_dns_label
from konverge_cluster._internal.embedded.validation.field_errors import (
    IMMUTABLE,
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.metadata import validate_labels
from konverge_cluster._internal.embedded.validation.pod_placement import validate_toleration
from konverge_cluster._internal.embedded.validation.resources import validate_resources

__all__ = [
    "SYSTEM_PRIORITIES",
    "validate_priority_class",
    "validate_priority_class_update",
    "validate_runtime_class",
    "validate_runtime_class_update",
]

SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The classes that every cluster has, and their values."""

_SYSTEM_PREFIX = "system-"
_HIGHEST = 1_000_000_000
_POLICIES = ("PreemptLowerPriority", "Never")


def validate_priority_class(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a PriorityClass."""
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith(_SYSTEM_PREFIX):
        reason = _find_system_error(name, value, is_default=bool(obj.get("globalDefault")))
        if reason:
            detail = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only"
            yield field_forbidden("metadata.name", f"{detail}. error: {reason}")
    elif value > _HIGHEST:
        yield field_forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    policy = obj.get("preemptionPolicy")
    if policy is not None and policy not in _POLICIES:
        yield field_not_supported("preemptionPolicy", policy, _POLICIES)


def _find_system_error(name: str, value: int, *, is_default: bool) -> str:
    known = SYSTEM_PRIORITIES.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if value != known:
        return f"value of {name} PriorityClass must be {known}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def validate_priority_class_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield errors for changes of the value and of the preemption policy."""
    if old.get("value", 0) != new.get("value", 0):
        yield field_forbidden("value", "may not be changed in an update.")
    if old.get("preemptionPolicy") != new.get("preemptionPolicy"):
        yield field_invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE)


def validate_runtime_class(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a RuntimeClass."""
    handler = obj.get("handler", "")
    if not handler:
        yield field_required("handler")
    else:
        for detail in validate_dns_label(handler):
            yield field_invalid("handler", handler, detail)
    overhead = obj.get("overhead")
    if overhead is not None:
        yield from validate_resources({"limits": overhead.get("podFixed") or {}}, "overhead")
    scheduling = obj.get("scheduling") or {}
    yield from validate_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    seen: list[Object] = []
    for index, toleration in enumerate(scheduling.get("tolerations") or ()):
        at = f"scheduling.tolerations[{index}]"
        yield from validate_toleration(toleration, at)
        key = {name: toleration.get(name) for name in ("key", "operator", "value", "effect")}
        if key in seen:
            yield field_duplicate(at, toleration)
        seen.append(key)


def validate_runtime_class_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield an error for a change of the handler."""
    if old.get("handler") != new.get("handler"):
        yield field_invalid("handler", new.get("handler"), IMMUTABLE)
