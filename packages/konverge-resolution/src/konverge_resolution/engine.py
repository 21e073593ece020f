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

from konverge.cancellation import await_shielded
from konverge.clock import Clock, Entropy
from konverge.kube import Object
from konverge_resolution.content_cache import CachedFailure, CacheKey, ContentCache
from konverge_resolution.content_validation import parse_content
from konverge_resolution.error_context import name_revision_in_errors, name_source_in_errors
from konverge_resolution.errors import ResolutionError
from konverge_resolution.network import ConcurrencyLimiter
from konverge_resolution.policy import Policy, PolicyDecision, SignatureMode, SignatureRule, SourcePrefix
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Parameters, Reference, iter_texts
from konverge_resolution.remote_caller import RemoteCaller, wrap_resolver_errors
from konverge_resolution.resolution_plan import (
    EngineOptions,
    Requester,
    ResolutionPlan,
    ServicesFactory,
    plan_resolution,
)
from konverge_resolution.resolved_content import ResolvedContent
from konverge_resolution.resolver import FetchRequest
from konverge_resolution.resolver_registry import ResolverRegistry
from konverge_resolution.single_flight import SingleFlight
from konverge_resolution.source_map import SourceMap
from konverge_resolution.url_credentials import find_credential

__all__ = ["Engine", "EngineOptions", "Requester", "ResolutionResult", "ServicesFactory", "Verifier"]

T = TypeVar("T")

_MAX_RECORD_BYTES = 32 * 1024
"""Bytes of a record. Whoever made an image says what its layers are called, and the record goes into a status."""
_SMALL_BYTES = 16 * 1024
"""Larger content is read in a thread, no more of it than `_MAX_PARSING` at the same time."""
_MAX_PARSING = 2

Verifier = Callable[[ResolvedContent, Object, SignatureRule], Awaitable[str]]
"""Tells what is wrong with the signature of content under one rule; empty for nothing."""


