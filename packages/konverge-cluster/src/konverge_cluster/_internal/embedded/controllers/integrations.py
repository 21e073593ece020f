"""Simulated controllers of what a cluster gets from outside: addresses, metrics and storage.

A real cluster has them only with a cloud, an ingress controller, a metrics server or storage. Here each is optional, by
the kind whose objects it makes ready.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, format_time, is_deleting
from konverge.clock import Clock
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.controllers.builtin_kinds import CONTROLLER_MANAGER
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.driver import BuiltinController
from konverge_cluster._internal.embedded.controllers.endpoints import LoadBalancerController
from konverge_cluster._internal.embedded.controllers.persistent_volumes import PersistentVolumeController
from konverge_cluster._internal.embedded.controllers.volume_claims import VolumeClaimController
from konverge_cluster._internal.embedded.controllers.volume_provisioner import VolumeProvisioner

__all__ = ["DEFAULT_INTEGRATIONS", "INTEGRATIONS", "AutoscalerController", "IngressController", "build_integrations"]

INGRESS = GroupVersionKind("networking.k8s.io", "v1", "Ingress")
AUTOSCALER = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")

INTEGRATIONS = frozenset({"HorizontalPodAutoscaler", "Ingress", "PersistentVolume", "Service"})
"""The kinds that have a controller here; for Services, it serves the type LoadBalancer."""

DEFAULT_INTEGRATIONS = frozenset({"PersistentVolume"})
"""Those of every cluster: without volumes, pods with claims never start."""

_CLOUD = "cloud-controller-manager"
_INGRESS_MANAGER = "ingress-controller"
_STORAGE = "volume-provisioner"
_INGRESS_ADDRESS = "203.0.113.1"  # from a network for documentation, which is not routed


def build_integrations(
    kinds: Collection[str], api: ApiServer, view: ClusterView, clock: Clock
) -> list[BuiltinController]:
    """Return the controllers for these kinds.

    Args:
        kinds: A selection of `INTEGRATIONS`.
        api: The server that they write to.
        view: The objects of the cluster.
        clock: The clock for the times of conditions.
    """
    writer = ControllerClient(api, CONTROLLER_MANAGER)
    built: dict[str, BuiltinController] = {
        "Service": LoadBalancerController(view, ControllerClient(api, _CLOUD)),
        "Ingress": IngressController(view, ControllerClient(api, _INGRESS_MANAGER)),
        "HorizontalPodAutoscaler": AutoscalerController(view, writer, clock),
    }
    controllers = [controller for kind, controller in built.items() if kind in kinds]
    if "PersistentVolume" in kinds:
        controllers += [
            VolumeClaimController(view, writer),
            PersistentVolumeController(view, writer),
            VolumeProvisioner(view, ControllerClient(api, _STORAGE)),
        ]
    return controllers


class IngressController:
    """An ingress controller, which publishes one address for all Ingresses. Its keys are those of Ingresses."""

    name = "ingress-controller"
    watches = frozenset({INGRESS.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of the Ingress."""
        return () if notice.type == "DELETED" else (notice.key,)

    def reconcile(self, key: Hashable) -> float | None:
        """Publish the address in the status of the object."""
        assert isinstance(key, ObjectKey)
        ingress = self._view.get(INGRESS, key)
        if ingress is not None and not is_deleting(ingress):
            _update_status(self._writer, ingress, {"loadBalancer": {"ingress": [{"ip": _INGRESS_ADDRESS}]}})
        return None


class AutoscalerController:
    """The autoscaler with metrics at their targets: it never scales. Its keys are those of autoscalers.

    A target that does not exist or has no replicas is reported as by the real controller.
    """

    name = "horizontal-pod-autoscaler-controller"
    watches = frozenset(
        {AUTOSCALER.group_kind, *(("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet"))}
    )

    def __init__(self, view: ClusterView, writer: ControllerClient, clock: Clock) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of an autoscaler, or those that scale a workload."""
        if notice.kind == AUTOSCALER.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        scaled = {"kind": notice.kind[1], "name": notice.key.name}
        return [
            ObjectKey.of(autoscaler)
            for autoscaler in self._view.list_kind(AUTOSCALER, notice.key.namespace)
            if scaled.items() <= _read_target(autoscaler).items()
        ]

    def reconcile(self, key: Hashable) -> float | None:
        """Report the conditions, and the replicas of the target."""
        assert isinstance(key, ObjectKey)
        autoscaler = self._view.get(AUTOSCALER, key)
        if autoscaler is None or is_deleting(autoscaler):
            return None
        target = _read_target(autoscaler)
        gvk = GroupVersionKind.parse(str(target.get("apiVersion", "")), str(target.get("kind", "")))
        workload = self._view.get(gvk, ObjectKey(key.namespace, str(target.get("name", ""))))
        if workload is None:
            problem = f'{gvk.kind.lower()}s.{gvk.group} "{target.get("name")}" not found'
            self._report(autoscaler, {}, [("AbleToScale", "False", "FailedGetScale", problem)])
            return None
        current = int((workload.get("spec") or {}).get("replicas", 1))
        self._report(
            autoscaler,
            {"currentReplicas": current, "desiredReplicas": current},
            [
                ("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size"),
                ("ScalingActive", "True", "ValidMetricFound", "the metrics are at their targets")
                if current
                else ("ScalingActive", "False", "ScalingDisabled", "the target has no replicas"),
                ("ScalingLimited", "False", "DesiredWithinRange", "the desired count is within the limits"),
            ],
        )
        return None

    def _report(self, autoscaler: Object, counts: Object, conditions: list[tuple[str, str, str, str]]) -> None:
        before = {each["type"]: each for each in (autoscaler.get("status") or {}).get("conditions") or ()}
        written = []
        for kind, status, reason, message in conditions:
            old = before.get(kind, {})
            since = old.get("lastTransitionTime") if old.get("status") == status else None
            written.append(
                {
                    "type": kind,
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": since or format_time(self._clock.now()),
                }
            )
        _update_status(self._writer, autoscaler, {"desiredReplicas": 0, **counts, "conditions": written})


def _read_target(autoscaler: Object) -> Mapping[str, Any]:
    target = (autoscaler.get("spec") or {}).get("scaleTargetRef")
    return target if isinstance(target, Mapping) else {}


def _update_status(writer: ControllerClient, obj: Object, status: Object) -> None:
    """Write the fields of the status unless they have these values."""
    live = obj.get("status") or {}
    if {name: live.get(name) for name in status} != status:
        writer.update_status(obj, {**live, **status})
