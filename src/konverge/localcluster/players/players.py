"""All players together, over one API server."""

from __future__ import annotations

from contextlib import suppress

from konverge.clock import Clock, Entropy
from konverge.errors import AlreadyExistsError
from konverge.kube import GroupVersionKind
from konverge.localcluster.apiserver import ApiServer
from konverge.localcluster.players.budgets import DisruptionBudgets
from konverge.localcluster.players.daemonsets import DaemonSets
from konverge.localcluster.players.deployments import Deployments
from konverge.localcluster.players.driver import Driver, Player
from konverge.localcluster.players.endpoints import LoadBalancers, ServiceEndpoints
from konverge.localcluster.players.garbage import GarbageCollector
from konverge.localcluster.players.images import ImageRules
from konverge.localcluster.players.jobs import Jobs
from konverge.localcluster.players.kinds import CONTROLLER_MANAGER, KUBELET, SCHEDULER
from konverge.localcluster.players.kubelet import Kubelet, Scheduler, node
from konverge.localcluster.players.namespaces import NamespaceContents, NamespaceDeletion
from konverge.localcluster.players.replicasets import ReplicaSets
from konverge.localcluster.players.statefulsets import StatefulSets
from konverge.localcluster.players.view import GroupKind, Notice, View
from konverge.localcluster.players.volumes import VolumeClaims
from konverge.localcluster.players.writing import Writer
from konverge.localcluster.storage import Change
from konverge.localcluster.webhooks.consulting import Caller

__all__ = ["Players"]


class Players:
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
        caller: Caller | None = None,
    ) -> None:
        self.rules = rules if rules is not None else ImageRules()
        self._api = api
        self._clock = clock
        self._view = view = View()
        writer = Writer(api, CONTROLLER_MANAGER)
        self._kubelet = Kubelet(view, Writer(api, KUBELET), clock, self.rules)
        players: list[Player] = [
            NamespaceContents(view, writer),
            NamespaceDeletion(view, writer, clock, self._plural_of),
            Deployments(view, writer, clock),
            ReplicaSets(view, writer, clock),
            StatefulSets(view, writer, clock),
            DaemonSets(view, writer, clock),
            Jobs(view, writer, clock),
            VolumeClaims(view, writer),
            Scheduler(view, Writer(api, SCHEDULER), clock),
            self._kubelet,
            DisruptionBudgets(view, writer, clock),
            ServiceEndpoints(view, writer),
            GarbageCollector(view, writer, self._is_served),
        ]
        if load_balancers:
            players.append(LoadBalancers(view, Writer(api, "cloud-controller-manager")))
        self._driver = Driver(players, clock, entropy, caller)
        self._group_kinds: dict[str, GroupKind] = {}

    async def run(self) -> None:
        """Play until cancelled, once: take in what there is, register the node, then follow the changes.

        Cancelled, it leaves the cluster as it is; new `Players` over the same server go on from there.
        """
        stops = [self._api.subscribe(self._note), self.rules.subscribe(self._look_at_pods)]
        try:
            self._take_in()
            with suppress(AlreadyExistsError):  # earlier players may have registered it
                Writer(self._api, KUBELET).create(node(self._clock.now()))
            await self._driver.run()
        finally:
            for stop in stops:
                stop()

    def _take_in(self) -> None:
        for storage in dict.fromkeys(resource.storage for resource in self._api.resources):
            for stored in self._api.storage.items(storage):
                kind = self._group_kind(storage, stored.object["apiVersion"], stored.object["kind"])
                self._view.note(Notice("ADDED", kind, stored.key, None, stored.object))
        # Told only now, so that nobody takes an owner for absent that comes later in the list.
        for item in self._view.everything():
            self._driver.note(Notice("ADDED", item.kind, item.key, None, item.object))

    def _note(self, change: Change) -> None:
        new = change.new
        kind = self._group_kind(change.resource, new["apiVersion"], new["kind"])
        notice = Notice(change.type, kind, change.key, change.old, new)
        self._view.note(notice)
        self._driver.note(notice)

    def _look_at_pods(self) -> None:
        self._driver.wake(self._kubelet, self._kubelet.running())

    def _group_kind(self, resource: str, api_version: str, kind: str) -> GroupKind:
        found = self._group_kinds.get(resource)
        if found is None:
            found = self._group_kinds[resource] = GroupVersionKind.parse(api_version, kind).group_kind
        return found

    def _is_served(self, gvk: GroupVersionKind) -> bool:
        return any(each.gvk == gvk for each in self._api.resources)

    def _plural_of(self, kind: GroupKind) -> str:
        return next(
            (each.mapping.plural for each in self._api.resources if each.gvk.group_kind == kind), kind[1].lower()
        )
