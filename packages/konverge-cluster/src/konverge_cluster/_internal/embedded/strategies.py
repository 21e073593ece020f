"""The fields that a write cannot change, by kind.

A create ignores the status of the request. An update of the main resource keeps the stored status; an update of a
subresource keeps everything else. ``metadata.generation`` counts the changes of the spec. The rules follow the registry
strategies of kube-apiserver v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from konverge._internal.kube import Object, format_time
from konverge_cluster._internal.embedded.qos_class import compute_qos_class
from konverge_cluster._internal.embedded.resource_registry import ServedResource

__all__ = ["prepare_create", "prepare_update"]

_IDENTITY = frozenset({"apiVersion", "kind", "metadata"})
# Fields that an update never changes, since only the server writes them.
_SERVER_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
# The status of a new object, whatever the request contains.
_INITIAL_STATUS: Mapping[str, Object] = {
    "namespaces": {"phase": "Active"},
    "persistentvolumeclaims": {"phase": "Pending"},
    "replicationcontrollers": {"replicas": 0},
    "resourcequotas": {},
    "services": {"loadBalancer": {}},
    "deployments.apps": {},
    "daemonsets.apps": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "replicasets.apps": {"replicas": 0},
    "statefulsets.apps": {"replicas": 0, "availableReplicas": 0},
    "horizontalpodautoscalers.autoscaling": {"desiredReplicas": 0, "currentMetrics": None},
    "cronjobs.batch": {},
    "jobs.batch": {},
    "ingresses.networking.k8s.io": {"loadBalancer": {}},
    "poddisruptionbudgets.policy": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    "customresourcedefinitions.apiextensions.k8s.io": {},
}
# The condition of a new pod that is not scheduled yet because of its gates.
_GATED: Object = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
# Metadata that a status write does not change either, in addition to the fields above.
_KEPT_BY_STATUS: Mapping[str, tuple[str, ...]] = {
    "deployments.apps": ("labels",),
    "pods": ("ownerReferences",),
}


def prepare_create(resource: ServedResource, obj: Object, *, uid: str, now: datetime) -> None:
    """Initialize the fields of a new object that the server owns, in place.

    Args:
        resource: The resource of the object.
        obj: The object, with its defaults.
        uid: The UID of the new object.
        now: The creation time.
    """
    metadata = obj["metadata"]
    for name in ("resourceVersion", "selfLink"):
        metadata.pop(name, None)
    metadata["uid"] = uid
    if resource.has_generation:
        metadata["generation"] = 1
    metadata["creationTimestamp"] = format_time(now)
    match resource.storage:
        case "pods":
            status: Object = {"phase": "Pending", "qosClass": compute_qos_class(obj.get("spec") or {})}
            if (obj.get("spec") or {}).get("schedulingGates"):
                status["conditions"] = [dict(_GATED)]
            obj["status"] = status
        case "priorityclasses.scheduling.k8s.io":
            metadata["generation"] = 1  # and never increased
        case "persistentvolumeclaims":
            spec = obj.get("spec") or {}
            if spec.get("dataSource") is not None and spec.get("dataSourceRef") is None:
                spec["dataSourceRef"] = dict(spec["dataSource"])
        case "persistentvolumes":
            obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": format_time(now)}
        case "namespaces":
            finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
            if "kubernetes" not in finalizers:
                finalizers.append("kubernetes")
        case "jobs.batch":
            _set_job_selector(obj)
    if resource.is_custom:
        if "status" in resource.mapping.subresources:
            obj.pop("status", None)
    elif resource.storage in _INITIAL_STATUS:
        obj["status"] = dict(_INITIAL_STATUS[resource.storage])


def prepare_update(resource: ServedResource, old: Object, new: Object, *, now: datetime, subresource: str = "") -> None:
    """Restore the fields that this write cannot change, and increase the generation if needed, in place.

    Args:
        resource: The resource of the object.
        old: The stored object; shared, not changed.
        new: The requested object.
        now: The time of the write.
        subresource: ``status`` or another; empty for the object itself.
    """
    metadata, before = new["metadata"], old["metadata"]
    for name in _SERVER_METADATA:
        _keep_field(name, before, metadata)
    if subresource == "status":
        _keep_all_but_status(resource, old, new)
        if resource.storage == "persistentvolumes":
            _stamp_phase(old, new, now)
        return
    # The binding of a pod to a node also changes its status.
    if "status" in resource.mapping.subresources and subresource != "binding":
        _keep_field("status", old, new)
    if resource.storage == "namespaces" and subresource != "finalize":
        _keep_field("spec", old, new)
    if resource.storage == "secrets" and not new.get("type"):
        _keep_field("type", old, new)
    if resource.has_generation and subresource in ("", "scale") and _changes_spec(resource, old, new):
        metadata["generation"] = before.get("generation", 0) + 1


def _keep_all_but_status(resource: ServedResource, old: Object, new: Object) -> None:
    for name in {*old, *new} - _IDENTITY - {"status"}:
        _keep_field(name, old, new)
    if resource.is_custom:
        managed = new["metadata"].get("managedFields")
        new["metadata"] = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
        if managed is not None:
            new["metadata"]["managedFields"] = managed
    for name in _KEPT_BY_STATUS.get(resource.storage, ()):
        _keep_field(name, old["metadata"], new["metadata"])


def _stamp_phase(old: Object, new: Object, now: datetime) -> None:
    """Set the time of a volume's last change of phase, unless the client has set another."""
    before, after = old.get("status") or {}, new.get("status") or {}
    moment, earlier = after.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if before.get("phase") == after.get("phase"):
        if moment is None and earlier is not None:
            new["status"] = {**after, "lastPhaseTransitionTime": earlier}
    elif moment in (None, earlier):
        new["status"] = {**after, "lastPhaseTransitionTime": format_time(now)}


def _keep_field(name: str, before: Object, after: Object) -> None:
    if name in before:
        after[name] = before[name]
    else:
        after.pop(name, None)


def _changes_spec(resource: ServedResource, old: Object, new: Object) -> bool:
    before, after = old["metadata"], new["metadata"]
    if resource.storage == "deployments.apps" and (before.get("annotations") or {}) != (after.get("annotations") or {}):
        return True
    if resource.storage == "endpointslices.discovery.k8s.io" and before.get("labels") != after.get("labels"):
        return True
    has_status = not resource.is_custom or "status" in resource.mapping.subresources
    ignored = ("metadata", "status") if has_status else ("metadata",)
    return _without(old, ignored) != _without(new, ignored)


def _without(obj: Object, names: tuple[str, ...]) -> Object:
    return {name: value for name, value in obj.items() if name not in names}


def _set_job_selector(job: Object) -> None:
    """Set the selector and the labels that identify the pods of a Job."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is not None:
        return
    uid, name = metadata["uid"], metadata.get("name", "")
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    template = spec["template"] = {**(spec.get("template") or {})}
    labels = {
        **((template.get("metadata") or {}).get("labels") or {}),
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
    if not metadata.get("labels"):
        metadata["labels"] = dict(labels)
