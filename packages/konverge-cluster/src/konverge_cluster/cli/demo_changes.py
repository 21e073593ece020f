"""What changes between two moments of the demo's world, and how each object is, in few words. Pure."""

from __future__ import annotations

from konverge.kube import Condition, Object, is_deleting
from konverge_cluster.cli.demo_script import WEBAPP, DemoState

__all__ = ["describe_changes", "describe_state", "get_conditions"]


def get_conditions(webapp: Object | None) -> tuple[Condition, ...]:
    """The custom resource's conditions, in its order; none when there is no custom resource."""
    listed = ((webapp or {}).get("status") or {}).get("conditions") or ()
    return tuple(Condition.from_object(found) for found in listed)


def describe_changes(before: DemoState, after: DemoState) -> list[str]:
    """One line for each object that came or went and for each condition whose status or reason is another now."""
    lines = [f"- {kind} {name}" for kind, name in before.objects if (kind, name) not in after.objects]
    lines += [f"+ {kind} {name}" for kind, name in after.objects if (kind, name) not in before.objects]
    earlier = {found.type: (found.status, found.reason) for found in get_conditions(before.webapp)}
    lines += [
        f"{found.type:<14} {found.status:<6} {found.reason:<18} {found.message}".rstrip()
        for found in get_conditions(after.webapp)
        if earlier.get(found.type) != (found.status, found.reason)
    ]
    return lines


def describe_state(obj: Object) -> str:
    """How an object is: replicas of a workload, phase of a Pod; empty for what just exists."""
    if is_deleting(obj):
        return "terminating"
    status = obj.get("status") or {}
    match obj["kind"]:
        case "Deployment" | "StatefulSet" | "ReplicaSet":
            return f"{status.get('readyReplicas', 0)}/{obj['spec'].get('replicas', 1)} ready"
        case "Pod":
            ready = any(
                found["type"] == "Ready" and found["status"] == "True" for found in status.get("conditions") or ()
            )
            return "ready" if ready else str(status.get("phase", ""))
        case WEBAPP.kind:
            return f"generation {obj['metadata']['generation']}"
    return ""
