"""Who controls what: a controller takes over what matches its selector, and lets go of what no longer does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from konverge.kube import GroupVersionKind, Object, ObjectKey, build_owner_reference, is_deleting
from konverge.kube.selectors import LabelSelector
from konverge_cluster.embedded.controllers.cluster_view import ClusterChange, ClusterView, list_owner_references
from konverge_cluster.embedded.controllers.controller_client import ControllerClient

__all__ = ["claim_objects", "find_controller_key", "list_affected_controllers"]


def find_controller_key(obj: Object, gvk: GroupVersionKind) -> ObjectKey | None:
    """The key of the object's controller when that is of the given kind."""
    for reference in list_owner_references(obj):
        if reference.get("controller") is True:
            group = reference["apiVersion"].rpartition("/")[0]
            if (group, reference["kind"]) != gvk.group_kind:
                return None
            return ObjectKey(obj["metadata"].get("namespace", ""), reference["name"])
    return None


def list_affected_controllers(view: ClusterView, notice: ClusterChange, gvk: GroupVersionKind) -> Iterable[ObjectKey]:
    """Which controllers of that kind a changed object concerns.

    The one that controls it, and the one that did before; for an object that nobody controls, those whose selector
    matches: one of them may take it over.
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
        return keys  # nothing changed that could bring it an owner
    for found in view.list_kind(gvk, notice.key.namespace):
        wanted = LabelSelector.from_object(found["spec"].get("selector"))
        if wanted is not None and wanted.matches(labels):
            keys[ObjectKey.of(found)] = None
    return keys


def claim_objects(
    view: ClusterView, writer: ControllerClient, owner: Object, gvk: GroupVersionKind, selector: Mapping[str, Any]
) -> list[Object]:
    """The objects of that kind that the owner controls, once it has taken over and let go what it should.

    An owner that is being deleted changes nothing any more.
    """
    wanted = LabelSelector.from_object(selector)
    if wanted is None:
        return []
    metadata = owner["metadata"]
    claimed = []
    for obj in view.list_controlled(gvk, metadata["uid"]):
        if wanted.matches(obj["metadata"].get("labels") or {}):
            claimed.append(obj)
        elif not is_deleting(obj) and not is_deleting(owner):
            kept = [found for found in list_owner_references(obj) if found["uid"] != metadata["uid"]]
            writer.update({**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}})
    if is_deleting(owner):
        return claimed
    for obj in view.list_orphans(gvk, metadata["namespace"]):
        if not is_deleting(obj) and wanted.matches(obj["metadata"].get("labels") or {}):
            references = [*list_owner_references(obj), build_owner_reference(owner)]
            claimed.append(writer.update({**obj, "metadata": {**obj["metadata"], "ownerReferences": references}}))
    return claimed
