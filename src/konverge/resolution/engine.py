"""The engine: the one way from a reference to its content, whoever asks.

    reference -> resolver and its settings -> source map -> parameters -> policy -> cache -> pin -> fetch, a few per
    remote, with deadline and retries -> digest -> content -> signatures -> outcome

Everything before the cache is decided without a connection (`.planning`). The controllers of requests, the command line
and operator boxes all come this way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from konverge.cancellation import to_its_end
from konverge.clock import Clock, Entropy
from konverge.kube import Object
from konverge.network import Bounds
from konverge.resolution.address_credentials import find_credential
from konverge.resolution.asking import Asking, contained
from konverge.resolution.cache import Cache, CacheKey, Failed
from konverge.resolution.content import check_content
from konverge.resolution.errors import ResolutionError
from konverge.resolution.flights import Flights
from konverge.resolution.planning import EngineOptions, Plan, Requester, ServicesFor, planned
from konverge.resolution.policy import Admission, Policy, SignatureMode, SignatureRule, SourcePrefix
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Parameters, Reference, texts_of
from konverge.resolution.registry import Registry
from konverge.resolution.resolver import Fetch
from konverge.resolution.result import Resolved
from konverge.resolution.source_map import SourceMap
from konverge.resolution.telling import told_as_written, told_of

__all__ = ["Engine", "EngineOptions", "Outcome", "Requester", "ServicesFor", "Verifier"]

T = TypeVar("T")

_MOST_RECORDED = 32 * 1024
"""Bytes of a record. Whoever made an image says what its layers are called, and the record goes into a status."""
_SMALL_BYTES = 16 * 1024
"""Larger content is read in a thread, no more of it than `_READ_AT_ONCE` at the same time."""
_READ_AT_ONCE = 2

Verifier = Callable[[Resolved, Object, SignatureRule], Awaitable[str]]
"""Tells what is wrong with the signature of content under one rule; empty for nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a resolution came to.

    Args:
        resolved: The content and its source.
        object: The content as an object.
        resolver: Who got it.
        fetched_from: ``remote``, or ``cache`` when nothing but its name was asked for.
        attempts: How often the remote was asked for it; 0 from the cache.
        policies: The names of the policies that let it through.
        warnings: What policies that only warn have found.
        rewritten_from: The address before the source map changed it; empty when it did not.
        policy_source: The address by which policies name the place where the content was in the end, where that is
            not the source's: of an object of the cluster, and where a redirect led.
    """

    resolved: Resolved
    object: Object
    resolver: str
    fetched_from: Literal["remote", "cache"]
    attempts: int
    policies: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    rewritten_from: str = ""
    policy_source: str = ""

    @property
    def is_redirected(self) -> bool:
        """Tell whether the content was in another place than its source says."""
        return bool(self.policy_source and urlsplit(self.resolved.source.uri).scheme)


@dataclass(frozen=True, slots=True)
class _Answer:
    """Content, and how often its remote was asked for it: 0 times when it was kept."""

    resolved: Resolved
    attempts: int


class Engine:
    """Resolves references.

    Args:
        registry: The resolvers.
        services_for: Makes what they may use.
        clock: The time.
        entropy: Draws the jitter of pauses.
        options: What holds for all of them.
        policies: What may be fetched.
        source_map: Which addresses stand for others.
        cache: What was fetched before.
        bounds: How much is fetched at once, by remote and namespace.
        verifier: Looks at signatures; None refuses what has to be signed.
    """

    def __init__(
        self,
        registry: Registry,
        services_for: ServicesFor,
        *,
        clock: Clock,
        entropy: Entropy,
        options: EngineOptions | None = None,
        policies: Iterable[Policy] = (),
        source_map: SourceMap | None = None,
        cache: Cache | None = None,
        bounds: Bounds[str] | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        self.registry = registry
        self.options = options or EngineOptions()
        self.policies = tuple(policies)
        self.source_map = source_map or SourceMap()
        self.cache = Cache() if cache is None else cache  # an empty one is false
        self._services_for = services_for
        self._clock = clock
        self._asking = Asking(clock, entropy, bounds)
        self._verifier = verifier
        self._reading: Bounds[str] = Bounds(_READ_AT_ONCE, _READ_AT_ONCE, of_a_tenant=(1, 1))
        self._flights: Flights[CacheKey, _Answer] = Flights()

    async def resolve(self, reference: Reference, requester: Requester, *, seconds: float | None = None) -> Outcome:
        """Get what a reference names.

        Args:
            reference: The reference.
            requester: Who asks.
            seconds: How long it may take; the timeouts of the options and of the resolver hold besides.

        Raises:
            ResolutionError: There is no result. Nothing else is raised, whatever a resolver does.
            asyncio.CancelledError: It was cancelled; nothing is left of it, unless somebody else waits for the same.
        """
        plan = self._plan(reference, requester)
        limit = plan.fetch.seconds if seconds is None else min(seconds, plan.fetch.seconds)
        try:
            async with asyncio.timeout(limit):
                return await self._judged(plan, reference, await self._answer(plan))
        except TimeoutError:
            told = f"resolver {reference.resolver!r} had no result after {limit:g} s"
            raise ResolutionError(Reason.TIMED_OUT, told) from None

    async def judge(self, reference: Reference, requester: Requester, held: Resolved) -> Outcome:
        """Look at content that somebody keeps already as if it had just come, without asking any remote.

        Args:
            reference: What it was asked for by.
            requester: Who wants to use it.
            held: The content.

        Raises:
            ResolutionError: Policies, the digest, the kind or a signature do not let it be used.
        """
        return await self._judged(self._plan(reference, requester), reference, _Answer(held, 0))

    def check(self, reference: Reference, requester: Requester) -> None:
        """Refuse what can be refused without a connection.

        Raises:
            ResolutionError: It is.
        """
        self._plan(reference, requester)

    def _plan(self, reference: Reference, requester: Requester) -> Plan:
        return planned(
            reference,
            requester,
            registry=self.registry,
            options=self.options,
            policies=self.policies,
            source_map=self.source_map,
            services_for=self._services_for,
        )

    async def _judged(self, plan: Plan, reference: Reference, answer: _Answer) -> Outcome:
        resolved = answer.resolved
        if reference.digest is not None and not reference.digest.fits(resolved.data):
            raise ResolutionError(Reason.DIGEST_MISMATCH, reference.digest.mismatch(resolved.data))
        with told_of(resolved.source):
            found = await self._object_of(resolved.data, plan.fetch.namespace)
        admission = self._admitted_there(plan, reference, resolved)
        return Outcome(
            resolved=resolved,
            object=found,
            resolver=reference.resolver,
            fetched_from="remote" if answer.attempts else "cache",
            attempts=answer.attempts,
            policies=admission.policies,
            warnings=await self._verified(admission, resolved, found),
            rewritten_from=plan.rewritten_from,
            policy_source=_policy_source(plan, resolved),
        )

    async def _object_of(self, data: bytes, namespace: str) -> Object:
        """The content as an object, which of a large one takes half a second: others go on meanwhile.

        Raises:
            ResolutionError: It is none that may be fetched.
        """
        if len(data) <= _SMALL_BYTES:
            return check_content(data, self.options.kinds)
        async with self._reading.place("", namespace):
            reading = asyncio.get_running_loop().run_in_executor(None, check_content, data, self.options.kinds)
            return await to_its_end(reading)  # a thread cannot be cancelled; its place is free when it has ended

    def _admitted_there(self, plan: Plan, reference: Reference, resolved: Resolved) -> Admission:
        """What policies ask for of content from where it was in the end, which may not be what was asked for."""
        admission, source = plan.admission, resolved.source.uri
        with contained(reference.resolver):
            # The address of a source is one of policies' where it is a URL: that of another hub of a list.
            places = [source] if urlsplit(source).scheme in ("http", "https") else []
            elsewhere = [place for place in places if not _is_within(place, plan.uri)]
        # Below what was asked for, too: a policy may name just that part of it, and ask for more.
        elsewhere += [resolved.found_at] if resolved.found_at not in ("", *elsewhere) else []
        for place in elsewhere:
            admission = admission.with_those_of(plan.policies.admit_place(place))
        if resolved.found_params:
            admission = admission.with_those_of(plan.policies.admit_params(resolved.found_params))
        if admission.digest_wanted_by and reference.digest is None and not plan.is_pinned:
            told = f"policy {admission.digest_wanted_by[0]} asks for a digest of what comes from there: give one"
            raise ResolutionError(Reason.DENIED, told)
        return admission

    async def _verified(self, admission: Admission, resolved: Resolved, found: Object) -> tuple[str, ...]:
        """Look at the signatures that policies ask for; answers what those that only warn have found."""
        warnings = []
        for rule in admission.signatures:
            if self._verifier is None:
                problem = "signatures cannot be verified here"
            else:
                problem = await self._verifier(resolved, found, rule)
            if problem and rule.mode is SignatureMode.ENFORCE:
                raise ResolutionError(Reason.SIGNATURE_INVALID, f"a policy asks for a signature: {problem}")
            if problem:
                warnings.append(problem)
        return tuple(warnings)

    async def _answer(self, plan: Plan) -> _Answer:
        """The content, from the cache or from its remote; who wants the same at the same time gets the same."""
        params = plan.fetch.params
        if plan.keeps and (kept := self._kept(plan, params)) is not None:
            return kept
        return await self._flights.join(plan.own_key(params), lambda: self._flown(plan))

    async def _flown(self, plan: Plan) -> _Answer:
        try:
            answer = await self._fetched(plan)
        except ResolutionError as error:
            if plan.keeps:
                self.cache.put(plan.own_key(plan.fetch.params), Failed(error), self._clock.now())
            raise
        if plan.keeps:
            self.cache.put(plan.key(plan.fetch.params), answer.resolved, self._clock.now())
        return answer

    async def _fetched(self, plan: Plan) -> _Answer:
        resolver, fetch = plan.installed.resolver, plan.fetch
        if plan.is_pinned:
            return await self._asked(plan, fetch, keeps=plan.keeps)
        pinned, _ = await self._attempted(plan, lambda: resolver.pin(fetch))
        if pinned is None:
            return await self._asked(plan, fetch, keeps=plan.keeps)
        # What it names now is fetched under that name: the branch may move on meanwhile, and the next one who asks
        # for the branch pays only for finding out where it is.
        settled = replace(fetch, params=pinned)
        if plan.keeps_pinned and (kept := self._kept(plan, settled.params)) is not None:
            return kept
        with told_as_written(fetch.params, pinned):
            answer = await self._asked(plan, settled, keeps=plan.keeps_pinned)
        if plan.keeps_pinned:
            self.cache.put(plan.key(settled.params), answer.resolved, self._clock.now())
        return answer

    async def _asked(self, plan: Plan, fetch: Fetch, *, keeps: bool) -> _Answer:
        resolver = plan.installed.resolver

        async def ask() -> object:
            # It may have waited for its place, and another tenant may have got what is public in the meantime.
            kept = self.cache.get(plan.key(fetch.params), self._clock.now()) if keeps else None
            return _Answer(kept, 0) if isinstance(kept, Resolved) else await resolver.resolve(fetch)

        resolved, attempts = await self._attempted(plan, ask)
        if isinstance(resolved, _Answer):
            return resolved
        # Before it is kept: a resolver is anybody's code, and may end without an answer.
        if not isinstance(resolved, Resolved):
            told = f"resolver {resolver.name!r} failed: it answered with no Resolved"
            raise ResolutionError(Reason.INTERNAL, told)
        with contained(resolver.name):
            in_the_end = (resolved.found_at, resolved.found_params)
            size = len(msgspec.json.encode((resolved.source, resolved.annotations, resolved.pinned, in_the_end)))
        if size > _MOST_RECORDED:
            told = f"what is to be recorded of the content is too large: expected at most {_MOST_RECORDED} bytes"
            raise ResolutionError(Reason.TOO_LARGE, f"{told}, found {size}")
        params = (*texts_of(resolved.pinned), *texts_of(resolved.found_params))
        texts = (resolved.source.uri, resolved.found_at, *resolved.annotations.values(), *params)
        if where := next((found for text in texts if (found := find_credential(text))), ""):
            told = f"resolver {resolver.name!r} failed: it records an address with a credential, {where}"
            raise ResolutionError(Reason.INTERNAL, told)
        return _Answer(resolved, attempts)

    async def _attempted(self, plan: Plan, work: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        return await self._asking.ask(
            work,
            resolver=plan.installed.resolver.name,
            remote=plan.remote,
            namespace=plan.fetch.namespace,
            attempts=self.options.attempts,
        )

    def _kept(self, plan: Plan, params: Parameters) -> _Answer | None:
        now = self._clock.now()
        kept = self.cache.get(plan.key(params), now)
        if kept is None and plan.admission.is_public:
            kept = self.cache.get(plan.own_key(params), now)  # a failure is nobody else's
        if isinstance(kept, Failed):
            raise ResolutionError(kept.error.reason, kept.error.message)
        return None if kept is None else _Answer(kept, 0)


def _policy_source(plan: Plan, resolved: Resolved) -> str:
    found = resolved.found_at or ("" if urlsplit(resolved.source.uri).scheme else plan.uri)
    return "" if found == resolved.source.uri else found


def _is_within(found: str, asked: str) -> bool:
    """Tell whether an address begins with the one that was asked for."""
    try:
        return SourcePrefix.parse(asked).covers(found)
    except ValueError:
        return False
