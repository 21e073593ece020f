"""Operator that fulfils requests: one process for all resolvers, or several processes with some each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

from konverge._internal.cache import CacheOptions
from konverge._internal.component import ConditionReason
from konverge._internal.kube import Condition, GroupVersionKind, Object
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.operator import Operator
from konverge._internal.operator.owner_context import OperatorRun, OwnerContext
from konverge._internal.operator.rbac_rules import READ, AccessScope, ResourceAccess
from konverge._internal.runtime import Process, Result
from konverge.errors import BuildError, KonvergeError
from konverge_resolution._internal.cluster_services import EVERY_NAMESPACE, ClusterServices
from konverge_resolution._internal.engine import ServicesFactory, Verifier
from konverge_resolution._internal.network import ConnectionPools
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.requests.api_types import POLICY, ResolutionPolicy, ResolutionRequest
from konverge_resolution._internal.requests.konverge_requests import KonvergeRequestFormat
from konverge_resolution._internal.requests.namespace_watcher import NamespaceWatcher, ResolverAnnouncer
from konverge_resolution._internal.requests.policy_parsing import parse_policy
from konverge_resolution._internal.requests.request_format import RequestFormat, drop_content
from konverge_resolution._internal.requests.request_reconciler import RequestReconciler
from konverge_resolution._internal.requests.resolution_config import GENERAL, build_config_name
from konverge_resolution._internal.requests.tekton_requests import TektonRequest, TektonRequestFormat
from konverge_resolution._internal.requests.tekton_settings import TEKTON_CONFIG_MAPS
from konverge_resolution._internal.resolver import Resolver, list_credential_kinds

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
    """Build an operator that fulfils the requests for these resolvers.

    One operator may serve all resolvers. Resolvers with permissions or networks of their own can have separate
    operators. Then all but one have ``keeps_lifecycle=False``; each has its own name, and all have the same home.

    Args:
        resolvers: The resolvers of its processes.
        name: The name of the operator.
        home: The namespace of the configuration and of the Leases that announce resolvers.
        keeps_lifecycle: Start the requests of every resolver, end them in time, refuse those for resolvers that no
            process serves, remove finished ones, and report invalid policies. Exactly one operator of a cluster does.
        serves_tekton: Fulfil Tekton's requests too, and apply Tekton's own ConfigMaps in ``home``. The CRD of these
            requests must exist.
        services_for: Builds the services of resolvers (default: the cluster, the Secrets of the requester's namespace
            and temporary folders).
        verifier: Verifies signatures; None refuses content that policies require to be signed.
        reads_kinds: The kinds that the resolver ``cluster`` may read, for the roles.
        credentials_in: The namespaces whose requests may name Secrets, for resolvers that send credentials. With
            `cluster_services.EVERY_NAMESPACE` the derived roles permit reading them; for single
            namespaces there are separate roles
            (`requests.resolver_packaging.build_credential_roles`).

    Raises:
        BuildError: Two resolvers have the same name, or the operator's name is invalid.
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
    """Registrations of a resolution operator, and its runs."""

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
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise BuildError(f"operator {name}", [f"resolver {duplicate!r} occurs twice" for duplicate in duplicates])
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
        self.operator.reconciles(ResolutionPolicy, reports_errors=False)(self._report)
        self.operator.runs_in_background(self._background_run)
        self._declare_access(reads_kinds)

    def _register_requests(self, cls: type[Any], dialect: RequestFormat) -> None:
        async def reconcile(request: object, ctx: OwnerContext) -> Result | None:
            assert ctx.run is not None, "only a process reconciles requests"
            return await self._runs[ctx.run].reconcile(dialect, ctx)

        self.operator.reconciles(cls, workers=_WORKERS, reports_errors=False)(reconcile)
        self.operator.caches(cls, CacheOptions(transform=drop_content))
        self.operator.uses(cls, "patch", subresource="status")
        if self._keeps_lifecycle:
            self.operator.uses(cls, "delete")

    def _declare_access(self, reads_kinds: Sequence[GroupVersionKind]) -> None:
        """Declare further permissions: Secrets only if a resolver sends credentials, and then only by name."""
        uses = self.operator.registered.uses
        uses.append(ResourceAccess("", "configmaps", READ, AccessScope.HOME))
        leases = READ if self._keeps_lifecycle else (*READ, "create", "patch")
        uses.append(ResourceAccess("coordination.k8s.io", "leases", leases, AccessScope.HOME))
        uses.append(ResourceAccess("", "configmaps", ("create",)))
        if EVERY_NAMESPACE in self._credentials_in:
            uses.extend(ResourceAccess("", kind, ("get",)) for kind in list_credential_kinds(self._resolvers))
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
                own = ClusterServices(
                    process.client,
                    clock=run.clock,
                    credentials_in=self._credentials_in,
                    pools=await stack.enter_async_context(ConnectionPools()),
                )
                stack.callback(own.close)
                services_for = own

            def list_policies() -> list[Object]:
                informer = process.informers.running.get(POLICY)
                if informer is None:
                    raise KonvergeError("the watch of policies has not started")
                return informer.list()

            names = frozenset({GENERAL, *(build_config_name(resolver.name) for resolver in self._resolvers)})
            names |= TEKTON_CONFIG_MAPS if self._serves_tekton else frozenset()
            watcher = NamespaceWatcher(
                process.client,
                self._home,
                names,
                clock=run.clock,
                entropy=run.entropy,
            )
            reconciler = RequestReconciler(
                self._resolvers,
                run,
                process,
                services_for,
                verifier=self._verifier,
                keeps_lifecycle=self._keeps_lifecycle,
                uses_tekton_config=self._serves_tekton,
                policies=list_policies,
                others=watcher.list_live_resolvers,
                announced=watcher.list_announced_resolvers,
                is_starting=watcher.has_just_started,
            )
            self._runs[run] = reconciler
            stack.callback(self._runs.pop, run, None)

            def on_change(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
                if gvk == POLICY:
                    reconciler.context.invalidate_policies()

            stack.callback(process.informers.subscribe(on_change))
            await stack.enter_async_context(watcher.watch(reconciler.on_config_change))
            if not self._keeps_lifecycle:
                served = frozenset(resolver.name for resolver in self._resolvers)
                announcing = ResolverAnnouncer(process.client, self.operator.name, self._home, served, clock=run.clock)
                await stack.enter_async_context(announcing.background_renewal())
            await stack.enter_async_context(reconciler.background_tasks(dialect.gvk for dialect in self._dialects))
            yield

    async def _report(self, policy: ResolutionPolicy, ctx: OwnerContext) -> None:
        """Report on a policy whether it is valid. The runtime reports policies that the class cannot decode."""
        if not self._keeps_lifecycle:
            return
        assert ctx.run is not None, "only a process reconciles policies"
        context = self._runs[ctx.run].context
        policy_or_error = parse_policy(ctx.owner, context.known_resolvers)
        generation = ctx.owner_generation
        async with ctx.flushing_status():
            if not context.installed.issuperset(policy.spec.resolvers):
                ctx.request_requeue(
                    ctx.clock.now() + _LOOK_AGAIN
                )  # nothing tells here of a resolver that comes or goes
            if isinstance(policy_or_error, Policy):
                ctx.stage(Condition("Ready", "True", _READABLE, "the policy is active", generation))
            else:
                message = f"{'; '.join(policy_or_error.errors)}; requests that it applies to are refused"
                ctx.stage(Condition("Ready", "False", ConditionReason.ERROR, message, generation))
