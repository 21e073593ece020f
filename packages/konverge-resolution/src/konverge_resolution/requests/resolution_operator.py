"""The operator that fulfils requests: as one process for all resolvers, or as several for some each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

from konverge.cache import CacheOptions
from konverge.component import ConditionReason
from konverge.errors import BuildError, KonvergeError
from konverge.kube import Condition, GroupVersionKind, Object
from konverge.kube.metadata import ObjectMeta
from konverge.operator import Operator
from konverge.operator.owner_context import OperatorRun, OwnerContext
from konverge.operator.rbac_rules import READ, AccessScope, ResourceAccess
from konverge.runtime import Process, Result
from konverge_resolution.cluster_services import EVERY_NAMESPACE, ClusterServices
from konverge_resolution.engine import ServicesFactory, Verifier
from konverge_resolution.policy import Policy
from konverge_resolution.requests.api_types import POLICY, ResolutionPolicy, ResolutionRequest
from konverge_resolution.requests.konverge_requests import KonvergeRequestFormat
from konverge_resolution.requests.namespace_watcher import NamespaceWatcher, ResolverAnnouncer
from konverge_resolution.requests.policy_parsing import parse_policy
from konverge_resolution.requests.request_format import RequestFormat, drop_content
from konverge_resolution.requests.request_reconciler import RequestReconciler
from konverge_resolution.requests.resolution_config import GENERAL, build_config_name
from konverge_resolution.requests.tekton_requests import TektonRequest, TektonRequestFormat
from konverge_resolution.requests.tekton_settings import TEKTON_CONFIG_MAPS
from konverge_resolution.resolver import Resolver, list_credential_kinds

__all__ = ["build_resolution_operator"]

_READABLE = "Readable"
_LOOK_AGAIN = timedelta(minutes=1)
_WORKERS = 20


def build_resolution_operator(
    resolvers: Iterable[Resolver],
    *,
    name: str = "konverge-resolution",
    home: str = "konverge-system",
    keeps_lifecycle: bool = True,
    serves_tekton: bool = False,
    services_for: ServicesFactory | None = None,
    verifier: Verifier | None = None,
    reads_kinds: Sequence[GroupVersionKind] = (),
    credentials_in: Collection[str] = (EVERY_NAMESPACE,),
) -> Operator:
    """An operator that fulfils the requests for these resolvers.

    One operator may serve all. Where sources have permissions or networks of their own, each gets one: all but one of
    them with ``keeps_lifecycle=False``, each under a name of its own, all with the same home.

    Args:
        resolvers: Those that its processes serve.
        name: What the operator is called.
        home: The namespace of the configuration and of the Leases by which resolvers are announced.
        keeps_lifecycle: Begin the requests of every resolver, end them in time, refuse those for resolvers that nobody
            serves, remove finished ones, and tell of policies that cannot be read. One operator of a cluster does.
        serves_tekton: Fulfil Tekton's requests too, with Tekton's own ConfigMaps where they are in ``home``. The
            definition of these requests has to be there.
        services_for: Makes what resolvers may use; with the cluster, the Secrets of the requester's namespace and
            folders for temporary files when not given.
        verifier: Looks at signatures; None refuses what a policy wants to be signed.
        reads_kinds: The kinds that a resolver for objects of the cluster may read, for the roles.
        credentials_in: The namespaces whose requests may name Secrets, where a resolver sends credentials. With
            `konverge_resolution.cluster_services.EVERY_NAMESPACE` the derived roles have the right to get them; for
            single
            namespaces it is granted apart from these (`build_credential_roles` of `.packaging`).

    Raises:
        BuildError: Two resolvers have one name, or the operator's name is none.
    """
    return _ResolutionOperator(
        tuple(resolvers),
        name,
        home,
        keeps_lifecycle,
        serves_tekton,
        services_for,
        verifier,
        reads_kinds,
        frozenset(credentials_in),
    ).operator


class _ResolutionOperator:
    """What an operator of resolution registers, and its runs."""

    def __init__(
        self,
        resolvers: tuple[Resolver, ...],
        name: str,
        home: str,
        keeps_lifecycle: bool,
        serves_tekton: bool,
        services_for: ServicesFactory | None,
        verifier: Verifier | None,
        reads_kinds: Sequence[GroupVersionKind],
        credentials_in: frozenset[str],
    ) -> None:
        names = [resolver.name for resolver in resolvers]
        if twice := sorted({each for each in names if names.count(each) > 1}):
            raise BuildError(f"operator {name}", [f"resolver {each!r} is there twice" for each in twice])
        self._resolvers = resolvers
        self._home = home
        self._keeps_lifecycle = keeps_lifecycle
        self._serves_tekton = serves_tekton
        self._services_for = services_for
        self._credentials_in = credentials_in
        self._verifier = verifier
        self._runs: WeakKeyDictionary[OperatorRun, RequestReconciler] = WeakKeyDictionary()
        self.operator = Operator(name)
        self._dialects: list[RequestFormat] = [KonvergeRequestFormat()]
        self._register_requests(ResolutionRequest, self._dialects[0])
        if serves_tekton:
            self._dialects.append(TektonRequestFormat())
            self._register_requests(TektonRequest, self._dialects[1])
        self.operator.reconciles(ResolutionPolicy)(self._report)
        self.operator.runs_in_background(self._background_run)
        self._declare_access(reads_kinds)

    def _register_requests(self, cls: type[Any], dialect: RequestFormat) -> None:
        async def reconcile(request: object, ctx: OwnerContext) -> Result | None:
            assert ctx.run is not None, "requests are fulfilled by a process"
            return await self._runs[ctx.run].reconcile(dialect, ctx)

        self.operator.reconciles(cls, workers=_WORKERS)(reconcile)
        self.operator.caches(cls, CacheOptions(transform=drop_content))
        self.operator.uses(cls, "patch", subresource="status")
        if self._keeps_lifecycle:
            self.operator.uses(cls, "delete")

    def _declare_access(self, reads_kinds: Sequence[GroupVersionKind]) -> None:
        """Say what is used besides: Secrets only where a resolver sends credentials, and then one by its name."""
        uses = self.operator.registered.uses
        uses.append(ResourceAccess("", "configmaps", READ, AccessScope.HOME))
        leases = READ if self._keeps_lifecycle else (*READ, "create", "patch")
        uses.append(ResourceAccess("coordination.k8s.io", "leases", leases, AccessScope.HOME))
        uses.append(ResourceAccess("", "configmaps", ("create",)))
        if EVERY_NAMESPACE in self._credentials_in:
            uses.extend(ResourceAccess("", each, ("get",)) for each in list_credential_kinds(self._resolvers))
        if any(resolver.name == "cluster" for resolver in self._resolvers):
            uses.append(
                ResourceAccess("authorization.k8s.io", "subjectaccessreviews", ("create",), AccessScope.CLUSTER)
            )
        for gvk in reads_kinds:
            self.operator.uses(gvk, "get")

    @asynccontextmanager
    async def _background_run(self, run: OperatorRun, process: Process) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            services_for = self._services_for
            if services_for is None:
                own = ClusterServices(process.client, clock=run.clock, credentials_in=self._credentials_in)
                stack.callback(own.close)
                services_for = own

            def list_policies() -> list[Object]:
                informer = process.informers.running.get(POLICY)
                if informer is None:
                    raise KonvergeError("policies are not watched yet")
                return informer.list()

            names = frozenset({GENERAL, *(build_config_name(resolver.name) for resolver in self._resolvers)})
            names |= TEKTON_CONFIG_MAPS if self._serves_tekton else frozenset()
            surroundings = NamespaceWatcher(
                process.client,
                self._home,
                names,
                clock=run.clock,
                entropy=run.entropy,
            )
            found = RequestReconciler(
                self._resolvers,
                run,
                process,
                services_for,
                verifier=self._verifier,
                keeps_lifecycle=self._keeps_lifecycle,
                uses_tekton_config=self._serves_tekton,
                policies=list_policies,
                others=surroundings.list_live_resolvers,
                announced=surroundings.list_announced_resolvers,
            )
            self._runs[run] = found
            stack.callback(self._runs.pop, run, None)

            def on_change(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
                if gvk == POLICY:
                    found.context.invalidate_policies()

            stack.callback(process.informers.subscribe(on_change))
            await stack.enter_async_context(surroundings.watch(found.on_config_change))
            if not self._keeps_lifecycle:
                served = frozenset(resolver.name for resolver in self._resolvers)
                announcing = ResolverAnnouncer(process.client, self.operator.name, self._home, served, clock=run.clock)
                await stack.enter_async_context(announcing.background_renewal())
            await stack.enter_async_context(found.background_tasks(dialect.gvk for dialect in self._dialects))
            yield

    async def _report(self, policy: ResolutionPolicy, ctx: OwnerContext) -> None:
        """Say on a policy whether it counts. One that the class cannot read gets the same from the runtime."""
        if not self._keeps_lifecycle:
            return
        assert ctx.run is not None, "policies are looked at by a process"
        setup = self._runs[ctx.run].context
        found = parse_policy(ctx.owner, setup.known_resolvers)
        generation = ctx.owner_generation
        async with ctx.flushing_status():
            if not setup.installed.issuperset(policy.spec.resolvers):
                ctx.request_requeue(
                    ctx.clock.now() + _LOOK_AGAIN
                )  # nothing tells here of a resolver that comes or goes
            if isinstance(found, Policy):
                ctx.stage(Condition("Ready", "True", _READABLE, "it counts", generation))
            else:
                message = f"{'; '.join(found.errors)}; requests that it concerns are refused until it is mended"
                ctx.stage(Condition("Ready", "False", ConditionReason.ERROR, message, generation))
