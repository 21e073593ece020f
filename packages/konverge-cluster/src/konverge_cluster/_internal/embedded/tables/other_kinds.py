"""Printers of the other kinds: namespaces, nodes, storage, configuration, events, roles and policies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.tables.printers import (
    NONE,
    TablePrinter,
    build_printer,
    format_age,
    format_since,
    get_field,
)

__all__ = ["OTHER_KINDS"]

_UNSET = "<unset>"
_RBAC = "rbac.authorization.k8s.io"
_ROLE_LABEL = "node-role.kubernetes.io/"
_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _phase(obj: Object) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else get_field(obj, "status", "phase", default="")


def _namespace(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), get_field(obj, "status", "phase", default=""), format_age(obj, now)]


def _node(obj: Object, now: datetime) -> list[Any]:
    conditions = get_field(obj, "status", "conditions", default=())
    ready = next((entry for entry in conditions if entry.get("type") == "Ready"), None)
    status = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    if get_field(obj, "spec", "unschedulable"):
        status += ",SchedulingDisabled"
    labels: Mapping[str, str] = get_field(obj, "metadata", "labels", default={})
    roles = sorted(name.removeprefix(_ROLE_LABEL) for name in labels if name.startswith(_ROLE_LABEL))
    info = get_field(obj, "status", "nodeInfo", default={})
    addresses = {entry.get("type"): entry.get("address") for entry in get_field(obj, "status", "addresses", default=())}
    kernel = info.get("kernelVersion") or "<unknown>"
    architecture = info.get("architecture")
    return [
        _name(obj),
        status,
        ",".join(roles) or NONE,
        format_age(obj, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or "<unknown>",
        f"{kernel} ({architecture})" if architecture else kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _format_access_modes(modes: Any) -> str:
    return ",".join(_ACCESS_MODES.get(str(mode), str(mode)) for mode in modes or ())


def _claim(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    is_bound = bool(spec.get("volumeName"))
    return [
        _name(obj),
        _phase(obj),
        spec.get("volumeName", ""),
        get_field(status, "capacity", "storage", default="0") if is_bound else "",
        _format_access_modes(status.get("accessModes")) if is_bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or _UNSET,
        format_age(obj, now),
        spec.get("volumeMode") or _UNSET,
    ]


def _volume(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    claim = spec.get("claimRef")
    return [
        _name(obj),
        get_field(spec, "capacity", "storage", default="0"),
        _format_access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or _UNSET,
        get_field(obj, "status", "reason", default=""),
        format_age(obj, now),
        spec.get("volumeMode") or _UNSET,
    ]


def _storage_class(obj: Object, now: datetime) -> list[Any]:
    is_default = get_field(obj, "metadata", "annotations", _DEFAULT_CLASS) == "true"
    return [
        f"{_name(obj)} (default)" if is_default else _name(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
        format_age(obj, now),
    ]


def _priority_class(obj: Object, now: datetime) -> list[Any]:
    is_default = bool(obj.get("globalDefault"))
    return [_name(obj), obj.get("value", 0), is_default, format_age(obj, now), obj.get("preemptionPolicy", "")]


def _runtime_class(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), obj.get("handler", ""), format_age(obj, now)]


def _config_map(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), format_age(obj, now)]


def _secret(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), obj.get("type", ""), len(obj.get("data") or ()), format_age(obj, now)]


def _format_name_and_age(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), format_age(obj, now)]


def _format_name_and_created(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), obj["metadata"].get("creationTimestamp")]


def _event(obj: Object, now: datetime) -> list[Any]:
    """Return the cells of an Event in either of its forms."""
    target = obj.get("involvedObject") or obj.get("regarding") or {}
    first = format_since(obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime"), now)
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    last_seen = first if last is None else format_since(last, now)
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    series = obj.get("series")
    if series:
        last_seen, count = format_since(series.get("lastObservedTime"), now), series.get("count", count)
    kind, name = target.get("kind", "").lower(), target.get("name")
    return [
        last_seen,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        target.get("fieldPath", ""),
        _event_source(obj),
        (obj.get("message") or obj.get("note") or "").strip(),
        first,
        count,
        _name(obj),
    ]


def _event_source(obj: Object) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _binding(obj: Object, now: datetime) -> list[Any]:
    role = obj.get("roleRef") or {}
    subjects = obj.get("subjects") or ()
    users = [subject.get("name", "") for subject in subjects if subject.get("kind") == "User"]
    groups = [subject.get("name", "") for subject in subjects if subject.get("kind") == "Group"]
    accounts = [
        f"{subject.get('namespace', '')}/{subject.get('name', '')}"
        for subject in subjects
        if subject.get("kind") == "ServiceAccount"
    ]
    return [
        _name(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        format_age(obj, now),
        ", ".join(users),
        ", ".join(groups),
        ", ".join(accounts),
    ]


def _lease(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), get_field(obj, "spec", "holderIdentity", default=""), format_age(obj, now)]


def _budget(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    limits = [str(spec[name]) if name in spec else "N/A" for name in ("minAvailable", "maxUnavailable")]
    return [_name(obj), *limits, get_field(obj, "status", "disruptionsAllowed", default=0), format_age(obj, now)]


def _autoscaler(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    target = spec.get("scaleTargetRef") or {}
    low = spec.get("minReplicas")
    return [
        _name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or [], get_field(obj, "status", "currentMetrics") or []),
        _UNSET if low is None else str(low),
        spec.get("maxReplicas", 0),
        get_field(obj, "status", "currentReplicas", default=0),
        format_age(obj, now),
    ]


def _metrics(desired: list[Any], current: list[Any]) -> str:
    if not desired:
        return NONE
    listed = [_metric(metric, current[index] if index < len(current) else {}) for index, metric in enumerate(desired)]
    text = ", ".join(listed[:2])
    return f"{text} + {len(listed) - 2} more..." if len(listed) > 2 else text


def _metric(metric: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    source = metric.get("type", "")
    key = source[:1].lower() + source[1:]
    desired, current = metric.get(key) or {}, get_field(status, key, "current", default={})
    target = desired.get("target") or {}
    if key in ("resource", "containerResource"):
        prefix = f"{desired.get('name', '')}: "
        if "averageValue" not in target:
            share, aim = current.get("averageUtilization"), target.get("averageUtilization")
            return f"{prefix}{'<unknown>' if share is None else f'{share}%'}/{'<auto>' if aim is None else f'{aim}%'}"
        return f"{prefix}{current.get('averageValue', '<unknown>')}/{target['averageValue']}"
    if "averageValue" in target:
        mark = "" if key == "pods" else " (avg)"
        return f"{current.get('averageValue', '<unknown>')}/{target['averageValue']}{mark}"
    return f"{current.get('value', '<unknown>')}/{target.get('value', '')}"


_BINDING = build_printer("Name, Role, Age, +Users, +Groups, +ServiceAccounts", _binding)
_DATED = build_printer("Name, Created At@", _format_name_and_created)
OTHER_KINDS: Mapping[str, TablePrinter] = {
    "namespaces": build_printer("Name, Status, Age", _namespace),
    "nodes": build_printer(
        "Name, Status, Roles, Age, Version, +Internal-IP, +External-IP, +OS-Image, +Kernel-Version, +Container-Runtime",
        _node,
    ),
    "persistentvolumeclaims": build_printer(
        "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, +VolumeMode", _claim
    ),
    "persistentvolumes": build_printer(
        "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age,"
        "+VolumeMode",
        _volume,
    ),
    "storageclasses.storage.k8s.io": build_printer(
        "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age", _storage_class
    ),
    "priorityclasses.scheduling.k8s.io": build_printer(
        "Name, Value, Global-Default, Age, +PreemptionPolicy", _priority_class
    ),
    "runtimeclasses.node.k8s.io": build_printer("Name, Handler, Age", _runtime_class),
    "configmaps": build_printer("Name, Data, Age", _config_map),
    "secrets": build_printer("Name, Type, Data, Age", _secret),
    "serviceaccounts": build_printer("Name, Age", _format_name_and_age),
    "events": build_printer(
        "Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +Name", _event
    ),
    f"roles.{_RBAC}": _DATED,
    f"clusterroles.{_RBAC}": _DATED,
    f"rolebindings.{_RBAC}": _BINDING,
    f"clusterrolebindings.{_RBAC}": _BINDING,
    "leases.coordination.k8s.io": build_printer("Name, Holder, Age", _lease),
    "customresourcedefinitions.apiextensions.k8s.io": _DATED,
    "poddisruptionbudgets.policy": build_printer(
        "Name, Min Available, Max Unavailable, Allowed Disruptions#, Age", _budget
    ),
    "horizontalpodautoscalers.autoscaling": build_printer(
        "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age", _autoscaler
    ),
}
