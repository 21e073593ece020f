"""The simulated garbage collector: it deletes objects without remaining owners, by owner UID.

An owner reference is *solid* while its owner exists, *waiting* while the owner waits in foreground deletion for its
dependents, *dangling* if the owner does not exist, and *unknown* if its kind is not served. An object with an unknown
owner is not changed. An object with a solid owner remains and loses its other references; one without is deleted. An
owner under deletion releases its dependents (orphan) or deletes them (foreground) before its finalizer is removed. The
rules are those of the real collector; the view replaces its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, is_deleting
from konverge_cluster._internal.embedded.controllers.builtin_kinds import CUSTOM_RESOURCE_DEFINITION
from konverge_cluster._internal.embedded.controllers.cluster_view import (
    ClusterChange,
    ClusterView,
    GroupKind,
    ViewItem,
    list_owner_references,
)
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.deletion import Propagation

__all__ = ["FOREGROUND", "ORPHAN", "GarbageCollector", "SortedOwners", "sort_owners"]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass
class SortedOwners:
    """An object's owner references, grouped by the state of the owner."""

    solid: list[dict[str, Any]] = field(default_factory=list)
    dangling: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    unknown: list[dict[str, Any]] = field(default_factory=list)


def sort_owners(view: ClusterView, obj: Object, is_served: Callable[[GroupVersionKind], bool]) -> SortedOwners:
    """Group the object's references. A reference to an object of another name, kind or namespace is dangling."""
    owners = SortedOwners()
    for reference in list_owner_references(obj):
        owner = view.find_by_uid(reference["uid"])
        if owner is None or not _matches_owner(reference, owner, obj):
            known = is_served(GroupVersionKind.parse(reference["apiVersion"], reference["kind"]))
            (owners.dangling if known else owners.unknown).append(reference)
        elif is_in_foreground(owner.object):
            owners.waiting.append(reference)
        else:
            owners.solid.append(reference)
    return owners


def is_in_foreground(obj: Object) -> bool:
    """Return True if the object waits for the deletion of its dependents."""
    return is_deleting(obj) and FOREGROUND in (obj["metadata"].get("finalizers") or ())


