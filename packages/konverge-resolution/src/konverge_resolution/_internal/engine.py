"""The engine: the only way from a reference to its content.

`Engine.resolve` reads from top to bottom:

1. plan: resolver and settings, source map, parameters, policies; without a connection (`.resolution_plan`)
2. read the cache in memory
3. join a running fetch of the same content, or start one
4. pin the version; read it from the cache on disk, or fetch with retries, within the limits of the remote
   (`.remote_caller`)
5. verify: digest, object and its kind, policies of the actual source, signatures
6. record the `ResolutionResult`

The operator for requests, the command line, operators and boxes all use it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from konverge._internal.cancellation import await_shielded
from konverge._internal.kube import Object
from konverge.clock import Clock, Entropy
from konverge_resolution._internal.content_cache import CacheKey, ContentCache
from konverge_resolution._internal.content_validation import parse_content
from konverge_resolution._internal.definition_listing import ListedDefinition, ListingResolver
from konverge_resolution._internal.disk_cache import DiskCache
from konverge_resolution._internal.error_context import name_revision_in_errors, name_source_in_errors
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.network import ConcurrencyLimiter
from konverge_resolution._internal.policy import Policy, PolicyDecision, SignatureMode, SignatureRule
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, Parameters, Reference, iter_texts
from konverge_resolution._internal.remote_caller import RemoteCaller, wrap_resolver_errors
from konverge_resolution._internal.resolution_plan import (
    EngineOptions,
    Requester,
    ResolutionPlan,
    ServicesFactory,
    plan_resolution,
)
from konverge_resolution._internal.resolved_content import ResolvedContent
from konverge_resolution._internal.resolver import FetchRequest
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.single_flight import SingleFlight
from konverge_resolution._internal.source_map import SourceMap
from konverge_resolution._internal.source_prefix import SourcePrefix
from konverge_resolution._internal.url_credentials import find_credential

__all__ = ["Engine", "EngineOptions", "Requester", "ResolutionResult", "ServicesFactory", "Verifier"]

T = TypeVar("T")

_log = logging.getLogger("konverge.resolution")

_MAX_RECORD_BYTES = 32 * 1024
"""Limit of a record in bytes. The author of an image chooses the names of its layers, and a status has the record."""
_SMALL_BYTES = 16 * 1024
"""Larger content is parsed in a thread; at most `_MAX_PARSING` threads parse at the same time."""
_MAX_PARSING = 2

Verifier = Callable[[ResolvedContent, Object, SignatureRule], Awaitable[str]]
"""Return the problem of the signature of content under one rule; empty for a valid signature."""


@dataclass(frozen=True, slots=True)
class ResolutionResult:
    """Verified content and the record of its resolution.

    Args:
        resolved: The content and its source.
        object: The content as an object.
        resolver: The name of the resolver.
        fetched_from: ``remote``, or ``cache`` when at most the version was looked up.
        attempts: Number of fetches from the remote; 0 from the cache.
        policies: The names of the policies that allowed it.
        warnings: The findings of policies that only warn.
        rewritten_from: The address before the source map changed it; empty when it did not.
        policy_source: The address by which policies name the actual source of the content, where that differs from the
            recorded one: for an object of the cluster, and after a redirect.
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
        """Tell whether the content came from another address than its source names."""
        return bool(self.policy_source and urlsplit(self.resolved.source.uri).scheme)


@dataclass(frozen=True, slots=True)
class _FetchedContent:
    """Content before its verification, and the number of fetches from the remote: 0 from a cache or a folder."""

    content: ResolvedContent
    attempts: int


