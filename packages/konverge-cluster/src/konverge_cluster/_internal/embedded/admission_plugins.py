"""Changes to new objects by the admission plug-ins that are on by default."""

from __future__ import annotations

from konverge._internal.kube import Object
from konverge.errors import ForbiddenError
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = ["run_plugins", "stamp_template_generation"]

_CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_TOLERATION_SECONDS = 300
# The classes that every cluster has.
_PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_PREEMPTION = "PreemptLowerPriority"
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def run_plugins(resource: ServedResource, obj: Object) -> None:
    """Run the admission plug-ins on a new object, in place."""
    match resource.storage:
        case "pods":
            _complete_pod(obj)
            _check_runtime_class(obj)
        case "persistentvolumeclaims":
            finalizers = obj["metadata"].get("finalizers") or []
            if _CLAIM_PROTECTION not in finalizers:
                obj["metadata"]["finalizers"] = [*finalizers, _CLAIM_PROTECTION]


def _complete_pod(pod: Object) -> None:
    """Set the priority of pods without a class, and the tolerations for unreachable nodes."""
    spec = pod.setdefault("spec", {})
    name = spec.get("priorityClassName")
    if name and name not in _PRIORITY_CLASSES:
        raise _new_forbidden_pod(pod, f"no PriorityClass with name {name} was found")
    for field, label, default in (
        ("priority", "the integer value of priority", _PRIORITY_CLASSES.get(name or "", 0)),
        ("preemptionPolicy", "the string value of PreemptionPolicy", _PREEMPTION),
    ):
        if spec.setdefault(field, default) != default:
            why = f"({spec[field]}) must not be provided in pod spec; priority admission controller computed {default}"
            raise _new_forbidden_pod(pod, f"{label} {why} from the given PriorityClass name")
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


def _check_runtime_class(pod: Object) -> None:
    """Refuse every RuntimeClass: this server has none."""
    name = pod["spec"].get("runtimeClassName")
    if name:
        raise _new_forbidden_pod(pod, f"pod rejected: RuntimeClass {quote(name)} not found")
    if pod["spec"].get("overhead"):
        reason = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise _new_forbidden_pod(pod, reason)


def _new_forbidden_pod(pod: Object, reason: str) -> ForbiddenError:
    name = pod["metadata"].get("name", "")
    details = {"name": name, "kind": "pods"} if name else {"kind": "pods"}
    return ForbiddenError(f"pods {quote(name)} is forbidden: {reason}", details=details)


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
