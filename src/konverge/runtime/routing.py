"""Whom a change concerns: from an object's metadata to the owners that are to be reconciled. Pure.

An object concerns an owner if it *is* the owner, if the owner controls it (the one owner reference with ``controller:
true``, matched by group and kind, since the version of a reference says nothing), or if a pass of the owner read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from konverge.kube import GroupVersionKind, ObjectKey
from konverge.kube.metadata import ObjectMeta
from konverge.runtime.reads import Reader, ReadObject, Reads

__all__ = ["OwnedKind", "Routing"]


@dataclass(frozen=True, slots=True)
class OwnedKind:
    """A kind whose objects are owners here."""

    gvk: GroupVersionKind
    namespaced: bool


class Routing:
    """Finds the owners that a change concerns, and tells what the caches need to hold.

    Args:
        kinds: The kinds whose objects are owners here.
        reads: Who read what.
    """

    def __init__(self, kinds: Iterable[OwnedKind], reads: Reads) -> None:
        self._kinds = {kind.gvk.group_kind: kind for kind in kinds}
        self._reads = reads

    def concerned(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> dict[Reader, str]:
        """The owners that a change concerns, each with the reason, in no particular order.

        Args:
            gvk: The kind of the object that changed.
            old: Its metadata before; None when it is new.
            new: Its metadata now; None when it is gone.
        """
        meta = new or old
        if meta is None:
            return {}
        key = meta.key
        what = "came" if old is None else "went" if new is None else "changed"
        reason = f"{gvk.kind} {key} {what}"
        found = dict.fromkeys(self._reads.readers_of(ReadObject(gvk, key)), reason)
        for state in (old, new):  # an object that changes its owner concerns both
            if state is not None and (controller := self._controller(state)) is not None:
                found[controller] = reason
        if self._is_owner(gvk):
            found[Reader(gvk, key)] = reason
        return found

    def keeps(self, gvk: GroupVersionKind, meta: ObjectMeta) -> bool:
        """Tell whether the caches are to hold the object: one of our owners, controlled by one, or read by one."""
        return (
            self._is_owner(gvk) or self._controller(meta) is not None or self._reads.is_read(ReadObject(gvk, meta.key))
        )

    def _is_owner(self, gvk: GroupVersionKind) -> bool:
        kind = self._kinds.get(gvk.group_kind)
        return kind is not None and kind.gvk == gvk

    def _controller(self, meta: ObjectMeta) -> Reader | None:
        reference = meta.controller
        if reference is None:
            return None
        kind = self._kinds.get(GroupVersionKind.parse(reference.api_version, reference.kind).group_kind)
        if kind is None:
            return None
        return Reader(kind.gvk, ObjectKey(meta.namespace if kind.namespaced else "", reference.name))
