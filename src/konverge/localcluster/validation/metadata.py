"""The rules of object metadata: names, labels, annotations, owners, finalizers, and what an update may not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from konverge.kube import Object
from konverge.kube.names import (
    dns_label_mistakes,
    dns_subdomain_mistakes,
    label_key_mistakes,
    label_value_mistakes,
)
from konverge.localcluster.resources import Resource
from konverge.localcluster.validation.mistakes import IMMUTABLE, Mistake, forbidden, invalid, quoted, required, too_long

__all__ = ["annotation_mistakes", "label_mistakes", "metadata_mistakes", "metadata_update_mistakes"]

_ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def _path_segment_mistakes(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{letter}'" for letter in "/%" if letter in text]


def _anything(text: str) -> list[str]:
    return []


_NAME_RULES: dict[str, Callable[[str], list[str]]] = {
    "namespaces": dns_label_mistakes,
    "services": dns_label_mistakes,
    "statefulsets.apps": dns_label_mistakes,
    "events": _anything,
    "roles.rbac.authorization.k8s.io": _path_segment_mistakes,
    "rolebindings.rbac.authorization.k8s.io": _path_segment_mistakes,
    "clusterroles.rbac.authorization.k8s.io": _path_segment_mistakes,
    "clusterrolebindings.rbac.authorization.k8s.io": _path_segment_mistakes,
}


def metadata_mistakes(resource: Resource, obj: Object) -> Iterator[Mistake]:
    """What is wrong with the metadata of an object of that resource."""
    metadata = obj["metadata"]
    name_mistakes = _NAME_RULES.get(resource.storage, dns_subdomain_mistakes)
    prefix = metadata.get("generateName")
    if prefix:
        # What the prefix ends with is followed by more letters, so a dash there is fine.
        complete = prefix[:-1] + "a" if prefix.endswith("-") and len(prefix) > 1 else prefix
        for detail in name_mistakes(complete):
            yield invalid("metadata.generateName", prefix, detail)
    name = metadata.get("name")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        for detail in name_mistakes(name):
            yield invalid("metadata.name", name, detail)
    if not resource.mapping.namespaced and metadata.get("namespace"):
        yield forbidden("metadata.namespace", "not allowed on this type")
    yield from label_mistakes(metadata.get("labels"), "metadata.labels")
    yield from annotation_mistakes(metadata.get("annotations"), "metadata.annotations")
    yield from _owner_mistakes(metadata.get("ownerReferences") or [])
    yield from _finalizer_mistakes(metadata.get("finalizers") or [], is_plain_allowed=_is_extension(resource))


def label_mistakes(labels: Mapping[str, str] | None, field: str) -> Iterator[Mistake]:
    """What is wrong with labels."""
    for key, value in sorted((labels or {}).items()):
        for detail in label_key_mistakes(key):
            yield invalid(field, key, detail)
        for detail in label_value_mistakes(value):
            yield invalid(field, value, detail)


def annotation_mistakes(annotations: Mapping[str, str] | None, field: str) -> Iterator[Mistake]:
    """What is wrong with annotations."""
    size = 0
    for key, value in sorted((annotations or {}).items()):
        size += len(key) + len(value)
        for detail in label_key_mistakes(key.lower()):
            yield invalid(field, key, detail)
    if size > _ANNOTATIONS_LIMIT:
        yield too_long(field, _ANNOTATIONS_LIMIT)


def _owner_mistakes(owners: list[Mapping[str, Any]]) -> Iterator[Mistake]:
    field = "metadata.ownerReferences"
    controllers = []
    for owner in owners:
        if not owner.get("apiVersion", "").rpartition("/")[2]:
            yield invalid(f"{field}.apiVersion", owner.get("apiVersion", ""), "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                yield invalid(f"{field}.{name}", "", "must not be empty")
        if owner.get("controller") is True:
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        found = f'Found "true" in references for {controllers[0]} and {controllers[1]}'
        yield invalid(field, owners, f"Only one reference can have Controller set to true. {found}")


def _is_extension(resource: Resource) -> bool:
    """Definitions and custom resources belong to another API server, which lets plain names of finalizers be."""
    return resource.is_custom or resource.gvk.group == "apiextensions.k8s.io"


def _finalizer_mistakes(finalizers: list[str], *, is_plain_allowed: bool) -> Iterator[Mistake]:
    field = "metadata.finalizers"
    for index, name in enumerate(finalizers):
        for detail in label_key_mistakes(name):
            yield invalid(field, name, detail)
        if "/" not in name and name not in _STANDARD_FINALIZERS and not is_plain_allowed:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"{field}[{index}]", name, detail)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield invalid(field, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")


def metadata_update_mistakes(old: Object, new: Object) -> Iterator[Mistake]:
    """What an update changes in the metadata that must stay.

    Args:
        old: The object as stored.
        new: The object as it was sent, with what the client left out filled in.
    """
    before, after = old["metadata"], new["metadata"]
    for name in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if name in after and after[name] != before.get(name):
            yield invalid(f"metadata.{name}", after[name], IMMUTABLE)
    if before.get("deletionTimestamp"):
        added = [name for name in after.get("finalizers") or () if name not in (before.get("finalizers") or ())]
        if added:
            found = ", ".join(quoted(name) for name in added)
            told = "no new finalizers can be added if the object is being deleted, found new finalizers"
            yield forbidden("metadata.finalizers", f"{told} []string{{{found}}}")
