"""Deletion of an object: it is removed at once, or marked while finalizers or a grace period remain. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from konverge._internal.kube import Object, format_time
from konverge.errors import InvalidError
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.validation.field_errors import field_not_supported, new_invalid

__all__ = ["JOB_WARNING", "DeleteOptions", "Propagation", "is_released", "mark_deleting", "parse_propagation"]

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]

_POLICIES: tuple[Propagation, ...] = ("Foreground", "Background", "Orphan")
_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
# Kinds whose dependents remain unless the request specifies a propagation policy.
_ORPHANING = frozenset({"jobs.batch"})
JOB_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a delete request.

    Attributes:
        propagation: The handling of dependents; None for the default of the kind.
        grace_seconds: The grace period of a pod in seconds; None for the period from its spec.
    """

    propagation: Propagation | None = None
    grace_seconds: int | None = None


def parse_propagation(text: str) -> Propagation | None:
    """Return the policy with that name; None for an empty name.

    Raises:
        InvalidError: The name is unknown.
    """
    for policy in _POLICIES:
        if text == policy:
            return policy
    if text:
        raise _new_invalid_propagation(text)
    return None


def _new_invalid_propagation(text: str) -> InvalidError:
    error = field_not_supported("propagationPolicy", text, (*_POLICIES, "nil"))
    return new_invalid("meta.k8s.io", "DeleteOptions", "", [error])


def mark_deleting(resource: ServedResource, obj: Object, options: DeleteOptions, now: datetime) -> bool:
    """Mark the object as being deleted, in place, and return True if it must remain for now.

    False means that the server can remove it. Marking twice changes nothing, except that a shorter grace period
    applies.
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
    """Return True if neither finalizers nor a grace period delay the deletion."""
    metadata = obj["metadata"]
    blockers = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
        blockers = blockers or (obj.get("spec") or {}).get("finalizers")
    return bool(metadata.get("deletionTimestamp")) and not blockers


def _list_finalizers(resource: ServedResource, obj: Object, propagation: Propagation | None) -> list[str]:
    """Return the finalizers that must be removed before the object disappears."""
    finalizers = list(obj["metadata"].get("finalizers") or ())
    if propagation is None:
        if resource.storage not in _ORPHANING or set(finalizers) & set(_FINALIZERS.values()):
            return finalizers
        propagation = "Orphan"
    others = [name for name in finalizers if name not in _FINALIZERS.values()]
    finalizer = _FINALIZERS.get(propagation)
    return others if finalizer is None else [*others, finalizer]


def _compute_grace(resource: ServedResource, obj: Object, asked: int | None) -> int | None:
    """Return the grace period in seconds; None for kinds that are removed at once."""
    if resource.storage != "pods":
        return None
    spec, phase = obj.get("spec") or {}, (obj.get("status") or {}).get("phase")
    # No kubelet runs a pod that is not scheduled or has ended, so there is no container to wait for.
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return max(0, asked)
    earlier = obj["metadata"].get("deletionGracePeriodSeconds")
    return int(earlier if earlier is not None else spec.get("terminationGracePeriodSeconds", 30))
