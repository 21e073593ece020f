"""Controller references: a controller adopts objects that match its selector, and releases the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, build_owner_reference, is_deleting
from konverge._internal.kube.selectors import LabelSelector
from konverge_cluster._internal.embedded.controllers.cluster_view import (
    ClusterChange,
    ClusterView,
    list_owner_references,
)
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient

__all__ = ["claim_objects", "find_controller_key", "list_affected_controllers"]


def find_controller_key(obj: Object, gvk: GroupVersionKind) -> ObjectKey | None:
    """Return the key of the object's controller if it has the given kind."""
    for reference in list_owner_references(obj):
        if reference.get("controller") is True:
            group = reference["apiVersion"].rpartition("/")[0]
            if (group, reference["kind"]) != gvk.group_kind:
                return None
            return ObjectKey(obj["metadata"].get("namespace", ""), reference["name"])
    return None


def list_affected_controllers(view: ClusterView, notice: ClusterChange, gvk: GroupVersionKind) -> Iterable[ObjectKey]:
    """Return the controllers of that kind that a changed object affects.

    The result contains the current and the previous controller. For an object without a controller it contains those
    whose selector matches, since one of them can adopt it.
    """
    keys = {
        key: None
        for obj in (notice.old, notice.new)
        if obj is not None and (key := find_controller_key(obj, gvk)) is not None
    }
    if keys or notice.type == "DELETED" or list_owner_references(notice.new):
        return keys
    labels = notice.new["metadata"].get("labels") or {}
    before = notice.old["metadata"] if notice.old is not None else {}
    if before and not before.get("ownerReferences") and labels == (before.get("labels") or {}):
        return keys  # the change cannot give it another owner
    for candidate in view.list_kind(gvk, notice.key.namespace):
        candidate_selector = LabelSelector.from_object(candidate["spec"].get("selector"))
        if candidate_selector is not None and candidate_selector.matches(labels):
            keys[ObjectKey.of(candidate)] = None
    return keys


def claim_objects(
    view: ClusterView, writer: ControllerClient, owner: Object, gvk: GroupVersionKind, selector: Mapping[str, Any]
) -> list[Object]:
    """Return the objects of that kind that the owner controls, after it has adopted and released objects.

    An owner that is being deleted changes nothing.
    """
    parsed_selector = LabelSelector.from_object(selector)
    if parsed_selector is None:
        return []
    metadata = owner["metadata"]
    claimed = []
    for obj in view.list_controlled(gvk, metadata["uid"]):
        if parsed_selector.matches(obj["metadata"].get("labels") or {}):
            claimed.append(obj)
        elif not is_deleting(obj) and not is_deleting(owner):
            kept = [reference for reference in list_owner_references(obj) if reference["uid"] != metadata["uid"]]
            writer.update({**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}})
    if is_deleting(owner):
        return claimed
    for obj in view.list_orphans(gvk, metadata["namespace"]):
        if not is_deleting(obj) and parsed_selector.matches(obj["metadata"].get("labels") or {}):
            references = [*list_owner_references(obj), build_owner_reference(owner)]
            claimed.append(writer.update({**obj, "metadata": {**obj["metadata"], "ownerReferences": references}}))
    return claimed
