"""The component of a planned group: each object is a primitive of its kind, each decision an option of the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge._internal.component import Component, ComponentBuilder, Unplannable
from konverge._internal.feature import BooleanGate
from konverge._internal.kube import Object
from konverge._internal.primitives import (
    ClusterRole,
    ClusterRoleBinding,
    ConfigMap,
    CronJob,
    Custom,
    CustomResourceDefinition,
    DaemonSet,
    Deployment,
    Gateway,
    HorizontalPodAutoscaler,
    HTTPRoute,
    Ingress,
    Job,
    Namespace,
    NetworkPolicy,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    Primitive,
    ReplicaSet,
    Role,
    RoleBinding,
    Secret,
    Service,
    ServiceAccount,
    StatefulSet,
    Static,
    StaticKind,
)
from konverge.options import adopt, delete, ignore_if_absent, read_only, unowned
from konverge.prerequisites import depends_on
from konverge_box._internal.expressions import has_sensitive, reveal_sensitive
from konverge_box._internal.file import CUSTOM
from konverge_box._internal.steps.apply_policy import ObjectAction
from konverge_box._internal.steps.readiness import build_readiness
from konverge_box._internal.steps.resource_plan import PlannedGroup, PlannedResource

__all__ = ["PRIMITIVES", "build_component"]

PRIMITIVES: Mapping[str, type[Primitive[Any]]] = {
    "namespaces": Namespace,
    "customResourceDefinitions": CustomResourceDefinition,
    "resourceQuotas": Static,
    "limitRanges": Static,
    "secrets": Secret,
    "configMaps": ConfigMap,
    "networkPolicies": NetworkPolicy,
    "serviceAccounts": ServiceAccount,
    "clusterRoles": ClusterRole,
    "clusterRoleBindings": ClusterRoleBinding,
    "roles": Role,
    "roleBindings": RoleBinding,
    "persistentVolumes": PersistentVolume,
    "persistentVolumeClaims": PersistentVolumeClaim,
    CUSTOM: Custom,
    "replicaSets": ReplicaSet,
    "deployments": Deployment,
    "daemonSets": DaemonSet,
    "statefulSets": StatefulSet,
    "services": Service,
    "jobs": Job,
    "cronJobs": CronJob,
    "ingresses": Ingress,
    "gateways": Gateway,
    "httpRoutes": HTTPRoute,
    "horizontalPodAutoscalers": HorizontalPodAutoscaler,
    "podDisruptionBudgets": PodDisruptionBudget,
    "pods": Pod,
}
"""The primitive of each kind of the file."""


def build_component(planned: PlannedGroup, *, adopts: bool = True) -> Component:
    """Build the component of a group for this reconcile.

    Sensitive values are revealed only here, in the objects that the primitives keep for the engine. The condition of
    the component reports the errors of an object.

    Args:
        planned: The group.
        adopts: Tells whether existing objects are adopted, unless the resource declares ``adopt``.
    """
    builder = ComponentBuilder(planned.name, condition_type=planned.condition_type)
    for entry in planned.entries:
        _register_entry(builder, entry, adopts=adopts)
    # Objects that others need are created first and deleted last.
    for entry in reversed(planned.entries):
        if entry.action is ObjectAction.DELETE:
            builder.with_resource(_build_name_only(entry), delete())
    for condition_type in planned.waits_for:
        builder.with_prerequisite(depends_on(condition_type))
    if not planned.is_on:
        builder.with_feature_gate(BooleanGate(False))
    return builder.with_grace_period(planned.grace_period).suspend(planned.is_suspended).build()


def _register_entry(builder: ComponentBuilder, entry: PlannedResource, *, adopts: bool) -> None:
    allowed = entry.may_adopt(default=adopts)
    ownership = None if entry.is_owned else unowned()
    match entry.action:
        case ObjectAction.APPLY:
            desired = _build_desired(entry)
            if isinstance(desired, Unplannable):
                builder.with_unplannable(_build_name_only(entry), desired, ownership, adopt(allowed))
            else:
                builder.with_resource(desired, ownership, adopt(allowed))
        case ObjectAction.LEAVE if entry.foreign_owner and not allowed:
            # Otherwise the group would use an object of another owner, for example a Secret with foreign values.
            refusal = Unplannable(
                f"{entry.gvk.kind} {entry.key} exists already, {entry.foreign_owner}, and adoption is refused. "
                "Delete it, give one of the two another name, or allow its adoption"
            )
            builder.with_unplannable(_build_name_only(entry), refusal, ownership, adopt(False))
        case ObjectAction.LEAVE:
            builder.with_resource(_build_read_only(entry), read_only(), ignore_if_absent())


def _build_desired(entry: PlannedResource) -> Primitive[Any] | Unplannable:
    if entry.object is None:
        return Unplannable(entry.problem, is_failure=True) if entry.problem else Unplannable(entry.blocked)
    more: dict[str, Any] = {}
    if entry.resource.kind == "pods" or entry.is_renewed:  # few fields of a Pod, or none of a Secret, can change
        more["recreate"] = True
    holds_secret = has_sensitive(entry.object)
    # A primitive copies its object, so that only an object with sensitive values needs a copy here.
    made = _build_primitive(entry, reveal_sensitive(entry.object) if holds_secret else entry.object, **more)
    made.holds_secret = holds_secret
    made.guards_values, made.decided_on = entry.decided_on is not None, entry.decided_on
    if made.errors:  # the values of one custom resource caused it: a failure of its group, not of the box
        return Unplannable(f"{entry.resource.path}: {'; '.join(made.errors)}", is_failure=True)
    return made


def _build_read_only(entry: PlannedResource) -> Primitive[Any]:
    """Build the primitive of an object that is only read: its health comes from the live object."""
    if issubclass(PRIMITIVES[entry.resource.kind], StaticKind) and entry.find_unready is None:
        return _build_name_only(entry)
    return _build_primitive(entry, _build_minimal_object(entry))


def _build_primitive(entry: PlannedResource, obj: Object, **more: Any) -> Primitive[Any]:
    kind = PRIMITIVES[entry.resource.kind]
    if entry.find_unready is not None:
        # A kind without a status of its own needs one to be awaited.
        kind = Custom if issubclass(kind, StaticKind) else kind
        more |= build_readiness(kind, entry.find_unready)
    if kind is Custom:
        return Custom(
            obj,
            cluster_scoped=not entry.is_namespaced,
            required_conditions=entry.resource.required_conditions,
            **more,
        )
    make: Callable[..., Primitive[Any]] = kind
    return make(obj, **more)


def _build_name_only(entry: PlannedResource) -> Static:
    """Return a primitive with only a name, for an object that is not applied."""
    return Static(_build_minimal_object(entry), cluster_scoped=not entry.is_namespaced)


def _build_minimal_object(entry: PlannedResource) -> Object:
    metadata = {"name": entry.key.name, **({"namespace": entry.key.namespace} if entry.key.namespace else {})}
    return {"apiVersion": entry.gvk.api_version, "kind": entry.gvk.kind, "metadata": metadata}
