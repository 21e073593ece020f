"""Fields that the embedded cluster stores and does not obey; a write that sets one causes a warning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.storage_classes import PROVISIONER

__all__ = ["IgnoredField", "iter_ignored_fields", "list_ignored_fields"]

_PREFIX = "konverge: "


class IgnoredField(NamedTuple):
    """A field without effect.

    Attributes:
        path: The path from the object, or from the spec of a pod; empty for the whole object.
        effect: What the embedded cluster does instead.
        applies: Returns True for the values that have no effect.
    """

    path: str
    effect: str
    applies: Callable[[Any], bool] = bool


def _is_deleting_claims(policy: Any) -> bool:
    return isinstance(policy, Mapping) and "Delete" in policy.values()


def _is_required(affinity: Any) -> bool:
    return isinstance(affinity, Mapping) and bool(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))


def _is_strict_spread(constraints: Any) -> bool:
    return any(entry.get("whenUnsatisfiable") == "DoNotSchedule" for entry in constraints or ())


def _has_host_ports(containers: Any) -> bool:
    return any(port.get("hostPort") for entry in containers or () for port in entry.get("ports") or ())


def _is_other_provisioner(provisioner: Any) -> bool:
    return provisioner not in ("kubernetes.io/no-provisioner", PROVISIONER)


_POD_FIELDS = (
    IgnoredField("affinity.podAffinity", "the scheduler does not look at other pods", _is_required),
    IgnoredField("affinity.podAntiAffinity", "the scheduler does not look at other pods", _is_required),
    IgnoredField("topologySpreadConstraints", "the scheduler does not spread pods", _is_strict_spread),
    IgnoredField("containers", "several pods with the same hostPort get the same node", _has_host_ports),
    IgnoredField("activeDeadlineSeconds", "the pod is not ended by a deadline"),
    IgnoredField("resourceClaims", "no devices are allocated"),
)
_FIELDS: Mapping[str, tuple[IgnoredField, ...]] = {
    "cronjobs.batch": (IgnoredField("", "no Jobs are created from it"),),
    "jobs.batch": (
        IgnoredField("spec.completionMode", "its pods have no indexes", lambda mode: mode == "Indexed"),
        IgnoredField("spec.podFailurePolicy", "failed pods only count against backoffLimit"),
        IgnoredField("spec.successPolicy", "the Job succeeds by completions only"),
        IgnoredField("spec.activeDeadlineSeconds", "the Job is not ended by a deadline"),
        IgnoredField("spec.podReplacementPolicy", "pods are replaced at once", lambda policy: policy == "Failed"),
    ),
    "limitranges": (IgnoredField("", "no object gets its defaults, and none is refused by its limits"),),
    "replicationcontrollers": (IgnoredField("", "no pods are created for it"),),
    "resourcequotas": (IgnoredField("", "no object is refused by its limits, and its status stays empty"),),
    "statefulsets.apps": (
        IgnoredField("spec.persistentVolumeClaimRetentionPolicy", "the claims remain", _is_deleting_claims),
    ),
    "storageclasses.storage.k8s.io": (
        IgnoredField(
            "provisioner", "no volumes are made from it: only storage.konverge.test makes some", _is_other_provisioner
        ),
    ),
}
_TEMPLATES: Mapping[str, str] = {
    "pods": "spec",
    "deployments.apps": "spec.template.spec",
    "replicasets.apps": "spec.template.spec",
    "daemonsets.apps": "spec.template.spec",
    "statefulsets.apps": "spec.template.spec",
    "jobs.batch": "spec.template.spec",
}


def iter_ignored_fields() -> Iterator[tuple[str, IgnoredField]]:
    """Yield each field with the storage name of its resource; those of pod templates count as fields of pods."""
    for storage, fields in _FIELDS.items():
        yield from ((storage, field) for field in fields)
    for field in _POD_FIELDS:
        yield "pods", field._replace(path=f"spec.{field.path}")


def list_ignored_fields(resource: ServedResource, obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about the fields of an object that have no effect, except those that were there before.

    Args:
        resource: The resource of the object.
        obj: The object to store.
        old: The stored object; None for a create.
    """
    fields = list(_FIELDS.get(resource.storage, ()))
    root = _TEMPLATES.get(resource.storage)
    if root is not None:
        fields += [field._replace(path=f"{root}.{field.path}") for field in _POD_FIELDS]
    warnings = []
    for field in fields:
        value = _get_value(obj, field.path)
        if value is not None and field.applies(value) and (old is None or _is_changed(old, field.path, value)):
            subject = field.path or resource.gvk.kind
            warnings.append(f"{_PREFIX}{subject} has no effect on the embedded cluster: {field.effect}")
    return warnings


def _is_changed(old: Object, path: str, value: Any) -> bool:
    return bool(path) and _get_value(old, path) != value


def _get_value(obj: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        obj = obj.get(name) if isinstance(obj, Mapping) else None
    return obj
