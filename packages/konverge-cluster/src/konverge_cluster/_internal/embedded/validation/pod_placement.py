"""Validation of the fields that decide where a pod runs: tolerations, affinity, topology spread, gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from konverge._internal.kube.name_validation import validate_label_key
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.selectors import validate_selector

__all__ = ["TAINT_EFFECTS", "validate_placement", "validate_toleration"]

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_WEIGHT = "must be in the range 1-100"


def validate_placement(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Yield the validation errors of the placement fields of a pod spec."""
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from validate_toleration(toleration, f"{field}.tolerations[{index}]")
    affinity = spec.get("affinity") or {}
    yield from _validate_node_affinity(affinity.get("nodeAffinity") or {}, f"{field}.affinity.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _validate_pod_affinity(affinity.get(kind) or {}, f"{field}.affinity.{kind}")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        yield from _validate_spread(constraint, f"{field}.topologySpreadConstraints[{index}]")
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        at, name = f"{field}.schedulingGates[{index}]", gate.get("name", "")
        for detail in validate_label_key(name):
            yield field_invalid(at, name, detail)
        if name in seen:
            yield field_duplicate(at, name)
        seen.add(name)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        name = gate.get("conditionType", "")
        for detail in validate_label_key(name):
            yield field_invalid(f"{field}.readinessGates[{index}].conditionType", name, detail)


def validate_toleration(toleration: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Yield the validation errors of one toleration."""
    key, operator, value = toleration.get("key", ""), toleration.get("operator") or "", toleration.get("value", "")
    for detail in validate_label_key(key) if key else ():
        yield field_invalid(f"{field}.key", key, detail)
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield field_invalid(f"{field}.operator", operator, detail)
    effect = toleration.get("effect", "")
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield field_invalid(f"{field}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator not in ("", "Equal", "Exists"):
        yield field_not_supported(f"{field}.operator", operator, ("Equal", "Exists"))
    elif operator == "Exists" and value:
        yield field_invalid(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'")
    if effect and effect not in TAINT_EFFECTS:
        yield field_not_supported(f"{field}.effect", effect, TAINT_EFFECTS)


def _validate_node_affinity(affinity: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    required = affinity.get(_REQUIRED)
    if required is not None:
        terms = required.get("nodeSelectorTerms") or ()
        if not terms:
            yield field_required(f"{field}.{_REQUIRED}.nodeSelectorTerms", "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from _validate_node_term(term, f"{field}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, entry in enumerate(affinity.get(_PREFERRED) or ()):
        at = f"{field}.{_PREFERRED}[{index}]"
        if not 1 <= (entry.get("weight") or 0) <= 100:
            yield field_invalid(f"{at}.weight", entry.get("weight") or 0, _WEIGHT)
        yield from _validate_node_term(entry.get("preference") or {}, f"{at}.preference")


def _validate_node_term(term: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        at = f"{field}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values") or ()
        match operator:
            case "In" | "NotIn":
                if not values:
                    yield field_required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            case "Exists" | "DoesNotExist":
                if values:
                    detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    yield field_forbidden(f"{at}.values", detail)
            case "Gt" | "Lt":
                if len(values) != 1:
                    detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                    yield field_required(f"{at}.values", detail)
            case _:
                yield field_invalid(f"{at}.operator", operator, "not a valid selector operator")
        for detail in validate_label_key(expression.get("key", "")):
            yield field_invalid(f"{at}.key", expression.get("key", ""), detail)


def _validate_pod_affinity(affinity: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    yield from _validate_pod_terms(affinity.get(_REQUIRED) or (), f"{field}.{_REQUIRED}", "")
    entries = affinity.get(_PREFERRED) or ()
    for index, entry in enumerate(entries):
        if not 1 <= (entry.get("weight") or 0) <= 100:
            yield field_invalid(f"{field}.{_PREFERRED}[{index}].weight", entry.get("weight") or 0, _WEIGHT)
    terms = [entry.get("podAffinityTerm") or {} for entry in entries]
    yield from _validate_pod_terms(terms, f"{field}.{_PREFERRED}", ".podAffinityTerm")


def _validate_pod_terms(terms: Sequence[Mapping[str, Any]], field: str, suffix: str) -> Iterator[FieldError]:
    for index, term in enumerate(terms):
        at, key = f"{field}[{index}]{suffix}", term.get("topologyKey", "")
        for name in ("labelSelector", "namespaceSelector"):
            yield from validate_selector(term.get(name), f"{at}.{name}")
        if not key:
            yield field_required(f"{at}.topologyKey", "can not be empty")
        for detail in validate_label_key(key):
            yield field_invalid(f"{at}.topologyKey", key, detail)


def _validate_spread(constraint: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    skew, key, policy = (constraint.get(name) for name in ("maxSkew", "topologyKey", "whenUnsatisfiable"))
    if (skew or 0) <= 0:
        yield field_invalid(f"{field}.maxSkew", skew or 0, "must be greater than zero")
    if not key:
        yield field_required(f"{field}.topologyKey", "can not be empty")
    else:
        for detail in validate_label_key(key):
            yield field_invalid(f"{field}.topologyKey", key, detail)
    policies = ("DoNotSchedule", "ScheduleAnyway")
    if policy not in policies:
        yield field_not_supported(f"{field}.whenUnsatisfiable", policy or "", policies)
    yield from validate_selector(constraint.get("labelSelector"), f"{field}.labelSelector")
