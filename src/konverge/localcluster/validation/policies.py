"""The rules of the smaller kinds: budgets, autoscalers, claims, ingresses, roles, leases and what else has a few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import Object
from konverge.kube.names import dns_subdomain_mistakes
from konverge.localcluster.validation.mistakes import IMMUTABLE, Mistake, forbidden, invalid, required, unsupported
from konverge.localcluster.validation.pods import NOT_NEGATIVE
from konverge.localcluster.validation.selectors import selector_mistakes

__all__ = [
    "autoscaler_mistakes",
    "binding_mistakes",
    "binding_update_mistakes",
    "budget_mistakes",
    "claim_mistakes",
    "claim_update_mistakes",
    "cluster_binding_mistakes",
    "ingress_mistakes",
    "lease_mistakes",
    "network_policy_mistakes",
    "revision_mistakes",
    "role_mistakes",
    "slice_mistakes",
    "storage_class_mistakes",
    "volume_mistakes",
    "volume_update_mistakes",
]

_SUBJECTS = ("ServiceAccount", "User", "Group")


def budget_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a PodDisruptionBudget."""
    spec = obj.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        if isinstance(spec.get(name), int) and spec[name] < 0:
            yield invalid(f"spec.{name}", spec[name], NOT_NEGATIVE)
    yield from selector_mistakes(spec.get("selector"), "spec.selector")


def autoscaler_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a HorizontalPodAutoscaler."""
    spec = obj.get("spec") or {}
    low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if low is not None and low < 1:
        yield invalid("spec.minReplicas", low, "must be greater than or equal to 1")
    if high < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    if low is not None and high < low:
        yield invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    target = spec.get("scaleTargetRef") or {}
    for name in ("kind", "name"):
        if not target.get(name):
            yield required(f"spec.scaleTargetRef.{name}")
    if "/" not in target.get("apiVersion", "") and target.get("kind") != "ReplicationController":
        told = "apiVersion must specify API group"
        yield invalid("spec.scaleTargetRef.apiVersion", target.get("apiVersion", ""), told)


def claim_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a PersistentVolumeClaim."""
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield required("spec.resources[storage]")
    yield from selector_mistakes(spec.get("selector"), "spec.selector")


def claim_update_mistakes(old: Object, new: Object) -> Iterator[Mistake]:
    """A claim stays as it is, but for its size once it is bound, and for the volume that it gets."""
    before, after = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        after.pop("volumeName", None)
    if (old.get("status") or {}).get("phase") == "Bound":
        for spec in (before, after):
            spec.pop("resources", None)
            spec.pop("volumeAttributesClassName", None)
    if before != after:
        told = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
        yield forbidden("spec", f"{told} for bound claims")


def volume_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a PersistentVolume."""
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    if not spec.get("capacity"):
        yield required("spec.capacity")


# What a PersistentVolume says beside its source, which is one field or another.
_BESIDE_SOURCE = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


def volume_update_mistakes(old: Object, new: Object) -> Iterator[Mistake]:
    """A volume stays what and where it is."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if _source(before) != _source(after):
        yield forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    if before.get("volumeMode") != after.get("volumeMode"):
        yield invalid("volumeMode", after.get("volumeMode"), IMMUTABLE)
    if before.get("nodeAffinity") and before["nodeAffinity"] != after.get("nodeAffinity"):
        yield invalid(
            "nodeAffinity", after.get("nodeAffinity"), f"{IMMUTABLE}, except for updating from beta label to GA"
        )


def _source(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in _BESIDE_SOURCE}


def storage_class_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a StorageClass."""
    if not obj.get("provisioner"):
        yield required("provisioner")


def ingress_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with an Ingress."""
    spec = obj.get("spec") or {}
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend"):
        yield from _backend_mistakes(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        at, host = f"spec.rules[{index}]", rule.get("host")
        if host:
            for detail in dns_subdomain_mistakes(host.removeprefix("*.")):
                yield invalid(f"{at}.host", host, detail)
        for number, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield from _path_mistakes(path, f"{at}.http.paths[{number}]")


def _path_mistakes(path: Mapping[str, Any], field: str) -> Iterator[Mistake]:
    kinds = ("Exact", "ImplementationSpecific", "Prefix")
    kind = path.get("pathType")
    if not kind:
        yield required(f"{field}.pathType", "pathType must be specified")
    elif kind not in kinds:
        yield unsupported(f"{field}.pathType", kind, kinds)
    elif kind != "ImplementationSpecific" and not (path.get("path") or "").startswith("/"):
        yield invalid(f"{field}.path", path.get("path", ""), "must be an absolute path")
    yield from _backend_mistakes(path.get("backend") or {}, f"{field}.backend")


def _backend_mistakes(backend: Mapping[str, Any], field: str) -> Iterator[Mistake]:
    service = backend.get("service")
    if service is None:
        return
    if not service.get("name"):
        yield required(f"{field}.service.name")
    port = service.get("port") or {}
    if not port.get("name") and not port.get("number"):
        yield required(field, "port name or number is required")


def network_policy_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a NetworkPolicy."""
    yield from selector_mistakes((obj.get("spec") or {}).get("podSelector"), "spec.podSelector")


def role_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a Role or a ClusterRole."""
    for index, rule in enumerate(obj.get("rules") or ()):
        at = f"rules[{index}]"
        if not rule.get("verbs"):
            yield required(f"{at}.verbs", "verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            continue
        if not rule.get("apiGroups"):
            yield required(f"{at}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{at}.resources", "resource rules must supply at least one resource")


def binding_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a RoleBinding."""
    yield from _role_binding_mistakes(obj, ("Role", "ClusterRole"))


def cluster_binding_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a ClusterRoleBinding."""
    yield from _role_binding_mistakes(obj, ("ClusterRole",))


def _role_binding_mistakes(obj: Object, kinds: tuple[str, ...]) -> Iterator[Mistake]:
    role = obj.get("roleRef") or {}
    if role.get("kind") not in kinds:
        yield unsupported("roleRef.kind", role.get("kind", ""), kinds)
    if not role.get("name"):
        yield required("roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        at, kind = f"subjects[{index}]", subject.get("kind", "")
        if not subject.get("name"):
            yield required(f"{at}.name")
        if kind not in _SUBJECTS:
            yield unsupported(f"{at}.kind", kind, _SUBJECTS)
        elif kind == "ServiceAccount" and not subject.get("namespace"):
            yield required(f"{at}.namespace")


def binding_update_mistakes(old: Object, new: Object) -> Iterator[Mistake]:
    """A binding stays with its role."""
    if old.get("roleRef") != new.get("roleRef"):
        yield invalid("roleRef", new.get("roleRef"), "cannot change roleRef")


def lease_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a Lease."""
    spec = obj.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, NOT_NEGATIVE)


def slice_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with an EndpointSlice."""
    kinds = ("FQDN", "IPv4", "IPv6")
    kind = obj.get("addressType")
    if not kind:
        yield required("addressType")
    elif kind not in kinds:
        yield unsupported("addressType", kind, kinds)


def revision_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a ControllerRevision."""
    if (obj.get("revision") or 0) < 0:
        yield invalid("revision", obj["revision"], NOT_NEGATIVE)
    if obj.get("data") is None:
        yield required("data", "data is mandatory")
