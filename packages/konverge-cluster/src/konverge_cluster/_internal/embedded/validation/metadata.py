"""Validation of object metadata: names, labels, annotations, owners, finalizers, and immutable fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import (
    validate_dns_label,
    validate_dns_subdomain,
    validate_label_key,
    validate_label_value,
)
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.validation.field_errors import (
    IMMUTABLE,
    FieldError,
    field_forbidden,
    field_invalid,
    field_required,
    field_too_long,
    quote,
)

__all__ = ["validate_annotations", "validate_labels", "validate_metadata", "validate_metadata_update"]

_ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def _validate_path_segment(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{letter}'" for letter in "/%" if letter in text]


def _accept_anything(text: str) -> list[str]:
    return []


_NAME_RULES: dict[str, Callable[[str], list[str]]] = {
    "namespaces": validate_dns_label,
    "services": validate_dns_label,
    "statefulsets.apps": validate_dns_label,
    "events": _accept_anything,
    "roles.rbac.authorization.k8s.io": _validate_path_segment,
    "rolebindings.rbac.authorization.k8s.io": _validate_path_segment,
    "clusterroles.rbac.authorization.k8s.io": _validate_path_segment,
    "clusterrolebindings.rbac.authorization.k8s.io": _validate_path_segment,
}


def validate_metadata(resource: ServedResource, obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of the metadata of an object of that resource."""
    metadata = obj["metadata"]
    name_mistakes = _NAME_RULES.get(resource.storage, validate_dns_subdomain)
    prefix = metadata.get("generateName")
    if prefix:
        # More letters follow the end of the prefix, so a dash there is valid.
        complete = prefix[:-1] + "a" if prefix.endswith("-") and len(prefix) > 1 else prefix
        for detail in name_mistakes(complete):
            yield field_invalid("metadata.generateName", prefix, detail)
    name = metadata.get("name")
    if not name:
        yield field_required("metadata.name", "name or generateName is required")
    else:
        for detail in name_mistakes(name):
            yield field_invalid("metadata.name", name, detail)
    if not resource.mapping.namespaced and metadata.get("namespace"):
        yield field_forbidden("metadata.namespace", "not allowed on this type")
    yield from validate_labels(metadata.get("labels"), "metadata.labels")
    yield from validate_annotations(metadata.get("annotations"), "metadata.annotations")
    yield from _validate_owners(metadata.get("ownerReferences") or [])
    yield from _validate_finalizers(metadata.get("finalizers") or [], is_plain_allowed=_is_extension(resource))


def validate_labels(labels: Mapping[str, str] | None, field: str) -> Iterator[FieldError]:
    """Yield the validation errors of labels."""
    for key, value in sorted((labels or {}).items()):
        for detail in validate_label_key(key):
            yield field_invalid(field, key, detail)
        for detail in validate_label_value(value):
            yield field_invalid(field, value, detail)


def validate_annotations(annotations: Mapping[str, str] | None, field: str) -> Iterator[FieldError]:
    """Yield the validation errors of annotations."""
    size = 0
    for key, value in sorted((annotations or {}).items()):
        size += len(key) + len(value)
        for detail in validate_label_key(key.lower()):
            yield field_invalid(field, key, detail)
    if size > _ANNOTATIONS_LIMIT:
        yield field_too_long(field, _ANNOTATIONS_LIMIT)


def _validate_owners(owners: list[Mapping[str, Any]]) -> Iterator[FieldError]:
    field = "metadata.ownerReferences"
    controllers = []
    for owner in owners:
        if not owner.get("apiVersion", "").rpartition("/")[2]:
            yield field_invalid(f"{field}.apiVersion", owner.get("apiVersion", ""), "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                yield field_invalid(f"{field}.{name}", "", "must not be empty")
        if owner.get("controller") is True:
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        found = f'Found "true" in references for {controllers[0]} and {controllers[1]}'
        yield field_invalid(field, owners, f"Only one reference can have Controller set to true. {found}")


def _is_extension(resource: ServedResource) -> bool:
    """Return True for definitions and custom resources: their API server accepts plain finalizer names."""
    return resource.is_custom or resource.gvk.group == "apiextensions.k8s.io"


def _validate_finalizers(finalizers: list[str], *, is_plain_allowed: bool) -> Iterator[FieldError]:
    field = "metadata.finalizers"
    for index, name in enumerate(finalizers):
        for detail in validate_label_key(name):
            yield field_invalid(field, name, detail)
        if "/" not in name and name not in _STANDARD_FINALIZERS and not is_plain_allowed:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield field_invalid(f"{field}[{index}]", name, detail)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield field_invalid(field, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")


def validate_metadata_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield errors for changes of immutable metadata.

    Args:
        old: The stored object.
        new: The object of the request, completed with the fields that the client omitted.
    """
    before, after = old["metadata"], new["metadata"]
    for name in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if name in after and after[name] != before.get(name):
            yield field_invalid(f"metadata.{name}", after[name], IMMUTABLE)
    if before.get("deletionTimestamp"):
        added = [name for name in after.get("finalizers") or () if name not in (before.get("finalizers") or ())]
        if added:
            found = ", ".join(quote(name) for name in added)
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers"
            yield field_forbidden("metadata.finalizers", f"{detail} []string{{{found}}}")
