"""Validation of label selectors in workloads and policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube.name_validation import validate_label_key
from konverge._internal.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_forbidden,
    field_invalid,
    field_required,
)
from konverge_cluster._internal.embedded.validation.metadata import validate_labels

__all__ = ["matches_template", "validate_selector"]


def validate_selector(selector: Mapping[str, Any] | None, field: str) -> Iterator[FieldError]:
    """Yield the validation errors of a selector, which may be absent."""
    if selector is None:
        return
    yield from validate_labels(selector.get("matchLabels"), f"{field}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        at = f"{field}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values")
        match operator:
            case "In" | "NotIn":
                if not values:
                    yield field_required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            case "Exists" | "DoesNotExist":
                if values:
                    detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    yield field_forbidden(f"{at}.values", detail)
            case _:
                yield field_invalid(f"{at}.operator", operator, "not a valid selector operator")
        for detail in validate_label_key(expression.get("key", "")):
            yield field_invalid(f"{at}.key", expression.get("key", ""), detail)


def matches_template(selector: Mapping[str, Any] | None, template: Mapping[str, Any]) -> bool:
    """Return True if a selector matches the template's pods; an invalid selector counts as a match here."""
    try:
        parsed = LabelSelector.from_object(selector)
    except SelectorSyntaxError:
        return True
    labels = (template.get("metadata") or {}).get("labels") or {}
    return parsed is not None and parsed.matches(labels)
