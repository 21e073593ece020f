"""One run of resolution: what its passes share, and what a pass does for one request.

A pass decides (`konverge.resolution.requests.lifecycle`), writes at most once and returns. What it needs to know is in
memory: how the run is set up (`.setup`), and what is being fetched (`.fetches`).
"""

from __future__ import annotations

import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from konverge.errors import AlreadyExistsError, ConflictError, NotFoundError
from konverge.kube import GroupVersionKind, Object, find_condition, owner_reference
from konverge.kube.metadata import ObjectMeta
from konverge.operator.context import OperatorRun, OwnerContext
from konverge.resolution.engine import Engine, Outcome, Requester, ServicesFor, Verifier
from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Digest
from konverge.resolution.registry import Registry
from konverge.resolution.requests.dialect import RESOLVED, SUCCEEDED, Dialect, RequestSpec, Result
from konverge.resolution.requests.fetches import Fetches, RequestId
from konverge.resolution.requests.kinds import CONTENT_KEY
from konverge.resolution.requests.lifecycle import Act, Decision, FetchPhase, Phase, decide
from konverge.resolution.requests.reports import Reports
from konverge.resolution.requests.setup import Setup
from konverge.resolution.resolver import Resolver
from konverge.runtime import Process
from konverge.runtime import Result as Again
from konverge.runtime.beside import beside

__all__ = ["ResolutionRun"]

_log = logging.getLogger("konverge.resolution")

_LOOK_SECONDS = 1.0
_SOON = timedelta(seconds=0.5)


