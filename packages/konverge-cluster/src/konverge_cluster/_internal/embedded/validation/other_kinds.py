"""Validation of the smaller kinds: budgets, Leases, events, nodes and others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.validation.addresses import CIDR_FORM, is_cidr
from konverge_cluster._internal.embedded.validation.containers import NOT_NEGATIVE
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.pod_placement import TAINT_EFFECTS
from konverge_cluster._internal.embedded.validation.selectors import validate_selector

__all__ = [
    "validate_budget",
    "validate_controller_revision",
    "validate_event",
    "validate_lease",
    "validate_node",
]

_PERCENT = re.compile("[0-9]+%")
_PERCENT_FORM = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def validate_budget(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a PodDisruptionBudget."""
    spec = obj.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield field_invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        if isinstance(spec.get(name), int) and spec[name] < 0:
            yield field_invalid(f"spec.{name}", spec[name], NOT_NEGATIVE)
        elif isinstance(spec.get(name), str):
            yield from _validate_percentage(spec[name], f"spec.{name}")
    policy, policies = spec.get("unhealthyPodEvictionPolicy"), ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in policies:
        yield field_not_supported("spec.unhealthyPodEvictionPolicy", policy, policies)
    yield from validate_selector(spec.get("selector"), "spec.selector")


def _validate_percentage(text: str, field: str) -> Iterator[FieldError]:
    if not _PERCENT.fullmatch(text):
        yield field_invalid(field, text, _PERCENT_FORM)
    elif int(text[:-1]) > 100:
        yield field_invalid(field, text, "must not be greater than 100%")


def validate_lease(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a Lease."""
    spec = obj.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield field_invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield field_invalid("spec.leaseTransitions", transitions, NOT_NEGATIVE)


def validate_controller_revision(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a ControllerRevision."""
    if (obj.get("revision") or 0) < 0:
        yield field_invalid("revision", obj["revision"], NOT_NEGATIVE)
    if obj.get("data") is None:
        yield field_required("data", "data is mandatory")


def validate_event(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of an Event, of the core group or of events.k8s.io, with the paths of the former."""
    namespace = obj["metadata"].get("namespace", "")
    involved = (obj.get("involvedObject") or obj.get("regarding") or {}).get("namespace") or ""
    # Events of cluster-scoped objects are in the namespace "default".
    if involved != namespace and not (involved == "" and namespace == "default"):
        yield field_invalid("involvedObject.namespace", involved, "does not match event.namespace")


def validate_node(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a Node."""
    spec = obj.get("spec") or {}
    for index, taint in enumerate(spec.get("taints") or ()):
        if taint.get("effect") not in TAINT_EFFECTS:
            yield field_not_supported(f"metadata.taints[{index}].effect", taint.get("effect", ""), TAINT_EFFECTS)
    ranges = spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else [])
    for index, text in enumerate(ranges):
        if not is_cidr(text):
            yield field_invalid(f"spec.podCIDRs[{index}]", text, CIDR_FORM)
