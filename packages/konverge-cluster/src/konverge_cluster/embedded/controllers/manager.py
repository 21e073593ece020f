"""All players together, over one API server."""

from __future__ import annotations

from contextlib import suppress

from konverge.clock import Clock, Entropy
from konverge.errors import AlreadyExistsError
from konverge.kube import GroupVersionKind
from konverge_cluster.embedded.apiserver import ApiServer
from konverge_cluster.embedded.controllers.builtin_kinds import CONTROLLER_MANAGER, KUBELET, SCHEDULER
from konverge_cluster.embedded.controllers.cluster_view import ClusterChange, ClusterView, GroupKind
from konverge_cluster.embedded.controllers.controller_client import ControllerClient
from konverge_cluster.embedded.controllers.daemonsets import DaemonSetController
from konverge_cluster.embedded.controllers.deployments import DeploymentController
from konverge_cluster.embedded.controllers.disruption import DisruptionController
from konverge_cluster.embedded.controllers.driver import BuiltinController, ControllerDriver
from konverge_cluster.embedded.controllers.endpoints import EndpointController, LoadBalancerController
from konverge_cluster.embedded.controllers.garbage_collector import GarbageCollector
from konverge_cluster.embedded.controllers.image_rules import ImageRules
from konverge_cluster.embedded.controllers.jobs import JobController
from konverge_cluster.embedded.controllers.kubelet import Kubelet, PodScheduler, build_node
from konverge_cluster.embedded.controllers.namespaces import NamespaceController, NamespaceDefaultsController
from konverge_cluster.embedded.controllers.replicasets import ReplicaSetController
from konverge_cluster.embedded.controllers.statefulsets import StatefulSetController
from konverge_cluster.embedded.controllers.volume_claims import VolumeClaimController
from konverge_cluster.embedded.storage import StorageChange
from konverge_cluster.embedded.webhooks.pending_calls import CallFunction

__all__ = ["ControllerManager"]


class ControllerManager:
    """The controller manager, the scheduler and the kubelet of the embedded cluster.

    Args:
        api: The server that they watch and write to.
        clock: Their time.
        entropy: Spreads their retries.
        rules: What becomes of containers; may be changed while they play.
        load_balancers: Whether Services of type LoadBalancer get an address.
        caller: Calls the webhooks that are to be asked about what they write.
    """

    def __init__(
        self,
        api: ApiServer,
        clock: Clock,
        entropy: Entropy,
        rules: ImageRules | None = None,
        *,
        load_balancers: bool = False,
        caller: CallFunction | None = None,
    ) -> None:
        self.rules = rules if rules is not None else ImageRules()
        self._api = api
        self._clock = clock
        self._view = view = ClusterView()
        writer = ControllerClient(api, CONTROLLER_MANAGER)
        self._kubelet = Kubelet(view, ControllerClient(api, KUBELET), clock, self.rules)
        players: list[BuiltinController] = [
            NamespaceDefaultsController(view, writer),
            NamespaceController(view, writer, clock, self._find_plural),
            DeploymentController(view, writer, clock),
            ReplicaSetController(view, writer, clock),
            StatefulSetController(view, writer, clock),
            DaemonSetController(view, writer, clock),
            JobController(view, writer, clock),
            VolumeClaimController(view, writer),
            PodScheduler(view, ControllerClient(api, SCHEDULER), clock),
            self._kubelet,
            DisruptionController(view, writer, clock),
            EndpointController(view, writer),
            GarbageCollector(view, writer, self._is_served),
        ]
        if load_balancers:
            players.append(LoadBalancerController(view, ControllerClient(api, "cloud-controller-manager")))
        self._driver = ControllerDriver(players, clock, entropy, caller)
        self._group_kinds: dict[str, GroupKind] = {}

    async def run(self) -> None:
        """Play until cancelled, once: take in what there is, register the node, then follow the changes.

        Cancelled, it leaves the cluster as it is; new `ControllerManager` over the same server go on from there.
        """
        stops = [self._api.subscribe(self._handle_change), self.rules.subscribe(self._enqueue_pods)]
        try:
            self._load_objects()
            with suppress(AlreadyExistsError):  # earlier players may have registered it
                ControllerClient(self._api, KUBELET).create(build_node(self._clock.now()))
            await self._driver.run()
        finally:
            for stop in stops:
                stop()

    def _load_objects(self) -> None:
        for storage in dict.fromkeys(resource.storage for resource in self._api.resources):
            for stored in self._api.storage.list_objects(storage):
                kind = self._find_group_kind(storage, stored.object["apiVersion"], stored.object["kind"])
                self._view.record(ClusterChange("ADDED", kind, stored.key, None, stored.object))
        # Told only now, so that nobody takes an owner for absent that comes later in the list.
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
        found = self._group_kinds.get(resource)
        if found is None:
            found = self._group_kinds[resource] = GroupVersionKind.parse(api_version, kind).group_kind
        return found

    def _is_served(self, gvk: GroupVersionKind) -> bool:
        return any(each.gvk == gvk for each in self._api.resources)

    def _find_plural(self, kind: GroupKind) -> str:
        return next(
            (each.mapping.plural for each in self._api.resources if each.gvk.group_kind == kind), kind[1].lower()
        )
