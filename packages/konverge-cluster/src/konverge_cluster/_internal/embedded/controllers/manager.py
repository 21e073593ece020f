"""All simulated controllers together, over one API server."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from konverge._internal.kube import GroupVersionKind, Object
from konverge.clock import Clock, Entropy
from konverge.errors import AlreadyExistsError
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.controllers.builtin_kinds import CONTROLLER_MANAGER, KUBELET, SCHEDULER
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView, GroupKind
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.daemonsets import DaemonSetController
from konverge_cluster._internal.embedded.controllers.deployments import DeploymentController
from konverge_cluster._internal.embedded.controllers.disruption import DisruptionController
from konverge_cluster._internal.embedded.controllers.driver import BuiltinController, ControllerDriver
from konverge_cluster._internal.embedded.controllers.endpoints import EndpointController
from konverge_cluster._internal.embedded.controllers.garbage_collector import GarbageCollector
from konverge_cluster._internal.embedded.controllers.image_rules import ImageRules
from konverge_cluster._internal.embedded.controllers.integrations import DEFAULT_INTEGRATIONS, build_integrations
from konverge_cluster._internal.embedded.controllers.jobs import JobController
from konverge_cluster._internal.embedded.controllers.kubelet import Kubelet, build_node
from konverge_cluster._internal.embedded.controllers.namespaces import NamespaceController, NamespaceDefaultsController
from konverge_cluster._internal.embedded.controllers.pod_scheduler import PodScheduler
from konverge_cluster._internal.embedded.controllers.replicasets import ReplicaSetController
from konverge_cluster._internal.embedded.controllers.role_aggregation import (
    AGGREGATION_MANAGER,
    RoleAggregationController,
)
from konverge_cluster._internal.embedded.controllers.statefulsets import StatefulSetController
from konverge_cluster._internal.embedded.controllers.volume_protection import (
    ClaimProtectionController,
    VolumeProtectionController,
)
from konverge_cluster._internal.embedded.controllers.volume_provisioner import build_default_class
from konverge_cluster._internal.embedded.storage import StorageChange
from konverge_cluster._internal.embedded.webhooks.pending_calls import CallFunction

__all__ = ["ControllerManager"]


class ControllerManager:
    """The controller manager, the scheduler and the kubelet of the embedded cluster.

    Args:
        api: The server that they watch and write to.
        clock: The clock for their timers.
        entropy: The source of randomness for retry delays.
        rules: The behavior of containers; it can change while they run.
        integrations: The kinds that become ready by what a cluster gets from outside: addresses, metrics, storage. A
            selection of `konverge_cluster._internal.embedded.controllers.integrations.INTEGRATIONS`.
        caller: Calls the webhooks for their writes.

    Attributes:
        names: The names of the controllers.
    """

    def __init__(
        self,
        api: ApiServer,
        clock: Clock,
        entropy: Entropy,
        rules: ImageRules | None = None,
        *,
        integrations: Collection[str] = DEFAULT_INTEGRATIONS,
        caller: CallFunction | None = None,
    ) -> None:
        self.rules = rules if rules is not None else ImageRules()
        self._api = api
        self._clock = clock
        self._integrations = integrations
        self._view = view = ClusterView()
        writer = ControllerClient(api, CONTROLLER_MANAGER)
        self._kubelet = Kubelet(view, ControllerClient(api, KUBELET), clock, self.rules)
        controllers: list[BuiltinController] = [
            NamespaceDefaultsController(view, writer),
            NamespaceController(view, writer, clock, self._find_plural),
            DeploymentController(view, writer, clock),
            ReplicaSetController(view, writer, clock),
            StatefulSetController(view, writer, clock),
            DaemonSetController(view, writer, clock),
            JobController(view, writer, clock),
            ClaimProtectionController(view, writer),
            VolumeProtectionController(view, writer),
            PodScheduler(view, ControllerClient(api, SCHEDULER), clock),
            self._kubelet,
            DisruptionController(view, writer, clock),
            EndpointController(view, writer),
            RoleAggregationController(view, ControllerClient(api, AGGREGATION_MANAGER)),
            GarbageCollector(view, writer, self._is_served),
        ]
        controllers += build_integrations(integrations, api, view, clock)
        self.names: frozenset[str] = frozenset(controller.name for controller in controllers)
        self._driver = ControllerDriver(controllers, clock, entropy, caller)
        self._group_kinds: dict[str, GroupKind] = {}

    async def run(self) -> None:
        """Run until cancelled, only once: load the stored objects, register the node, then follow the changes.

        After a cancellation the cluster stays as it is; a new `ControllerManager` over the same server continues.
        """
        stops = [self._api.subscribe(self._handle_change), self.rules.subscribe(self._enqueue_pods)]
        try:
            self._load_objects()
            for manager, obj in self._list_first_objects():
                with suppress(AlreadyExistsError):  # an earlier manager can have created it
                    ControllerClient(self._api, manager).create(obj)
            await self._driver.run()
        finally:
            for stop in stops:
                stop()

    def _list_first_objects(self) -> list[tuple[str, Object]]:
        """Return what a cluster gets after its start, each object with its field manager."""
        objects = [(KUBELET, build_node(self._clock.now()))]
        if "PersistentVolume" in self._integrations:
            objects.append((CONTROLLER_MANAGER, build_default_class()))
        return objects

    def _load_objects(self) -> None:
        for storage in dict.fromkeys(resource.storage for resource in self._api.resources):
            for stored in self._api.storage.list_objects(storage):
                kind = self._find_group_kind(storage, stored.object["apiVersion"], stored.object["kind"])
                self._view.record(ClusterChange("ADDED", kind, stored.key, None, stored.object))
        # Reported only after the load, so that no controller takes an owner for absent that comes later in the list.
        for item in self._view.iter_objects():
            self._driver.handle_change(ClusterChange("ADDED", item.kind, item.key, None, item.object))

    def _handle_change(self, change: StorageChange) -> None:
        new = change.new
        kind = self._find_group_kind(change.resource, new["apiVersion"], new["kind"])
        notice = ClusterChange(change.type, kind, change.key, change.old, new)
        self._view.record(notice)
        self._driver.handle_change(notice)

    def _enqueue_pods(self) -> None:
        self._driver.enqueue(self._kubelet, self._kubelet.list_running())

    def _find_group_kind(self, resource: str, api_version: str, kind: str) -> GroupKind:
        group_kind = self._group_kinds.get(resource)
        if group_kind is None:
            group_kind = self._group_kinds[resource] = GroupVersionKind.parse(api_version, kind).group_kind
        return group_kind

    def _is_served(self, gvk: GroupVersionKind) -> bool:
        return any(resource.gvk == gvk for resource in self._api.resources)

    def _find_plural(self, kind: GroupKind) -> str:
        return next(
            (resource.mapping.plural for resource in self._api.resources if resource.gvk.group_kind == kind),
            kind[1].lower(),
        )