class ResolutionRun:
    """One run.

    Args:
        resolvers: Those that this process serves.
        run: The run of the operator.
        process: Its process.
        services_for: Makes what resolvers may use.
        verifier: Looks at signatures; None refuses what has to be signed.
        keeps_lifecycle: Whether this process begins, ends and removes requests of all resolvers.
        has_tektons: Whether Tekton's own ConfigMaps count.
        policies: Answers all `ResolutionPolicy` objects as they are held.
        others: Answers the resolvers that other processes serve.
        announced: Answers those that other processes serve or have served.

    Attributes:
        setup: How it is set up at the moment.
    """

    def __init__(
        self,
        resolvers: Iterable[Resolver],
        run: OperatorRun,
        process: Process,
        services_for: ServicesFor,
        *,
        verifier: Verifier | None,
        keeps_lifecycle: bool,
        has_tektons: bool,
        policies: Callable[[], Iterable[Object]],
        others: Callable[[], frozenset[str]],
        announced: Callable[[], frozenset[str]],
    ) -> None:
        def make_engine(registry: Registry) -> Engine:
            return Engine(registry, services_for, clock=run.clock, entropy=run.entropy, verifier=verifier)

        self.setup = Setup(
            resolvers,
            make_engine,
            policies=policies,
            others=others,
            announced=announced,
            keeps_lifecycle=keeps_lifecycle,
            has_tektons=has_tektons,
        )
        self._clock = run.clock
        self._process = process
        self._fetches = Fetches(run.clock, self._wake)
        self._reports = Reports(run, run.clock)

    @asynccontextmanager
    async def at_work(self, kinds: Iterable[GroupVersionKind]) -> AsyncIterator[None]:
        """Fetch within the block, and let go of what is not this process's any more.

        Args:
            kinds: The kinds of requests.
        """
        served = frozenset(kinds)

        def heard(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
            if gvk in served and old is not None and (new is None or new.uid != old.uid or new.is_deleting):
                self._forget(old.uid)

        async with AsyncExitStack() as stack:
            stack.callback(self._process.informers.subscribe(heard))
            await stack.enter_async_context(self._fetches.at_work())
            await stack.enter_async_context(beside(self._keep_looking(), name="pending requests"))
            yield

    def configured(self, config_maps: Mapping[str, Object]) -> None:
        """These are the ConfigMaps now."""
        self.setup.configured(config_maps)
        self._reports.configured(config_maps, self.setup.configuration)

    async def reconcile(self, dialect: Dialect, ctx: OwnerContext) -> Again | None:
        """Do for one request what is to be done now."""
        request, now = ctx.owner, self._clock.now()
        uid = str(request["metadata"]["uid"])
        asked = dialect.asked(request, self.setup.configuration.default_resolver)
        state = dialect.state(request)
        served, fetch = self.setup.served(asked), self._fetches.phase(uid)
        decision = decide(state, now, self.setup.rules, served=served, fetch=fetch)
        if state.phase is Phase.DONE or decision.act is Act.NOTHING:
            self._forget(uid)
        else:
            self._reports.pending(uid, self.setup.label(asked.resolver), state.created)
        match decision.act:
            case Act.NOTHING:
                return None
            case Act.REMOVE:
                await self._remove(dialect, ctx)
                return None
            case Act.SETTLE:
                await self._written(dialect, ctx, dialect.settled(request, now))
                return None
            case Act.FINISH:
                return await self._finish(dialect, ctx, asked)
            case Act.REFUSE | Act.EXPIRE:
                refusal = self.setup.nobody(asked) if decision.act is Act.REFUSE else self._late(dialect, ctx, asked)
                return await self._fail(dialect, ctx, asked, refusal)
        if decision.is_slow and decision.deadline is not None:
            self._reports.slow(request, asked.resolver, decision.deadline)
        if fetch is FetchPhase.NONE:
            if decision.act is Act.FETCH:
                return await self._fetch(dialect, ctx, asked, decision)
            if not await self._begin(dialect, ctx, asked, decision):
                return Again(requeue_after=_SOON)
        return self._at(decision)

    async def _begin(self, dialect: Dialect, ctx: OwnerContext, asked: RequestSpec, decision: Decision) -> bool:
        """Say that a request is in progress, if that is still to be said; answers as `_written`."""
        if not decision.begins:
            return True
        assert decision.deadline is not None, "what begins has to end"
        begun = dialect.begun(ctx.owner, asked.resolver, decision.deadline, self._clock.now())
        return await self._written(dialect, ctx, begun)

    async def _fetch(self, dialect: Dialect, ctx: OwnerContext, asked: RequestSpec, decision: Decision) -> Again | None:
        namespace = ctx.owner_key.namespace
        refusal = self.setup.refusal(asked, namespace)
        if refusal is not None:
            return await self._fail(dialect, ctx, asked, refusal)
        if not await self._begin(dialect, ctx, asked, decision):
            return Again(requeue_after=_SOON)
        request = RequestId(dialect.gvk, ctx.owner_key, ctx.owner_uid)
        if not self._fetches.has_room(namespace):
            self._fetches.wait_for_room(request)
            return self._at(decision)
        if not decision.begins and not await self._is_still_pending(ctx):
            return Again(requeue_after=_SOON)
        assert asked.reference is not None, "what is no reference has been refused"
        assert decision.deadline is not None, "what is fetched has to end"
        seconds = (decision.deadline - self._clock.now()).total_seconds()
        requester, reference = Requester(namespace, asked.user), asked.reference

        def work() -> Awaitable[Outcome]:
            return self.setup.engine.resolve(reference, requester, seconds=max(0.0, seconds))

        self._fetches.start(request, decision.deadline, work)
        return self._at(decision)

    async def _is_still_pending(self, ctx: OwnerContext) -> bool:
        """Ask the server, before a fetch is begun again that somebody else may have finished just now."""
        try:
            current = await ctx.cluster.get(ctx.owner_gvk, ctx.owner_key, live=True)
        except NotFoundError:
            return False
        condition = find_condition(current, SUCCEEDED)
        return current["metadata"]["uid"] == ctx.owner_uid and (condition is None or condition.status == "Unknown")

    async def _finish(self, dialect: Dialect, ctx: OwnerContext, asked: RequestSpec) -> Again | None:
        ended = self._fetches.ended(ctx.owner_uid)
        assert ended is not None, "that is how it was decided"
        if isinstance(ended.answer, ResolutionError):
            return await self._fail(dialect, ctx, asked, ended.answer)
        outcome = ended.answer
        content_in = ""
        if dialect.keeps_content_apart and len(outcome.resolved.data) > self.setup.configuration.inline_bytes:
            content_in = await self._keep_apart(ctx, outcome)
        status = dialect.resolved(ctx.owner, Result(outcome, ended.started, content_in), self._clock.now())
        if not await self._written(dialect, ctx, status):
            return Again(requeue_after=_SOON)
        self._ended(dialect, ctx, asked, RESOLVED, outcome.fetched_from)
        return None

    async def _fail(
        self, dialect: Dialect, ctx: OwnerContext, asked: RequestSpec, error: ResolutionError
    ) -> Again | None:
        started = self._fetches.started(ctx.owner_uid)
        if not await self._written(dialect, ctx, dialect.failed(ctx.owner, error, started, self._clock.now())):
            return Again(requeue_after=_SOON)
        self._reports.failed(ctx.owner, error)
        self._ended(dialect, ctx, asked, error.reason.value, "none")
        return None

    async def _written(self, dialect: Dialect, ctx: OwnerContext, status: Object) -> bool:
        """Write a status on what this pass has read; tells whether that is still what there is.

        Whoever was faster has changed the request, which calls for another pass.
        """
        metadata = ctx.owner["metadata"]
        body = {
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "status": status,
        }
        try:
            answer = await ctx.cluster.patch(dialect.gvk, ctx.owner_key, body, patch_type="merge", subresource="status")
        except (ConflictError, NotFoundError):
            return False
        ctx.owner = answer
        return True

    async def _keep_apart(self, ctx: OwnerContext, outcome: Outcome) -> str:
        """Put content into a ConfigMap that goes with the request; its name tells the content, so twice is once."""
        data = outcome.resolved.data
        # With the request's identity: the name of another one may begin as its does, and go with that one.
        told = f"{ctx.owner_uid} {Digest.of(data).hex}".encode()
        name = f"{ctx.owner_key.name[:200].rstrip('.-')}-{Digest.of(told).hex[:32]}"
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": ctx.owner_key.namespace,
                "ownerReferences": [owner_reference(ctx.owner)],
            },
            "immutable": True,
            "binaryData": {CONTENT_KEY: base64.b64encode(data).decode("ascii")},
        }
        try:
            await ctx.cluster.live.create(config_map)
        except AlreadyExistsError:
            _log.debug("ConfigMap %s/%s is there already", ctx.owner_key.namespace, name)
        return name

    async def _remove(self, dialect: Dialect, ctx: OwnerContext) -> None:
        try:
            await ctx.cluster.delete(dialect.gvk, ctx.owner_key, uid=ctx.owner_uid)
        except (NotFoundError, ConflictError):
            return  # somebody else has, or there is another one of that name

    def _late(self, dialect: Dialect, ctx: OwnerContext, asked: RequestSpec) -> ResolutionError:
        limit = self.setup.configuration.options.timeout.total_seconds()
        started = self._fetches.started(ctx.owner_uid)
        told = f"resolver {asked.resolver!r} had no result {limit:g} s after the request was created"
        if started is None:
            told += "; it has not begun to fetch"
        else:
            waited = max(0.0, (started - dialect.state(ctx.owner).created).total_seconds())
            told += f", of which the request has waited {waited:.3g} s"
        return ResolutionError(Reason.TIMED_OUT, told)

    def _forget(self, uid: str) -> None:
        self._fetches.forget(uid)
        self._reports.forget(uid)

    def _ended(self, dialect: Dialect, ctx: OwnerContext, asked: RequestSpec, reason: str, fetched_from: str) -> None:
        created = dialect.state(ctx.owner).created
        self._reports.ended(self.setup.label(asked.resolver), reason, fetched_from, created)
        self._forget(ctx.owner_uid)

    def _at(self, decision: Decision) -> Again | None:
        if decision.wake_at is None:
            return None
        return Again(requeue_after=max(timedelta(0), decision.wake_at - self._clock.now()))

    def _wake(self, request: RequestId) -> None:
        controller = self._process.controllers.get(request.gvk)
        if controller is not None:
            controller.wake(request.key, reason="its fetch has ended, or may begin")

    async def _keep_looking(self) -> None:
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            kinds = {request.gvk for request in self._fetches.requests()}
            ours = {(gvk, key) for gvk in kinds for key in self._process.owners_of(gvk)}
            self._fetches.sift(ours)
            self._reports.looked_at(self._fetches.running)