@dataclass(frozen=True, slots=True)
class ResolutionResult:
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

    resolved: ResolvedContent
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
class _FetchedContent:
    """Content, and how often its remote was asked for it: 0 times when it was kept."""

    resolved: ResolvedContent
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
        registry: ResolverRegistry,
        services_for: ServicesFactory,
        *,
        clock: Clock,
        entropy: Entropy,
        options: EngineOptions | None = None,
        policies: Iterable[Policy] = (),
        source_map: SourceMap | None = None,
        cache: ContentCache | None = None,
        bounds: ConcurrencyLimiter[str] | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        self.registry = registry
        self.options = options or EngineOptions()
        self.policies = tuple(policies)
        self.source_map = source_map or SourceMap()
        self.cache = ContentCache() if cache is None else cache  # an empty one is false
        self._services_for = services_for
        self._clock = clock
        self._caller = RemoteCaller(clock, entropy, bounds)
        self._verifier = verifier
        self._parse_slots: ConcurrencyLimiter[str] = ConcurrencyLimiter(_MAX_PARSING, _MAX_PARSING, per_tenant=(1, 1))
        self._single_flight: SingleFlight[CacheKey, _FetchedContent] = SingleFlight()

    async def resolve(
        self, reference: Reference, requester: Requester, *, seconds: float | None = None
    ) -> ResolutionResult:
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
                return await self._validate(plan, reference, await self._get_content(plan))
        except TimeoutError:
            told = f"resolver {reference.resolver!r} had no result after {limit:g} s"
            raise ResolutionError(Reason.TIMED_OUT, told) from None

    async def validate_content(
        self, reference: Reference, requester: Requester, held: ResolvedContent
    ) -> ResolutionResult:
        """Look at content that somebody keeps already as if it had just come, without asking any remote.

        Args:
            reference: What it was asked for by.
            requester: Who wants to use it.
            held: The content.

        Raises:
            ResolutionError: Policies, the digest, the kind or a signature do not let it be used.
        """
        return await self._validate(self._plan(reference, requester), reference, _FetchedContent(held, 0))

    def check(self, reference: Reference, requester: Requester) -> None:
        """Refuse what can be refused without a connection.

        Raises:
            ResolutionError: It is.
        """
        self._plan(reference, requester)

    def _plan(self, reference: Reference, requester: Requester) -> ResolutionPlan:
        return plan_resolution(
            reference,
            requester,
            registry=self.registry,
            options=self.options,
            policies=self.policies,
            source_map=self.source_map,
            services_for=self._services_for,
        )

    async def _validate(self, plan: ResolutionPlan, reference: Reference, answer: _FetchedContent) -> ResolutionResult:
        resolved = answer.resolved
        if reference.digest is not None and not reference.digest.matches(resolved.data):
            raise ResolutionError(Reason.DIGEST_MISMATCH, reference.digest.describe_mismatch(resolved.data))
        with name_source_in_errors(resolved.source):
            found = await self._parse_object(resolved.data, plan.fetch.namespace)
        admission = self._admit_actual_source(plan, reference, resolved)
        return ResolutionResult(
            resolved=resolved,
            object=found,
            resolver=reference.resolver,
            fetched_from="remote" if answer.attempts else "cache",
            attempts=answer.attempts,
            policies=admission.policies,
            warnings=await self._verify_signatures(admission, resolved, found),
            rewritten_from=plan.rewritten_from,
            policy_source=_find_policy_source(plan, resolved),
        )

    async def _parse_object(self, data: bytes, namespace: str) -> Object:
        """The content as an object, which of a large one takes half a second: others go on meanwhile.

        Raises:
            ResolutionError: It is none that may be fetched.
        """
        if len(data) <= _SMALL_BYTES:
            return parse_content(data, self.options.kinds)
        async with self._parse_slots.slot("", namespace):
            reading = asyncio.get_running_loop().run_in_executor(None, parse_content, data, self.options.kinds)
            return await await_shielded(reading)  # a thread cannot be cancelled; its place is free when it has ended

    def _admit_actual_source(
        self, plan: ResolutionPlan, reference: Reference, resolved: ResolvedContent
    ) -> PolicyDecision:
        """What policies ask for of content from where it was in the end, which may not be what was asked for."""
        admission, source = plan.admission, resolved.source.uri
        with wrap_resolver_errors(reference.resolver):
            # The address of a source is one of policies' where it is a URL: that of another hub of a list.
            places = [source] if urlsplit(source).scheme in ("http", "https") else []
            elsewhere = [place for place in places if not _is_within(place, plan.uri)]
        # Below what was asked for, too: a policy may name just that part of it, and ask for more.
        elsewhere += [resolved.found_at] if resolved.found_at not in ("", *elsewhere) else []
        for place in elsewhere:
            admission = admission.merge(plan.policies.admit_source(place))
        if resolved.found_params:
            admission = admission.merge(plan.policies.admit_params(resolved.found_params))
        if admission.digest_required_by and reference.digest is None and not plan.is_pinned:
            told = f"policy {admission.digest_required_by[0]} asks for a digest of what comes from there: give one"
            raise ResolutionError(Reason.DENIED, told)
        return admission

    async def _verify_signatures(
        self, admission: PolicyDecision, resolved: ResolvedContent, found: Object
    ) -> tuple[str, ...]:
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

    async def _get_content(self, plan: ResolutionPlan) -> _FetchedContent:
        """The content, from the cache or from its remote; who wants the same at the same time gets the same."""
        params = plan.fetch.params
        if plan.uses_cache and (kept := self._get_cached(plan, params)) is not None:
            return kept
        return await self._single_flight.join(plan.build_tenant_key(params), lambda: self._fetch_and_cache(plan))

    async def _fetch_and_cache(self, plan: ResolutionPlan) -> _FetchedContent:
        try:
            answer = await self._pin_and_fetch(plan)
        except ResolutionError as error:
            if plan.uses_cache:
                self.cache.store(plan.build_tenant_key(plan.fetch.params), CachedFailure(error), self._clock.now())
            raise
        if plan.uses_cache:
            self.cache.store(plan.build_shared_key(plan.fetch.params), answer.resolved, self._clock.now())
        return answer

    async def _pin_and_fetch(self, plan: ResolutionPlan) -> _FetchedContent:
        resolver, fetch = plan.installed.resolver, plan.fetch
        if plan.is_pinned:
            return await self._fetch(plan, fetch, keeps=plan.uses_cache)
        pinned, _ = await self._call_remote(plan, lambda: resolver.pin(fetch))
        if pinned is None:
            return await self._fetch(plan, fetch, keeps=plan.uses_cache)
        # What it names now is fetched under that name: the branch may move on meanwhile, and the next one who asks
        # for the branch pays only for finding out where it is.
        settled = replace(fetch, params=pinned)
        if plan.caches_pinned and (kept := self._get_cached(plan, settled.params)) is not None:
            return kept
        with name_revision_in_errors(fetch.params, pinned):
            answer = await self._fetch(plan, settled, keeps=plan.caches_pinned)
        if plan.caches_pinned:
            self.cache.store(plan.build_shared_key(settled.params), answer.resolved, self._clock.now())
        return answer

    async def _fetch(self, plan: ResolutionPlan, fetch: FetchRequest, *, keeps: bool) -> _FetchedContent:
        resolver = plan.installed.resolver

        async def call_resolver() -> object:
            # It may have waited for its place, and another tenant may have got what is public in the meantime.
            kept = self.cache.get(plan.build_shared_key(fetch.params), self._clock.now()) if keeps else None
            return _FetchedContent(kept, 0) if isinstance(kept, ResolvedContent) else await resolver.resolve(fetch)

        resolved, attempts = await self._call_remote(plan, call_resolver)
        if isinstance(resolved, _FetchedContent):
            return resolved
        # Before it is kept: a resolver is anybody's code, and may end without an answer.
        if not isinstance(resolved, ResolvedContent):
            told = f"resolver {resolver.name!r} failed: it answered with no Resolved"
            raise ResolutionError(Reason.INTERNAL, told)
        with wrap_resolver_errors(resolver.name):
            in_the_end = (resolved.found_at, resolved.found_params)
            size = len(msgspec.json.encode((resolved.source, resolved.annotations, resolved.pinned, in_the_end)))
        if size > _MAX_RECORD_BYTES:
            told = f"what is to be recorded of the content is too large: expected at most {_MAX_RECORD_BYTES} bytes"
            raise ResolutionError(Reason.TOO_LARGE, f"{told}, found {size}")
        params = (*iter_texts(resolved.pinned), *iter_texts(resolved.found_params))
        texts = (resolved.source.uri, resolved.found_at, *resolved.annotations.values(), *params)
        if where := next((found for text in texts if (found := find_credential(text))), ""):
            told = f"resolver {resolver.name!r} failed: it records an address with a credential, {where}"
            raise ResolutionError(Reason.INTERNAL, told)
        return _FetchedContent(resolved, attempts)

    async def _call_remote(self, plan: ResolutionPlan, work: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        return await self._caller.call(
            work,
            resolver=plan.installed.resolver.name,
            remote=plan.remote,
            namespace=plan.fetch.namespace,
            attempts=self.options.attempts,
        )

    def _get_cached(self, plan: ResolutionPlan, params: Parameters) -> _FetchedContent | None:
        now = self._clock.now()
        kept = self.cache.get(plan.build_shared_key(params), now)
        if kept is None and plan.admission.is_public:
            kept = self.cache.get(plan.build_tenant_key(params), now)  # a failure is nobody else's
        if isinstance(kept, CachedFailure):
            raise ResolutionError(kept.error.reason, kept.error.message)
        return None if kept is None else _FetchedContent(kept, 0)


def _find_policy_source(plan: ResolutionPlan, resolved: ResolvedContent) -> str:
    found = resolved.found_at or ("" if urlsplit(resolved.source.uri).scheme else plan.uri)
    return "" if found == resolved.source.uri else found


def _is_within(found: str, asked: str) -> bool:
    """Tell whether an address begins with the one that was asked for."""
    try:
        return SourcePrefix.parse(asked).matches(found)
    except ValueError:
        return False
