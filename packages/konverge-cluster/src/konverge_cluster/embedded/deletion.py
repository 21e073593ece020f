"""What a delete does to an object: takes it out at once, or marks it because something holds it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from konverge.errors import InvalidError
from konverge.kube import Object, format_time
from konverge_cluster.embedded.resource_registry import ServedResource
from konverge_cluster.embedded.validation.field_errors import field_not_supported, new_invalid

__all__ = ["JOB_WARNING", "DeleteOptions", "Propagation", "is_released", "mark_deleting", "parse_propagation"]

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]

_POLICIES: tuple[Propagation, ...] = ("Foreground", "Background", "Orphan")
_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
# Kinds whose dependents stay unless the request says otherwise.
_ORPHANING = frozenset({"jobs.batch"})
JOB_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How an object is to be deleted.

    Attributes:
        propagation: What becomes of its dependents; None for what is usual for the kind.
        grace_seconds: For pods: how long they may take; None for what they ask for themselves.
    """

    propagation: Propagation | None = None
    grace_seconds: int | None = None


def parse_propagation(text: str) -> Propagation | None:
    """The policy of that name, None for no name.

    Raises:
        InvalidError: There is none of that name.
    """
    for policy in _POLICIES:
        if text == policy:
            return policy
    if text:
        raise _new_invalid_propagation(text)
    return None


def _new_invalid_propagation(text: str) -> InvalidError:
    mistake = field_not_supported("propagationPolicy", text, (*_POLICIES, "nil"))
    return new_invalid("meta.k8s.io", "DeleteOptions", "", [mistake])


def mark_deleting(resource: ServedResource, obj: Object, options: DeleteOptions, now: datetime) -> bool:
    """Mark the object as being deleted, in place, and tell whether it stays for now.

    False means that nothing holds it: the server takes it out. Marking twice changes nothing, but a shorter grace than
    before counts.
    """
    metadata = obj["metadata"]
    finalizers = _list_finalizers(resource, obj, options.propagation)
    grace = _compute_grace(resource, obj, options.grace_seconds)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if resource.storage == "namespaces":
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
        finalizers = [*finalizers, *(obj.get("spec") or {}).get("finalizers", ())]
    earlier = metadata.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" not in metadata or (grace is not None and earlier is not None and grace < earlier):
        metadata["deletionTimestamp"] = format_time(now + timedelta(seconds=grace or 0))
        if resource.storage != "namespaces":
            metadata["deletionGracePeriodSeconds"] = grace or 0
        if metadata.get("generation"):
            metadata["generation"] += 1
    return bool(finalizers) or bool(grace and metadata.get("deletionGracePeriodSeconds"))


def is_released(obj: Object) -> bool:
    """Tell whether an object that is being deleted is held by nothing any more."""
    metadata = obj["metadata"]
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
        held = held or (obj.get("spec") or {}).get("finalizers")
    return bool(metadata.get("deletionTimestamp")) and not held


def _list_finalizers(resource: ServedResource, obj: Object, propagation: Propagation | None) -> list[str]:
    """The finalizers that the object has to lose before it goes."""
    found = list(obj["metadata"].get("finalizers") or ())
    if propagation is None:
        if resource.storage not in _ORPHANING or set(found) & set(_FINALIZERS.values()):
            return found
        propagation = "Orphan"
    others = [name for name in found if name not in _FINALIZERS.values()]
    wanted = _FINALIZERS.get(propagation)
    return others if wanted is None else [*others, wanted]


def _compute_grace(resource: ServedResource, obj: Object, asked: int | None) -> int | None:
    """The seconds that the object may take; None for kinds that go at once."""
    if resource.storage != "pods":
        return None
    spec, phase = obj.get("spec") or {}, (obj.get("status") or {}).get("phase")
    # Nobody runs a pod that came to no node, or that has ended: there is nothing to wait for.
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return max(0, asked)
    earlier = obj["metadata"].get("deletionGracePeriodSeconds")
    return int(earlier if earlier is not None else spec.get("terminationGracePeriodSeconds", 30))
