"""Validation of compute resources: the requests and limits of containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from konverge._internal.kube.name_validation import validate_label_key
from konverge._internal.kube.quantities import canonicalize_quantity, quantity_to_fraction
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_forbidden,
    field_invalid,
    field_required,
    quote,
)

__all__ = ["validate_resources"]

_NOT_NEGATIVE = "must be greater than or equal to 0"
_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
# Other names without a domain that the server knows, but not for containers.
_STANDARD_RESOURCES = frozenset({"storage", "pods", "services", "secrets", "configmaps", "persistentvolumeclaims"})
_HUGE_PAGES = "hugepages-"


def validate_resources(resources: Mapping[str, Any], field: str, claims: tuple[str, ...] = ()) -> Iterator[FieldError]:
    """Yield the validation errors of the resources of a container.

    Args:
        resources: The requests, limits and claims; each request has its default, the limit.
        field: The path of the resources.
        claims: The names of the pod's resource claims.
    """
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name in sorted(limits):
        yield from _validate_quantity(name, limits[name], f"{field}.limits[{name}]")
    for name in sorted(requests):
        yield from _validate_quantity(name, requests[name], f"{field}.requests[{name}]")
        yield from _validate_pair(name, requests[name], limits.get(name), field)
    names = {*limits, *requests}
    if any(name.startswith(_HUGE_PAGES) for name in names) and not names & {"cpu", "memory"}:
        yield field_forbidden(field, "HugePages require cpu or memory")
    for index, claim in enumerate(resources.get("claims") or ()):
        name = claim.get("name", "")
        if not name:
            yield field_required(f"{field}.claims[{index}]")
        elif name not in claims:
            state = "which is empty" if not claims else f"which has [{' '.join(claims)}]"
            detail = f"Not found: {quote(name)}: must be one of the names in pod.spec.resourceClaims {state}"
            yield FieldError(f"{field}.claims[{index}]", "FieldValueNotFound", detail)


def _validate_quantity(name: str, quantity: Any, field: str) -> Iterator[FieldError]:
    for detail in validate_label_key(name):
        yield field_invalid(field, name, detail)
    is_native = "/" not in name or name.partition("/")[0].endswith("kubernetes.io")
    if "/" not in name and not name.startswith(_HUGE_PAGES) and name not in _CONTAINER_RESOURCES:
        if name not in _STANDARD_RESOURCES:
            yield field_invalid(field, name, "must be a standard resource type or fully qualified")
        yield field_invalid(field, name, "must be a standard resource for containers")
    number = quantity_to_fraction(quantity)
    text = canonicalize_quantity(quantity, milli=True)
    if number < 0:
        yield field_invalid(field, text, _NOT_NEGATIVE)
    if not is_native and number.denominator != 1:
        yield field_invalid(field, canonicalize_quantity(f"{int(number * 1000)}m"), "must be an integer")
    if name.startswith(_HUGE_PAGES) and not _is_whole_page(number, name):
        yield field_invalid(field, text, f"{text} is not positive integer multiple of {name}")


def _is_whole_page(number: Fraction, name: str) -> bool:
    try:
        size = quantity_to_fraction(name.removeprefix(_HUGE_PAGES))
    except ValueError:
        return False
    return number > 0 and size > 0 and (number / size).denominator == 1


def _validate_pair(name: str, request: Any, limit: Any, field: str) -> Iterator[FieldError]:
    """Yield errors of a request and its limit; both are equal for resources that cannot be overcommitted."""
    is_native = "/" not in name or name.partition("/")[0].endswith("kubernetes.io")
    can_overcommit = is_native and not name.startswith(_HUGE_PAGES)
    if limit is None:
        if not can_overcommit:
            yield field_required(f"{field}.limits", "Limit must be set for non overcommitable resources")
        return
    reported, most = canonicalize_quantity(request, milli=True), canonicalize_quantity(limit, milli=True)
    requested, limited = quantity_to_fraction(request), quantity_to_fraction(limit)
    if not can_overcommit and requested != limited:
        yield field_invalid(f"{field}.requests", reported, f"must be equal to {name} limit of {most}")
    elif requested > limited:
        yield field_invalid(f"{field}.requests", reported, f"must be less than or equal to {name} limit of {most}")
