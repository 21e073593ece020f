"""Changes to new objects by the admission plug-ins that are on by default."""

from __future__ import annotations

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.resource_registry import ServedResource

__all__ = ["run_plugins", "stamp_template_generation"]

_CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_TOLERATION_SECONDS = 300
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def run_plugins(resource: ServedResource, obj: Object) -> None:
    """Run the admission plug-ins on a new object, in place."""
    match resource.storage:
        case "pods":
            _complete_pod(obj)
        case "persistentvolumeclaims":
            finalizers = obj["metadata"].get("finalizers") or []
            if _CLAIM_PROTECTION not in finalizers:
                obj["metadata"]["finalizers"] = [*finalizers, _CLAIM_PROTECTION]


def _complete_pod(pod: Object) -> None:
    """Set the priority of pods without a class, and the tolerations for unreachable nodes."""
    spec = pod.setdefault("spec", {})
    if not spec.get("priorityClassName"):
        spec.setdefault("priority", 0)
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations: list[Object] = list(spec.get("tolerations") or ())
    for taint in _TAINTS:
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            tolerations.append(
                {
                    "key": taint,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATION_SECONDS,
                }
            )
    spec["tolerations"] = tolerations


def _tolerates(toleration: Object, taint: str) -> bool:
    matches_key = toleration.get("key") == taint or not toleration.get("key")
    return matches_key and toleration.get("effect") in (None, "", "NoExecute")


def stamp_template_generation(new: Object, old: Object | None = None) -> None:
    """Count the changes of a DaemonSet's template in its annotation, in place, as apps/v1 does."""
    count = 1
    if old is not None:
        before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
        same = (old.get("spec") or {}).get("template") == (new.get("spec") or {}).get("template")
        count = int(before) + (0 if same else 1)
    metadata = new["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), _TEMPLATE_GENERATION: str(count)}
