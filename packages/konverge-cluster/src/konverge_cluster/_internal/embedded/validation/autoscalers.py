"""Validation of HorizontalPodAutoscalers as in kube-apiserver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.quantities import quantity_to_fraction
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)

__all__ = ["validate_autoscaler"]

# The field of each type of metric.
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_POSITIVE = "must be greater than zero"
_LONGEST_WINDOW, _LONGEST_PERIOD = 3600, 1800


def validate_autoscaler(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a HorizontalPodAutoscaler."""
    spec = obj.get("spec") or {}
    low, high, metrics = spec.get("minReplicas"), spec.get("maxReplicas") or 0, spec.get("metrics") or ()
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
    for index, metric in enumerate(metrics):
        yield from _validate_metric(metric, f"spec.metrics[{index}]")
    if low == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield field_forbidden("spec.metrics", detail)
    behavior = spec.get("behavior") or {}
    for name in ("scaleUp", "scaleDown"):
        if behavior.get(name) is not None:
            yield from _validate_scaling(behavior[name], f"spec.behavior.{name}")


def _validate_metric(metric: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    kind = metric.get("type", "")
    if not kind:
        yield field_required(f"{field}.type", "must specify a metric source type")
        return
    if kind not in _SOURCES:
        yield field_not_supported(f"{field}.type", kind, _SOURCES)
        return
    source, at = metric.get(_SOURCES[kind]), f"{field}.{_SOURCES[kind]}"
    if source is None:
        yield field_required(at, "must populate information for the given metric source")
        return
    yield from _validate_metric_target(
        source.get("target") or {}, f"{at}.target", is_resource=kind.endswith("Resource")
    )


def _validate_metric_target(target: Mapping[str, Any], field: str, *, is_resource: bool) -> Iterator[FieldError]:
    kind, use, average = target.get("type"), target.get("averageUtilization"), target.get("averageValue")
    kinds = ("AverageValue", "Utilization", "Value")
    if not kind:
        yield field_required(f"{field}.type", "must specify a metric target type")
    elif kind not in kinds:
        yield field_invalid(f"{field}.type", kind, "must be either Utilization, Value, or AverageValue")
    if use is not None and use < 1:
        yield field_invalid(f"{field}.averageUtilization", use, "must be greater than 0")
    for name in ("value", "averageValue"):
        if target.get(name) is not None and quantity_to_fraction(target[name]) <= 0:
            yield field_invalid(f"{field}.{name}", target[name], "must be positive")
    if is_resource and use is None and average is None:
        yield field_required(
            f"{field}.averageUtilization", "must set either a target raw value or a target utilization"
        )
    if is_resource and use is not None and average is not None:
        detail = "may not set both a target raw value and a target utilization"
        yield field_forbidden(f"{field}.averageValue", detail)


def _validate_scaling(rules: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        yield field_invalid(f"{field}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    elif window is not None and window > _LONGEST_WINDOW:
        detail = f"must be less than or equal to {_LONGEST_WINDOW}"
        yield field_invalid(f"{field}.stabilizationWindowSeconds", window, detail)
    choices = ("Disabled", "Max", "Min")
    if rules.get("selectPolicy") is not None and rules["selectPolicy"] not in choices:
        yield field_not_supported(f"{field}.selectPolicy", rules["selectPolicy"], choices)
    if not rules.get("policies"):
        yield field_required(f"{field}.policies", "must specify at least one Policy")
    for index, policy in enumerate(rules.get("policies") or ()):
        at = f"{field}.policies[{index}]"
        if policy.get("type") not in ("Percent", "Pods"):
            yield field_not_supported(f"{at}.type", policy.get("type", ""), ("Percent", "Pods"))
        if (policy.get("value") or 0) <= 0:
            yield field_invalid(f"{at}.value", policy.get("value") or 0, _POSITIVE)
        period = policy.get("periodSeconds") or 0
        if period <= 0:
            yield field_invalid(f"{at}.periodSeconds", period, _POSITIVE)
        elif period > _LONGEST_PERIOD:
            yield field_invalid(f"{at}.periodSeconds", period, f"must be less than or equal to {_LONGEST_PERIOD}")