class GarbageCollector:
    """The controller. Its keys are UIDs.

    Args:
        view: The view of the cluster.
        writer: The client for deletes and updates.
        is_served: Returns True if the server serves a kind.
    """

    name = "garbage-collector-controller"
    watches: frozenset[GroupKind] | None = None

    def __init__(
        self, view: ClusterView, writer: ControllerClient, is_served: Callable[[GroupVersionKind], bool]
    ) -> None:
        self._view = view
        self._writer = writer
        self._is_served = is_served
        self._undecided: dict[str, None] = {}

    def keys_for(self, notice: ClusterChange) -> Iterable[str]:
        """Return the UIDs of the object, its owners in foreground deletion, and its dependents."""
        uid = notice.new["metadata"]["uid"]
        if notice.kind == CUSTOM_RESOURCE_DEFINITION.group_kind and self._undecided:
            undecided, self._undecided = self._undecided, {}
            return [*undecided, uid]
        if notice.type == "DELETED":
            self._undecided.pop(uid, None)
            dependents = [item.object["metadata"]["uid"] for item in self._view.list_dependents(uid)]
            return [*dependents, *self._list_waiting_owners(notice.new)]
        keys: dict[str, None] = {}
        references = list_owner_references(notice.new)
        before = list_owner_references(notice.old) if notice.old is not None else []
        if references != before:
            keys.update(dict.fromkeys(self._list_waiting_owners(notice.old) if notice.old is not None else ()))
            owners = sort_owners(self._view, notice.new, self._is_served)
            if owners.dangling or owners.waiting or owners.unknown:
                keys[uid] = None
        if is_deleting(notice.new):
            finalizers = notice.new["metadata"].get("finalizers") or ()
            if FOREGROUND in finalizers or ORPHAN in finalizers:
                keys[uid] = None
            if FOREGROUND in finalizers and (notice.old is None or not is_in_foreground(notice.old)):
                keys.update(
                    dict.fromkeys(item.object["metadata"]["uid"] for item in self._list_blocking_dependents(uid))
                )
        return keys

    def reconcile(self, key: Hashable) -> float | None:
        """Delete the object, remove references, or finish its own deletion."""
        assert isinstance(key, str)
        item = self._view.find_by_uid(key)
        if item is None:
            return None
        obj = item.object
        if is_deleting(obj):
            self._finish(key, obj)
            return None
        if not list_owner_references(obj):
            return None
        owners = sort_owners(self._view, obj, self._is_served)
        if owners.unknown:
            self._undecided[key] = None
        elif owners.solid:
            if owners.dangling or owners.waiting:
                self._remove_references(obj, {reference["uid"] for reference in [*owners.dangling, *owners.waiting]})
        elif owners.waiting and self._view.list_dependents(key):
            if any(is_in_foreground(dependent.object) for dependent in self._view.list_dependents(key)):
                obj = self._without_blocking(
                    obj
                )  # otherwise two that own each other would wait for each other for ever
            self._writer.delete(obj, propagation="Foreground")
        else:
            finalizers = obj["metadata"].get("finalizers") or ()
            propagation: Propagation = (
                "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
            )
            self._writer.delete(obj, propagation=propagation)
        return None

    def _finish(self, uid: str, obj: Object) -> None:
        finalizers = obj["metadata"].get("finalizers") or ()
        if ORPHAN in finalizers:
            for item in self._view.list_dependents(uid):
                self._remove_references(item.object, {uid})
            self._drop_finalizer(uid, ORPHAN)
        elif FOREGROUND in finalizers and not self._list_blocking_dependents(uid):
            self._drop_finalizer(uid, FOREGROUND)

    def _drop_finalizer(self, uid: str, finalizer: str) -> None:
        item = self._view.find_by_uid(uid)
        if item is None:
            return
        metadata = item.object["metadata"]
        remaining = [entry for entry in metadata.get("finalizers") or () if entry != finalizer]
        self._writer.update({**item.object, "metadata": {**metadata, "finalizers": remaining}})

    def _remove_references(self, obj: Object, uids: set[str]) -> None:
        metadata = dict(obj["metadata"])
        remaining = [reference for reference in list_owner_references(obj) if reference["uid"] not in uids]
        if remaining:
            metadata["ownerReferences"] = remaining
        else:
            metadata.pop("ownerReferences", None)
        self._writer.update({**obj, "metadata": metadata})

    def _without_blocking(self, obj: Object) -> Object:
        references = [{**reference, "blockOwnerDeletion": False} for reference in list_owner_references(obj)]
        return self._writer.update({**obj, "metadata": {**obj["metadata"], "ownerReferences": references}})

    def _list_blocking_dependents(self, uid: str) -> list[ViewItem]:
        return [
            item
            for item in self._view.list_dependents(uid)
            if any(
                reference["uid"] == uid and reference.get("blockOwnerDeletion")
                for reference in list_owner_references(item.object)
            )
        ]

    def _list_waiting_owners(self, obj: Object) -> list[str]:
        owners = (
            (reference["uid"], self._view.find_by_uid(reference["uid"])) for reference in list_owner_references(obj)
        )
        return [uid for uid, owner in owners if owner is not None and is_in_foreground(owner.object)]


def _matches_owner(reference: dict[str, Any], owner: ViewItem, dependent: Object) -> bool:
    group = str(reference["apiVersion"]).rpartition("/")[0]
    metadata = owner.object["metadata"]
    namespace = metadata.get("namespace", "")
    return (
        (group, reference["kind"]) == owner.kind
        and reference["name"] == metadata["name"]
        and namespace in ("", dependent["metadata"].get("namespace", ""))
    )
