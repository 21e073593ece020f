"""Reconciler of requests: the shared state of one run, and the reconcile of one request.

A reconcile decides (`requests.request_lifecycle`), writes at most once and returns. Its inputs are
in memory: the configuration (`requests.resolution_context`) and the running fetches
(`requests.fetch_pool`).
"""

from __future__ import annotations

import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from konverge._internal.kube import GroupVersionKind, Object, build_owner_reference, find_condition
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.operator.owner_context import OperatorRun, OwnerContext
from konverge._internal.runtime import Process
from konverge._internal.runtime import Result as Again
from konverge._internal.runtime.background import background_task
from konverge.errors import AlreadyExistsError, ConflictError, NotFoundError
from konverge_resolution._internal.engine import Engine, Requester, ResolutionResult, ServicesFactory, Verifier
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest
from konverge_resolution._internal.requests.api_types import CONTENT_KEY
from konverge_resolution._internal.requests.fetch_pool import FetchPool, RequestId
from konverge_resolution._internal.requests.request_format import RESOLVED, SUCCEEDED, RequestFormat, RequestSpec
from konverge_resolution._internal.requests.request_lifecycle import (
    FetchPhase,
    RequestAction,
    RequestDecision,
    RequestPhase,
    ResolverLocation,
    decide,
)
from konverge_resolution._internal.requests.request_reporter import RequestReporter
from konverge_resolution._internal.requests.resolution_context import ResolutionContext
from konverge_resolution._internal.resolver import Resolver
from konverge_resolution._internal.resolver_registry import ResolverRegistry

__all__ = ["RequestReconciler"]

_log = logging.getLogger("konverge.resolution")

_PRUNE_SECONDS = 1.0
_CONFLICT_RETRY = timedelta(seconds=0.5)
_UNSERVED = (ResolverLocation.NOWHERE, ResolverLocation.EXPECTED)


