"""Changes of pods by the admission plug-ins that are on by default: priority, tolerations and runtime classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge._internal.kube import Object, ObjectKey
from konverge._internal.kube.quantities import quantity_to_fraction
from konverge.errors import ForbiddenError
from konverge_cluster._internal.embedded.storage import Storage
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = ["PRIORITY_CLASSES", "admit_new_pod", "admit_pod_update", "find_default_priority_class"]

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
_TOLERATION_SECONDS = 300
_PREEMPTION = "PreemptLowerPriority"
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_new_pod(pod: Object, storage: Storage) -> None:
    """Set the fields that follow from the classes of a new pod, in place.

    Args:
        pod: The pod.
        storage: The storage with the priority classes and the runtime classes.

    Raises:
        ForbiddenError: A class does not exist, or the pod contradicts it.
    """
    spec = pod.setdefault("spec", {})
    _set_priority(pod, spec, storage)
    _add_tolerations(spec)
    _apply_runtime_class(pod, spec, storage)


def admit_pod_update(old: Object, pod: Object) -> None:
    """Restore the fields of a pod that only admission sets, in place, if the update omits them."""
    spec = pod.setdefault("spec", {})
    for name in ("priority", "preemptionPolicy"):
        if name in old["spec"]:
            spec.setdefault(name, old["spec"][name])
    _add_tolerations(spec)


def find_default_priority_class(storage: Storage) -> Object | None:
    """Return the class of pods that name none: the one with the lowest value if several are marked."""
    classes = [stored.object for stored in storage.iter_objects(PRIORITY_CLASSES) if stored.object.get("globalDefault")]
    return min(classes, key=lambda entry: int(entry["value"]), default=None)


def _set_priority(pod: Object, spec: Object, storage: Storage) -> None:
    name = spec.get("priorityClassName")
    if name:
        stored = storage.get(PRIORITY_CLASSES, ObjectKey("", name))
        if stored is None:
            raise _new_forbidden_pod(pod, f"no PriorityClass with name {name} was found")
        chosen: Object | None = stored.object
    else:
        chosen = find_default_priority_class(storage)
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    chosen = chosen or {}
    for field, label, value in (
        ("priority", "the integer value of priority", chosen.get("value", 0)),
        ("preemptionPolicy", "the string value of PreemptionPolicy", chosen.get("preemptionPolicy", _PREEMPTION)),
    ):
        if spec.setdefault(field, value) != value:
            why = f"({spec[field]}) must not be provided in pod spec; priority admission controller computed {value}"
            raise _new_forbidden_pod(pod, f"{label} {why} from the given PriorityClass name")


def _add_tolerations(spec: Object) -> None:
    """Let the pod stay for some minutes on a node that is not reachable."""
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


def _tolerates(toleration: Mapping[str, Any], taint: str) -> bool:
    matches_key = toleration.get("key") == taint or not toleration.get("key")
    return matches_key and toleration.get("effect") in (None, "", "NoExecute")


def _apply_runtime_class(pod: Object, spec: Object, storage: Storage) -> None:
    name = spec.get("runtimeClassName")
    stored = storage.get(_RUNTIME_CLASSES, ObjectKey("", name)) if name else None
    if name and stored is None:
        raise _new_forbidden_pod(pod, f"pod rejected: RuntimeClass {quote(name)} not found")
    runtime_class: Object = {} if stored is None else stored.object
    overhead = (runtime_class.get("overhead") or {}).get("podFixed")
    if overhead is None:
        if spec.get("overhead") is not None:
            reason = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise _new_forbidden_pod(pod, reason)
    elif spec.get("overhead") and _read_amounts(spec["overhead"]) != _read_amounts(overhead):
        raise _new_forbidden_pod(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    else:
        spec["overhead"] = dict(overhead)
    scheduling = runtime_class.get("scheduling")
    if scheduling is None:
        return
    selector, demanded = dict(spec.get("nodeSelector") or {}), scheduling.get("nodeSelector") or {}
    for key, value in demanded.items():
        if selector.setdefault(key, value) != value:
            own = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            raise _new_forbidden_pod(pod, f"conflict: {own}; pod.spec.nodeSelector[{key}] = {selector[key]}")
    if selector:
        spec["nodeSelector"] = selector
    spec["tolerations"] = _merge_tolerations([*spec["tolerations"], *(scheduling.get("tolerations") or ())])


def _read_amounts(resources: Mapping[str, Any]) -> dict[str, Any]:
    return {name: quantity_to_fraction(quantity) for name, quantity in resources.items()}


def _merge_tolerations(tolerations: list[Object]) -> list[Object]:
    """Return the tolerations without those that another one includes; of equal ones the first stays."""
    merged: list[Object] = []
    for index, toleration in enumerate(tolerations):
        later = (other for other in tolerations[index + 1 :] if other != toleration)
        if not any(_includes(other, toleration) for other in (*merged, *later)):
            merged.append(toleration)
    return merged


def _includes(wide: Mapping[str, Any], narrow: Mapping[str, Any]) -> bool:
    if wide == narrow:
        return True
    operator = wide.get("operator") or "Equal"
    if wide.get("key", "") != narrow.get("key", "") and (wide.get("key") or operator != "Exists"):
        return False
    if wide.get("effect") and wide["effect"] != narrow.get("effect", ""):
        return False
    seconds = wide.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and seconds is not None:
        own = narrow.get("tolerationSeconds")
        if own is None or own > seconds:
            return False
    if operator == "Exists":
        return True
    return narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", "")


def _new_forbidden_pod(pod: Object, reason: str) -> ForbiddenError:
    name = pod["metadata"].get("name", "")
    details = {"name": name, "kind": "pods"} if name else {"kind": "pods"}
    return ForbiddenError(f"pods {quote(name)} is forbidden: {reason}", details=details)