class Engine:
    """Resolver of references: policy, cache, shared fetches, retries and checks around every resolver.

    Args:
        registry: The resolvers.
        services_for: Builds the services of a resolver for one requester.
        clock: The clock.
        entropy: Source of the jitter of retry delays.
        options: Options for all resolvers.
        policies: The policies that allow and restrict fetches.
        source_map: Replacements of addresses.
        cache: Cache of earlier fetches; an empty one when None.
        disk_cache: Cache of content with a permanent name, shared with other processes; None for none.
        bounds: Limits on concurrent fetches, by remote and namespace.
        verifier: Verifies signatures; None refuses content that policies require to be signed.
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
        disk_cache: DiskCache | None = None,
        bounds: ConcurrencyLimiter[str] | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        self.registry = registry
        self.options: EngineOptions = options or EngineOptions()
        self.policies: tuple[Policy, ...] = tuple(policies)
        self.source_map: SourceMap = source_map or SourceMap()
        self.cache: ContentCache = ContentCache() if cache is None else cache  # an empty cache is false
        self._disk_cache = disk_cache
        self._services_for = services_for
        self._clock = clock
        self._caller = RemoteCaller(clock, entropy, bounds)
        self._verifier = verifier
        self._parse_slots: ConcurrencyLimiter[str] = ConcurrencyLimiter(_MAX_PARSING, _MAX_PARSING, per_tenant=(1, 1))
        self._single_flight: SingleFlight[CacheKey, _FetchedContent] = SingleFlight()

    async def resolve(
        self, reference: Reference, requester: Requester, *, seconds: float | None = None
    ) -> ResolutionResult:
        """Resolve a reference to verified content.

        Args:
            reference: The reference.
            requester: The namespace and user of the request.
            seconds: Time limit in seconds. The timeouts of the options and of the resolver apply as well.

        Raises:
            ResolutionError: There is no result. No other exception is raised, whatever a resolver does.
            asyncio.CancelledError: The call was cancelled. The fetch ends with it unless another caller waits for the
                same fetch.
        """
        start = self._clock.monotonic()
        plan = self._plan(reference, requester)
        limit = plan.fetch.seconds if seconds is None else min(seconds, plan.fetch.seconds)
        plan = replace(plan, fetch=replace(plan.fetch, seconds=limit))
        try:
            async with asyncio.timeout(limit):
                fetched = self._read_cache(plan, plan.fetch.params) if plan.uses_cache else None
                if fetched is None:
                    fetched = await self._join_fetch(plan)
                result = await self._verify(plan, reference, fetched)
        except TimeoutError:
            message = f"resolver {reference.resolver!r}: no result within the time limit of {limit:g} s"
            if phase := plan.fetch.services.progress.describe(plan.uri):
                message += f"; it was {phase}"
            raise ResolutionError(Reason.TIMED_OUT, message) from None
        content, seconds = result.resolved, self._clock.monotonic() - start
        digest = Digest.of(content.data)
        _log.debug("resolved %s in %.3f s: %s, from %s", content.source, seconds, digest, result.fetched_from)
        return result

    async def validate_content(
        self, reference: Reference, requester: Requester, content: ResolvedContent
    ) -> ResolutionResult:
        """Check stored content like fetched content, without a connection to its remote.

        Args:
            reference: The reference that the content was stored for.
            requester: The namespace and user of the request.
            content: The content.

        Raises:
            ResolutionError: Policies, the digest, the kind or a signature forbid its use.
        """
        return await self._verify(self._plan(reference, requester), reference, _FetchedContent(content, 0))

    async def list_definitions(
        self, reference: Reference, requester: Requester, *, seconds: float | None = None
    ) -> Sequence[ListedDefinition]:
        """List the definitions of a source, under the policies for fetches from it.

        Args:
            reference: The reference without the parameters that select a definition.
            requester: The namespace and user of the request.
            seconds: Time limit in seconds.

        Raises:
            ResolutionError: The source cannot be read, or its resolver cannot list definitions.
        """
        plan = self._plan(reference, requester, is_listing=True)
        resolver, fetch = plan.installed.resolver, plan.fetch
        assert isinstance(resolver, ListingResolver), "the plan refuses other resolvers"
        limit = fetch.seconds if seconds is None else min(seconds, fetch.seconds)
        try:
            async with asyncio.timeout(limit):
                listed, _ = await self._call_remote(plan, lambda: resolver.list_definitions(fetch))
        except TimeoutError:
            message = f"resolver {reference.resolver!r}: no list within the time limit of {limit:g} s"
            if phase := fetch.services.progress.describe(plan.uri):
                message += f"; it was {phase}"
            raise ResolutionError(Reason.TIMED_OUT, message) from None
        return listed

    def check(self, reference: Reference, requester: Requester, *, is_listing: bool = False) -> str:
        """Apply all checks of a reference that need no connection; return the address of its source.

        Args:
            reference: The reference.
            requester: The namespace and user of the request.
            is_listing: Whether the definitions of the source are listed, as `list_definitions` does.

        Raises:
            ResolutionError: The reference is refused.
        """
        return self._plan(reference, requester, is_listing=is_listing).uri

    # The steps of `resolve`, in their order.

    def _plan(self, reference: Reference, requester: Requester, *, is_listing: bool = False) -> ResolutionPlan:
        """Choose the resolver, validate the parameters and check the policies."""
        return plan_resolution(
            reference,
            requester,
            registry=self.registry,
            options=self.options,
            policies=self.policies,
            source_map=self.source_map,
            services_for=self._services_for,
            is_listing=is_listing,
        )

    def _read_cache(self, plan: ResolutionPlan, params: Parameters) -> _FetchedContent | None:
        """Return cached content, or None where the cache has none.

        Raises:
            ResolutionError: The cache has a recent failure of this tenant.
        """
        now = self._clock.now()
        cached = self.cache.get(plan.build_shared_key(params), now)
        if cached is None and plan.admission.is_public:
            cached = self.cache.get(plan.build_tenant_key(params), now)  # failures are never shared between tenants
        if isinstance(cached, ResolutionError):
            raise cached.with_message(cached.message)  # a new exception: the stored one would keep its traceback
        return None if cached is None else _FetchedContent(cached, 0)

    async def _join_fetch(self, plan: ResolutionPlan) -> _FetchedContent:
        """Wait for the running fetch of the same content, or start one."""
        return await self._single_flight.join(
            plan.build_tenant_key(plan.fetch.params), lambda: self._fetch_and_cache(plan)
        )

    async def _fetch_and_cache(self, plan: ResolutionPlan) -> _FetchedContent:
        try:
            fetched = await self._pin_and_fetch(plan)
        except ResolutionError as error:
            if plan.uses_cache:
                self.cache.store(plan.build_tenant_key(plan.fetch.params), error, self._clock.now())
            raise
        if plan.uses_cache:
            self.cache.store(plan.build_shared_key(plan.fetch.params), fetched.content, self._clock.now())
        return fetched

    async def _pin_and_fetch(self, plan: ResolutionPlan) -> _FetchedContent:
        """Pin the version where the resolver can, and fetch that version unless it is cached.

        A branch can move between the two steps, so the pinned version is fetched by its own name. The next request for
        the branch then costs only the lookup of the branch.
        """
        resolver, fetch = plan.installed.resolver, plan.fetch
        if plan.is_pinned:
            return await self._fetch_permanent(plan, fetch, uses_cache=plan.uses_cache)
        pinned, _ = await self._call_remote(plan, lambda: resolver.pin(fetch))
        if pinned is None:
            return await self._fetch_with_retries(plan, fetch, uses_cache=plan.uses_cache)
        if plan.caches_pinned and (cached := self._read_cache(plan, pinned)) is not None:
            return cached
        with name_revision_in_errors(fetch.params, pinned):
            fetched = await self._fetch_permanent(plan, replace(fetch, params=pinned), uses_cache=plan.caches_pinned)
        if plan.caches_pinned:
            self.cache.store(plan.build_shared_key(pinned), fetched.content, self._clock.now())
        return fetched

    async def _fetch_permanent(self, plan: ResolutionPlan, fetch: FetchRequest, *, uses_cache: bool) -> _FetchedContent:
        """Fetch content that its parameters name permanently, from the cache on disk where that has it."""
        if self._disk_cache is None or not uses_cache:
            return await self._fetch_with_retries(plan, fetch, uses_cache=uses_cache)
        key = plan.build_tenant_key(fetch.params)
        cached = await self._disk_cache.get(key)
        if cached is not None:
            return _FetchedContent(_check_resolver_result(plan.installed.resolver.name, cached), 0)
        fetched = await self._fetch_with_retries(plan, fetch, uses_cache=True)
        await self._disk_cache.store(key, fetched.content)
        return fetched

    async def _fetch_with_retries(
        self, plan: ResolutionPlan, fetch: FetchRequest, *, uses_cache: bool
    ) -> _FetchedContent:
        resolver = plan.installed.resolver

        async def fetch_once() -> object:
            # While this fetch waited for its slot, another tenant may have fetched the same public content.
            cached = self.cache.get(plan.build_shared_key(fetch.params), self._clock.now()) if uses_cache else None
            return _FetchedContent(cached, 0) if isinstance(cached, ResolvedContent) else await resolver.resolve(fetch)

        fetched, attempts = await self._call_remote(plan, fetch_once)
        if isinstance(fetched, _FetchedContent):
            return fetched
        # Before it is cached: a resolver can be third-party code and return anything.
        return _FetchedContent(_check_resolver_result(resolver.name, fetched), attempts)

    async def _call_remote(self, plan: ResolutionPlan, call: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        return await self._caller.call(
            call,
            resolver=plan.installed.resolver.name,
            remote=plan.remote,
            namespace=plan.fetch.namespace,
            attempts=self.options.attempts,
            progress=plan.fetch.services.progress,
        )

    async def _verify(self, plan: ResolutionPlan, reference: Reference, fetched: _FetchedContent) -> ResolutionResult:
        """Check the digest, the kind, the policies of the actual source and the signatures; then record the result."""
        content = fetched.content
        if reference.digest is not None and not reference.digest.matches(content.data):
            raise ResolutionError(Reason.DIGEST_MISMATCH, reference.digest.describe_mismatch(content.data))
        with name_source_in_errors(content.source):
            parsed = await self._parse_object(content.data, plan.fetch.namespace)
        admission = self._admit_actual_source(plan, reference, content)
        return ResolutionResult(
            resolved=content,
            object=parsed,
            resolver=reference.resolver,
            fetched_from="remote" if fetched.attempts else "cache",
            attempts=fetched.attempts,
            policies=admission.policies,
            warnings=await self._verify_signatures(admission, content, parsed),
            rewritten_from=plan.rewritten_from,
            policy_source=_find_policy_source(plan, content),
        )

    async def _parse_object(self, data: bytes, namespace: str) -> Object:
        """Parse content as an object. Large content takes half a second, so it is parsed in a thread.

        Raises:
            ResolutionError: The content is not an object of an allowed kind.
        """
        if len(data) <= _SMALL_BYTES:
            return parse_content(data, self.options.kinds)
        async with self._parse_slots.slot("", namespace):
            parsing = asyncio.get_running_loop().run_in_executor(None, parse_content, data, self.options.kinds)
            return await await_shielded(parsing)  # a thread cannot be cancelled; its slot is free when it has ended

    def _admit_actual_source(
        self, plan: ResolutionPlan, reference: Reference, content: ResolvedContent
    ) -> PolicyDecision:
        """Check the policies of the source that the content came from, which can differ from the requested source.

        Raises:
            ResolutionError: ``Denied``: a policy refuses that source, or requires a digest for it.
        """
        admission, source = plan.admission, content.source.uri
        with wrap_resolver_errors(reference.resolver):
            # Only a URL is an address that policies name, such as that of the next hub of a list.
            addresses = [source] if urlsplit(source).scheme in ("http", "https") else []
            other_places = [address for address in addresses if not _is_within(address, plan.uri)]
        # Also for a source below the requested one: a policy may name just that source and require more.
        other_places += [content.found_at] if content.found_at not in ("", *other_places) else []
        for place in other_places:
            admission = admission.merge(plan.policies.admit_source(place))
        if content.found_params:
            admission = admission.merge(plan.policies.admit_params(content.found_params))
        if admission.digest_required_by and reference.digest is None and not plan.is_pinned:
            policy = admission.digest_required_by[0]
            message = f"policy {policy}: requires a digest for the actual source of this content; add a digest"
            raise ResolutionError(Reason.DENIED, message)
        return admission

    async def _verify_signatures(
        self, admission: PolicyDecision, content: ResolvedContent, parsed: Object
    ) -> tuple[str, ...]:
        """Verify the signatures that policies require; return the findings of policies that only warn."""
        warnings = []
        for rule in admission.signatures:
            if self._verifier is None:
                problem = "signatures cannot be verified here"
            else:
                problem = await self._verifier(content, parsed, rule)
            if problem and rule.mode is SignatureMode.ENFORCE:
                raise ResolutionError(Reason.SIGNATURE_INVALID, f"a policy requires a signature: {problem}")
            if problem:
                warnings.append(problem)
        return tuple(warnings)


def _check_resolver_result(resolver: str, content: object) -> ResolvedContent:
    """Return the content of a resolver if its type, the size of its record and its addresses are acceptable.

    Raises:
        ResolutionError: ``Internal``: it is not a `ResolvedContent`, or records a credential; ``TooLarge``: its record
            is too large.
    """
    if not isinstance(content, ResolvedContent):
        message = f"resolver {resolver!r} failed: expected a ResolvedContent, found another type"
        raise ResolutionError(Reason.INTERNAL, message)
    with wrap_resolver_errors(resolver):
        actual_place = (content.found_at, content.found_params)
        size = len(msgspec.json.encode((content.source, content.annotations, content.pinned, actual_place)))
    if size > _MAX_RECORD_BYTES:
        message = f"the record of the content is too large: expected at most {_MAX_RECORD_BYTES} bytes, found {size}"
        raise ResolutionError(Reason.TOO_LARGE, message)
    params = (*iter_texts(content.pinned), *iter_texts(content.found_params))
    texts = (content.source.uri, content.found_at, *content.annotations.values(), *params)
    if credential := next((credential for text in texts if (credential := find_credential(text))), ""):
        message = f"resolver {resolver!r} failed: it records an address with a credential, {credential}"
        raise ResolutionError(Reason.INTERNAL, message)
    return content


def _find_policy_source(plan: ResolutionPlan, content: ResolvedContent) -> str:
    place = content.found_at or ("" if urlsplit(content.source.uri).scheme else plan.uri)
    return "" if place == content.source.uri else place


def _is_within(address: str, requested: str) -> bool:
    """Tell whether an address begins with the requested one."""
    try:
        return SourcePrefix.parse(requested).matches(address)
    except ValueError:
        return False