class RequestReconciler:
    """Reconciler of all requests in one run of the operator.

    Args:
        resolvers: The resolvers of this process.
        run: The run of the operator.
        process: The process of the run.
        services_for: Builds the services of a resolver.
        verifier: Verifies signatures; None refuses content that must be signed.
        keeps_lifecycle: Whether this process starts, ends and removes requests of all resolvers.
        uses_tekton_config: Whether Tekton's own ConfigMaps apply.
        policies: Returns all cached `ResolutionPolicy` objects.
        others: Returns the resolvers that other processes serve.
        announced: Returns the resolvers that other processes serve or have served.
        is_starting: Tells whether this process has started so recently that others may not have announced yet.

    Attributes:
        context: The current configuration.
    """

    def __init__(
        self,
        resolvers: Iterable[Resolver],
        run: OperatorRun,
        process: Process,
        services_for: ServicesFactory,
        *,
        verifier: Verifier | None,
        keeps_lifecycle: bool,
        uses_tekton_config: bool,
        policies: Callable[[], Iterable[Object]],
        others: Callable[[], frozenset[str]],
        announced: Callable[[], frozenset[str]],
        is_starting: Callable[[], bool],
    ) -> None:
        def make_engine(registry: ResolverRegistry) -> Engine:
            return Engine(registry, services_for, clock=run.clock, entropy=run.entropy, verifier=verifier)

        self.context = ResolutionContext(
            resolvers,
            make_engine,
            policies=policies,
            others=others,
            announced=announced,
            is_starting=is_starting,
            keeps_lifecycle=keeps_lifecycle,
            uses_tekton_config=uses_tekton_config,
        )
        self._clock = run.clock
        self._process = process
        self._fetches = FetchPool(run.clock, self._requeue)
        self._reporter = RequestReporter(run, run.clock)

    @asynccontextmanager
    async def background_tasks(self, kinds: Iterable[GroupVersionKind]) -> AsyncIterator[None]:
        """Run fetches during the block; discard those of requests that are deleted or belong to another replica now.

        Args:
            kinds: The kinds of requests.
        """
        served = frozenset(kinds)

        def on_change(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
            if gvk in served and old is not None and (new is None or new.uid != old.uid or new.is_deleting):
                self._forget(old.uid)

        async with AsyncExitStack() as stack:
            stack.callback(self._process.informers.subscribe(on_change))
            await stack.enter_async_context(self._fetches.task_group())
            await stack.enter_async_context(background_task(self._prune_periodically(), name="pending requests"))
            yield

    def on_config_change(self, config_maps: Mapping[str, Object]) -> None:
        """Apply changed ConfigMaps to the configuration and report it."""
        self.context.apply_config_maps(config_maps)
        self._reporter.report_config(config_maps, self.context.configuration)

    async def reconcile(self, dialect: RequestFormat, ctx: OwnerContext) -> Again | None:
        """Reconcile one request: decide, then perform the action."""
        request, now = ctx.owner, self._clock.now()
        uid = str(request["metadata"]["uid"])
        asked = dialect.parse_spec(request, self.context.configuration.default_resolver)
        state = dialect.parse_state(request)
        served, fetch = self.context.locate_resolver(asked), self._fetches.get_phase(uid)
        decision = decide(state, now, self.context.rules, location=served, fetch=fetch)
        if state.phase is RequestPhase.DONE or decision.action is RequestAction.NOTHING:
            self._forget(uid)
        else:
            self._reporter.track_pending(uid, self.context.get_metric_label(asked.resolver), state.created)
        match decision.action:
            case RequestAction.NOTHING:
                return None
            case RequestAction.REMOVE:
                await self._remove(dialect, ctx)
                return None
            case RequestAction.SETTLE:
                await self._write_status(dialect, ctx, dialect.build_completed_status(request, now))
                return None
            case RequestAction.FINISH:
                return await self._finish(dialect, ctx, asked)
            case RequestAction.REFUSE | RequestAction.EXPIRE:
                refusal = (
                    self.context.build_unserved_error(asked)
                    if decision.action is RequestAction.REFUSE
                    else self._build_timeout_error(dialect, ctx, asked)
                )
                return await self._fail(dialect, ctx, asked, refusal)
        if decision.is_slow and decision.deadline is not None:
            self._reporter.report_slow(request, asked.resolver, decision.deadline)
        if fetch is FetchPhase.NONE:
            if decision.action is RequestAction.FETCH:
                return await self._fetch(dialect, ctx, asked, decision)
            if not await self._begin(dialect, ctx, asked, decision):
                return Again(requeue_after=_CONFLICT_RETRY)
        return self._requeue_at(decision)

    async def _begin(
        self, dialect: RequestFormat, ctx: OwnerContext, asked: RequestSpec, decision: RequestDecision
    ) -> bool:
        """Write the pending status at the start of a request; return the result of `_write_status`."""
        if not decision.is_start:
            return True
        assert decision.deadline is not None, "a request that starts has a deadline"
        begun = dialect.build_pending_status(ctx.owner, asked.resolver, decision.deadline, self._clock.now())
        return await self._write_status(dialect, ctx, begun)

    async def _fetch(
        self, dialect: RequestFormat, ctx: OwnerContext, asked: RequestSpec, decision: RequestDecision
    ) -> Again | None:
        namespace = ctx.owner_key.namespace
        refusal = self.context.find_error(asked, namespace)
        if refusal is not None:
            return await self._fail(dialect, ctx, asked, refusal)
        if not await self._begin(dialect, ctx, asked, decision):
            return Again(requeue_after=_CONFLICT_RETRY)
        request = RequestId(dialect.gvk, ctx.owner_key, ctx.owner_uid)
        if not self._fetches.has_slot(namespace):
            self._fetches.notify_when_free(request)
            return self._requeue_at(decision)
        if not decision.is_start and not await self._is_still_pending(ctx):
            return Again(requeue_after=_CONFLICT_RETRY)
        assert asked.reference is not None, "an invalid reference was refused before"
        assert decision.deadline is not None, "a fetch has a deadline"
        seconds = (decision.deadline - self._clock.now()).total_seconds()
        requester, reference = Requester(namespace, asked.user), asked.reference

        def resolve() -> Awaitable[ResolutionResult]:
            return self.context.engine.resolve(reference, requester, seconds=max(0.0, seconds))

        self._fetches.start(request, decision.deadline, resolve)
        return self._requeue_at(decision)

    async def _is_still_pending(self, ctx: OwnerContext) -> bool:
        """Check with the API server, before a fetch starts again, that no other process has finished the request."""
        try:
            current = await ctx.cluster.get(ctx.owner_gvk, ctx.owner_key, live=True)
        except NotFoundError:
            return False
        condition = find_condition(current, SUCCEEDED)
        return current["metadata"]["uid"] == ctx.owner_uid and (condition is None or condition.status == "Unknown")

    async def _finish(self, dialect: RequestFormat, ctx: OwnerContext, asked: RequestSpec) -> Again | None:
        ended = self._fetches.get_outcome(ctx.owner_uid)
        assert ended is not None, "the decision requires an ended fetch"
        if isinstance(ended.result, ResolutionError):
            return await self._fail(dialect, ctx, asked, ended.result)
        outcome = ended.result
        content_in = ""
        if dialect.separates_content and len(outcome.resolved.data) > self.context.configuration.inline_bytes:
            content_in = await self._store_content(ctx, outcome)
        status = dialect.build_success_status(
            ctx.owner, outcome, ended.started, self._clock.now(), config_map_name=content_in
        )
        if not await self._write_status(dialect, ctx, status):
            return Again(requeue_after=_CONFLICT_RETRY)
        self._record_end(dialect, ctx, asked, outcome)
        return None

    async def _fail(
        self, dialect: RequestFormat, ctx: OwnerContext, asked: RequestSpec, error: ResolutionError
    ) -> Again | None:
        started = self._fetches.get_start_time(ctx.owner_uid)
        if not await self._write_status(
            dialect, ctx, dialect.build_failure_status(ctx.owner, error, started, self._clock.now())
        ):
            return Again(requeue_after=_CONFLICT_RETRY)
        self._reporter.report_failure(ctx.owner, error)
        self._record_end(dialect, ctx, asked, error)
        return None

    async def _write_status(self, dialect: RequestFormat, ctx: OwnerContext, status: Object) -> bool:
        """Write a status on the request as this reconcile read it; return False if the request has changed.

        After a conflict another reconcile reads the changed request.
        """
        metadata = ctx.owner["metadata"]
        body = {
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "status": status,
        }
        try:
            updated = await ctx.cluster.patch(
                dialect.gvk, ctx.owner_key, body, patch_type="merge", subresource="status"
            )
        except (ConflictError, NotFoundError):
            return False
        ctx.owner = updated
        return True

    async def _store_content(self, ctx: OwnerContext, outcome: ResolutionResult) -> str:
        """Store content in a ConfigMap of the request. Its name contains the digest, so a repetition is harmless."""
        data = outcome.resolved.data
        # The UID makes the name unique: another request's name may have the same prefix, and would delete this
        # ConfigMap.
        identity = f"{ctx.owner_uid} {Digest.of(data).hex}".encode()
        name = f"{ctx.owner_key.name[:200].rstrip('.-')}-{Digest.of(identity).hex[:32]}"
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": ctx.owner_key.namespace,
                "ownerReferences": [build_owner_reference(ctx.owner)],
            },
            "immutable": True,
            "binaryData": {CONTENT_KEY: base64.b64encode(data).decode("ascii")},
        }
        try:
            await ctx.cluster.live.create(config_map)
        except AlreadyExistsError:
            _log.debug("ConfigMap %s/%s exists already", ctx.owner_key.namespace, name)
        return name

    async def _remove(self, dialect: RequestFormat, ctx: OwnerContext) -> None:
        try:
            await ctx.cluster.delete(dialect.gvk, ctx.owner_key, uid=ctx.owner_uid)
        except (NotFoundError, ConflictError):
            return  # already removed, or replaced by another request of that name

    def _build_timeout_error(self, dialect: RequestFormat, ctx: OwnerContext, asked: RequestSpec) -> ResolutionError:
        limit = self.context.configuration.options.timeout.total_seconds()
        started = self._fetches.get_start_time(ctx.owner_uid)
        message = f"resolver {asked.resolver!r}: no result within {limit:g} s of the creation of the request"
        if started is None and self.context.locate_resolver(asked) in _UNSERVED:
            message += f"; no process serves it: {self.context.build_unserved_error(asked).message}"
        elif started is None:
            message += "; the fetch has not started"
        else:
            waited = max(0.0, (started - dialect.parse_state(ctx.owner).created).total_seconds())
            message += f"; the request waited {waited:.3g} s for its start"
        return ResolutionError(Reason.TIMED_OUT, message)

    def _forget(self, uid: str) -> None:
        self._fetches.forget(uid)
        self._reporter.forget(uid)

    def _record_end(
        self,
        dialect: RequestFormat,
        ctx: OwnerContext,
        asked: RequestSpec,
        result: ResolutionResult | ResolutionError,
    ) -> None:
        created = dialect.parse_state(ctx.owner).created
        if isinstance(result, ResolutionError):
            reason, fetched_from = result.reason.value, "none"
        else:
            reason, fetched_from = RESOLVED, result.fetched_from
        self._reporter.record_end(self.context.get_metric_label(asked.resolver), reason, fetched_from, created)
        self._reporter.log_end(ctx.owner, asked.resolver, reason, created, result)
        self._forget(ctx.owner_uid)

    def _requeue_at(self, decision: RequestDecision) -> Again | None:
        if decision.requeue_at is None:
            return None
        return Again(requeue_after=max(timedelta(0), decision.requeue_at - self._clock.now()))

    def _requeue(self, request: RequestId) -> None:
        controller = self._process.controllers.get(request.gvk)
        if controller is not None:
            controller.enqueue(request.key, reason="its fetch has ended or has a free slot")

    async def _prune_periodically(self) -> None:
        while True:
            await self._clock.sleep(_PRUNE_SECONDS)
            kinds = {request.gvk for request in self._fetches.list_requests()}
            ours = {(gvk, key) for gvk in kinds for key in self._process.list_owners(gvk)}
            self._fetches.prune(ours)
            self._reporter.update_metrics(self._fetches.running)
