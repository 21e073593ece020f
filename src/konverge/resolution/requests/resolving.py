"""One run of resolution: what its passes share, and what a pass does for one request.

A pass decides (`konverge.resolution.requests.lifecycle`), writes at most once and returns. What it needs to know is in
memory: the configuration, the policies, what is being fetched, what others serve.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from konverge.errors import AlreadyExistsError, ConflictError, NotFoundError
from konverge.kube import GroupVersionKind, Object, find_condition, owner_reference
from konverge.kube.metadata import ObjectMeta
from konverge.operator.context import OperatorRun, OwnerContext
from konverge.resolution.cache import Cache
from konverge.resolution.engine import Engine, Outcome, Requester, ServicesFor, Verifier
from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Digest
from konverge.resolution.requests.configuration import read_configuration
from konverge.resolution.requests.dialect import SUCCEEDED, Asked, Dialect, Result
from konverge.resolution.requests.fetches import Fetches, RequestId
from konverge.resolution.requests.figures import UNKNOWN, RequestFigures
from konverge.resolution.requests.kinds import CONTENT_KEY
from konverge.resolution.requests.lifecycle import Act, Decision, Phase, Rules, Served, decide
from konverge.resolution.requests.policies import Policies, read_policies
from konverge.resolution.requests.tekton_settings import CONFIG_MAPS
from konverge.resolution.resolver import Resolver
from konverge.runtime import Process
from konverge.runtime import Result as Again

__all__ = ["ResolutionRun"]

_log = logging.getLogger("konverge.resolution")

_LOOK_SECONDS = 1.0
_SOON = timedelta(seconds=0.5)
_RESOLVED = "Resolved"
_IGNORED = "SettingsIgnored"


@dataclass(frozen=True, slots=True)
class _Pending:
    resolver: str
    created: datetime


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
        has_tektons: bool = False,
        policies: Callable[[], Iterable[Object]],
    ) -> None:
        self.resolvers = tuple(resolvers)
        self._run = run
        self._clock = run.clock
        self._process = process
        self._keeps_lifecycle = keeps_lifecycle
        self._has_tektons = has_tektons
        self._held_policies = policies
        self._policies: Policies | None = None
        self.configuration = read_configuration(self.resolvers, {})
        self.engine = Engine(
            self.configuration.registry, services_for, clock=run.clock, entropy=run.entropy, verifier=verifier
        )
        self.fetches = Fetches(run.clock, self._wake)
        self.others: Callable[[], frozenset[str]] = frozenset
        self._figures = None if run.metrics is None else RequestFigures(run.metrics)
        self._pending: dict[str, _Pending] = {}
        self._told_slow: set[str] = set()
        self._told_problems: dict[str, tuple[str, ...]] = {}

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
            await stack.enter_async_context(self.fetches.at_work())
            looking = asyncio.create_task(self._keep_looking(), name="pending requests")
            stack.push_async_callback(_ended, looking)
            yield

    # What is told from outside.

    def configured(self, config_maps: Mapping[str, Object]) -> None:
        """These are the ConfigMaps now; what is under way ends as it began."""
        data = {name: obj.get("data") or {} for name, obj in config_maps.items()}
        found = self.configuration = read_configuration(self.resolvers, data, has_tektons=self._has_tektons)
        engine = self.engine
        engine.registry, engine.options, engine.source_map = found.registry, found.options, found.source_map
        if engine.cache.limits != found.cache_limits:
            engine.cache = Cache(found.cache_limits)
        told = {**found.ignored, **found.mistakes}
        for name, problems in told.items():
            if self._told_problems.get(name) == problems:
                continue
            is_mistake = name in found.mistakes
            how = "cannot be used" if is_mistake else "has settings that change nothing"
            _log.log(
                logging.ERROR if is_mistake else logging.WARNING, "ConfigMap %s %s: %s", name, how, "; ".join(problems)
            )
            about = config_maps.get(name) or config_maps.get(CONFIG_MAPS.get(name.rpartition("-")[2], ""))
            if about is not None:
                reason = Reason.INVALID_CONFIGURATION.value if is_mistake else _IGNORED
                self._warn(about, reason, "; ".join(problems), "Configure")
        self._told_problems = told

    def policies_changed(self) -> None:
        """A policy came, changed or went: they are read again before the next fetch."""
        self._policies = None

    # A pass.

    async def reconcile(self, dialect: Dialect, ctx: OwnerContext) -> Again | None:
        """Do for one request what is to be done now."""
        request, now = ctx.owner, self._clock.now()
        uid = str(request["metadata"]["uid"])
        asked = dialect.asked(request, self.configuration.default_resolver)
        state = dialect.state(request)
        served = self._served(asked)
        phase = self.fetches.phase(uid)
        decision = decide(state, now, self._rules, served=served, fetch=phase)
        if state.phase is Phase.DONE or decision.act is Act.NOTHING:
            self._forget(uid)
        else:
            self._pending[uid] = _Pending(self._label(asked.resolver), state.created)
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
                refusal = self._nobody(asked) if decision.act is Act.REFUSE else self._late(dialect, ctx, asked)
                return await self._fail(dialect, ctx, asked, refusal)
        if decision.is_slow:
            self._tell_slow(ctx.owner, asked, decision)
        if decision.act is Act.FETCH and self.fetches.ended(uid) is None:
            return await self._fetch(dialect, ctx, asked, decision, is_under_way=self.fetches.started(uid) is not None)
        if decision.begins and decision.deadline is not None:
            begun = dialect.begun(request, asked.resolver, decision.deadline, now)
            if not await self._written(dialect, ctx, begun):
                return Again(requeue_after=_SOON)
        return self._at(decision)

    async def _fetch(
        self, dialect: Dialect, ctx: OwnerContext, asked: Asked, decision: Decision, *, is_under_way: bool
    ) -> Again | None:
        if is_under_way or decision.deadline is None:
            return self._at(decision)
        namespace = ctx.owner_key.namespace
        refusal = self._refusal(asked, namespace)
        if refusal is not None:
            return await self._fail(dialect, ctx, asked, refusal)
        if decision.begins:
            begun = dialect.begun(ctx.owner, asked.resolver, decision.deadline, self._clock.now())
            if not await self._written(dialect, ctx, begun):
                return Again(requeue_after=_SOON)
        request = RequestId(dialect.gvk, ctx.owner_key, ctx.owner_uid)
        if not self.fetches.has_room(namespace):
            self.fetches.wait_for_room(request)
            return self._at(decision)
        if not decision.begins and not await self._is_still_pending(ctx):
            return Again(requeue_after=_SOON)
        seconds = (decision.deadline - self._clock.now()).total_seconds()
        assert asked.reference is not None, "what is no reference has been refused"
        requester, reference = Requester(namespace, asked.user), asked.reference

        def work() -> Awaitable[Outcome]:
            return self.engine.resolve(reference, requester, seconds=max(0.0, seconds))

        self.fetches.start(request, decision.deadline, work)
        return self._at(decision)

    async def _is_still_pending(self, ctx: OwnerContext) -> bool:
        """Ask the server, before a fetch is begun again that somebody else may have finished just now."""
        try:
            current = await ctx.cluster.get(ctx.owner_gvk, ctx.owner_key, live=True)
        except NotFoundError:
            return False
        condition = find_condition(current, SUCCEEDED)
        return current["metadata"]["uid"] == ctx.owner_uid and (condition is None or condition.status == "Unknown")

    async def _finish(self, dialect: Dialect, ctx: OwnerContext, asked: Asked) -> Again | None:
        ended = self.fetches.ended(ctx.owner_uid)
        assert ended is not None, "that is how it was decided"
        if isinstance(ended.answer, ResolutionError):
            return await self._fail(dialect, ctx, asked, ended.answer)
        outcome = ended.answer
        content_in = ""
        if dialect.keeps_content_apart and len(outcome.resolved.data) > self.configuration.inline_bytes:
            content_in = await self._keep_apart(ctx, outcome)
        status = dialect.resolved(ctx.owner, Result(outcome, ended.started, content_in), self._clock.now())
        if not await self._written(dialect, ctx, status):
            return Again(requeue_after=_SOON)
        self._count(dialect, ctx.owner, asked, _RESOLVED, outcome.fetched_from)
        self._forget(ctx.owner_uid)
        return None

    async def _fail(self, dialect: Dialect, ctx: OwnerContext, asked: Asked, error: ResolutionError) -> Again | None:
        started = self.fetches.started(ctx.owner_uid)
        if not await self._written(dialect, ctx, dialect.failed(ctx.owner, error, started, self._clock.now())):
            return Again(requeue_after=_SOON)
        self._warn(ctx.owner, error.reason.value, error.message, "Resolve")
        self._count(dialect, ctx.owner, asked, error.reason.value, "none")
        self._forget(ctx.owner_uid)
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

    # What is decided of a request besides.

    @property
    def _rules(self) -> Rules:
        found = self.configuration
        return Rules(found.options.timeout, self._keeps_lifecycle, found.finished_lifetime)

    def _served(self, asked: Asked) -> Served:
        if asked.mistake is not None:
            return Served.HERE if self._keeps_lifecycle else Served.NOWHERE
        if asked.resolver in self.configuration.registry:
            return Served.HERE
        return Served.ELSEWHERE if asked.resolver in self.others() else Served.NOWHERE

    def _refusal(self, asked: Asked, namespace: str) -> ResolutionError | None:
        """Why a request fails without anybody being asked; None when that has to be found out."""
        if asked.mistake is not None:
            return asked.mistake
        assert asked.reference is not None, "there is a reference or a mistake"
        try:
            asked.reference.check()
            self.configuration.check()
            policies = self._current_policies()
            policies.check(asked.resolver, namespace)
            self.engine.check(asked.reference, Requester(namespace, asked.user))
        except ResolutionError as error:
            if error.reason is Reason.RESOLVER_NOT_AVAILABLE and self._keeps_lifecycle:
                return self._nobody(asked)  # says which there are in other processes, too
            return error
        return None

    def _current_policies(self) -> Policies:
        if self._policies is None:
            self._policies = read_policies(self._held_policies())
            self.engine.policies = self._policies.readable
        return self._policies

    def _nobody(self, asked: Asked) -> ResolutionError:
        return self.configuration.registry.unavailable(asked.resolver, self.others())

    def _late(self, dialect: Dialect, ctx: OwnerContext, asked: Asked) -> ResolutionError:
        limit = self.configuration.options.timeout.total_seconds()
        started = self.fetches.started(ctx.owner_uid)
        told = f"resolver {asked.resolver!r} had no result {limit:g} s after the request was created"
        if started is None:
            told += "; it has not begun to fetch"
        else:
            waited = max(0.0, (started - dialect.state(ctx.owner).created).total_seconds())
            told += f", of which the request has waited {waited:.3g} s"
        return ResolutionError(Reason.TIMED_OUT, told)

    def _tell_slow(self, request: Object, asked: Asked, decision: Decision) -> None:
        uid = str(request["metadata"]["uid"])
        if decision.deadline is None or uid in self._told_slow:
            return
        self._told_slow.add(uid)
        left = max(0.0, (decision.deadline - self._clock.now()).total_seconds())
        told = f"resolver {asked.resolver!r} has no result yet, and half of the time is over: {left:.3g} s are left"
        self._warn(request, "SlowResolution", told, "Resolve")

    # Keeping the books.

    def _forget(self, uid: str) -> None:
        self.fetches.forget(uid)
        self._pending.pop(uid, None)
        self._told_slow.discard(uid)

    def _label(self, resolver: str) -> str:
        is_known = resolver in self.configuration.registry or resolver in self.others()
        return resolver if is_known else UNKNOWN

    def _count(self, dialect: Dialect, request: Object, asked: Asked, reason: str, fetched_from: str) -> None:
        if self._figures is not None:
            age = (self._clock.now() - dialect.state(request).created).total_seconds()
            self._figures.ended(self._label(asked.resolver), reason, fetched_from, age)

    def _warn(self, about: Object, reason: str, message: str, action: str) -> None:
        if self._run.events is not None:
            self._run.events.warning(about, reason=reason, message=message, action=action)

    def _at(self, decision: Decision) -> Again | None:
        if decision.wake_at is None:
            return None
        return Again(requeue_after=max(timedelta(0), decision.wake_at - self._clock.now()))

    def _wake(self, request: RequestId) -> None:
        controller = self._process.controllers.get(request.gvk)
        if controller is not None:
            controller.wake(request.key, reason="its fetch has ended")

    async def _keep_looking(self) -> None:
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            kinds = {request.gvk for request in self.fetches.requests()}
            ours = {(gvk, key) for gvk in kinds for key in self._process.owners_of(gvk)}
            self.fetches.sift(ours)
            if self._figures is not None:
                now = self._clock.now()
                ages = [(each.resolver, (now - each.created).total_seconds()) for each in self._pending.values()]
                self._figures.looked_at(ages, self.fetches.running)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
