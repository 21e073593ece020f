"""Differences between two states of the demo's objects, and short descriptions of one state. Pure."""

from __future__ import annotations

from konverge._internal.kube import Condition, Object, is_deleting
from konverge_cluster._internal.cli.demo_script import DemoState

__all__ = ["describe_changes", "describe_state", "get_conditions"]


def get_conditions(webapp: Object | None) -> tuple[Condition, ...]:
    """Return the conditions of the custom resource in its order; none if there is no custom resource."""
    listed = ((webapp or {}).get("status") or {}).get("conditions") or ()
    return tuple(Condition.from_object(condition) for condition in listed)


def describe_changes(before: DemoState, after: DemoState) -> list[str]:
    """Return one line for each added or removed object and for each condition with a new status or reason.

    A line is an object, or the type, status, reason and message of a condition, separated by spaces.
    """
    lines = [f"- {kind} {name}" for kind, name in before.objects if (kind, name) not in after.objects]
    lines += [f"+ {kind} {name}" for kind, name in after.objects if (kind, name) not in before.objects]
    earlier = {condition.type: (condition.status, condition.reason) for condition in get_conditions(before.webapp)}
    lines += [
        f"{found.type:<14} {found.status:<6} {found.reason:<18} {found.message}".rstrip()
        for found in get_conditions(after.webapp)
        if earlier.get(found.type) != (found.status, found.reason)
    ]
    return lines


def describe_state(obj: Object) -> str:
    """Return the state of an object: replicas of a workload, phase of a Pod, else an empty text."""
    if is_deleting(obj):
        return "terminating"
    status = obj.get("status") or {}
    match obj["kind"]:
        case "Deployment" | "StatefulSet" | "ReplicaSet":
            return f"{status.get('readyReplicas', 0)}/{obj['spec'].get('replicas', 1)} ready"
        case "Pod":
            ready = any(
                condition["type"] == "Ready" and condition["status"] == "True"
                for condition in status.get("conditions") or ()
            )
            return "ready" if ready else str(status.get("phase", ""))
    return ""
