"""Decisions on a reference before the first connection: resolver, parameters, policies and cache.

reference -> resolver and its settings -> source map -> parameters -> policies -> use of the cache
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from konverge_resolution._internal.content_cache import CacheKey, CacheMode, build_cache_key, is_cacheable
from konverge_resolution._internal.content_validation import ANY_KIND, AllowedKinds
from konverge_resolution._internal.definition_listing import ListingResolver
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.parameter_spellings import SpellingResolver, spell_plainly
from konverge_resolution._internal.policy import Policy, PolicyDecision, RequestPolicies
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Parameters, Reference
from konverge_resolution._internal.remote_caller import parse_origin, wrap_resolver_errors
from konverge_resolution._internal.resolver import FetchRequest, Resolver, Services
from konverge_resolution._internal.resolver_registry import InstalledResolver, ResolverRegistry
from konverge_resolution._internal.resolver_settings import CONFIG_KEY, as_duration
from konverge_resolution._internal.source_map import SourceMap

__all__ = [
    "CACHE",
    "ENGINE_PARAMETERS",
    "EngineOptions",
    "Requester",
    "ResolutionPlan",
    "ServicesFactory",
    "plan_resolution",
]

CACHE = "cache"
"""Parameter for the mode of the cache."""

ENGINE_PARAMETERS = (CACHE, CONFIG_KEY)
"""Parameters that resolvers do not receive; pinned parameters do not contain them."""

_CACHE_MODE, _TIMEOUT = "default-cache-mode", "fetch-timeout"
"""Settings of resolvers that the engine uses."""


@dataclass(frozen=True, slots=True)
class Requester:
    """Origin of a request for a definition.

    Args:
        namespace: The namespace whose Secrets and policies apply.
        user: The Kubernetes user name; empty if unknown.
    """

    namespace: str
    user: str = ""


class ServicesFactory(Protocol):
    """Factory of the services for one request."""

    def __call__(self, requester: Requester, admission: PolicyDecision) -> Services:
        """Return the services for one request: Secrets of its namespace, connections that policies permit."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options for all resolvers of an engine.

    Args:
        kinds: The allowed kinds of definitions.
        cache_mode: The operator's cache mode; None leaves it to the reference.
        attempts: Maximum number of calls of a remote, including retries after transient failures.
        timeout: Time limit of one resolution; a shorter limit of the resolver takes precedence.
    """

    kinds: AllowedKinds = ANY_KIND
    cache_mode: CacheMode | None = None
    attempts: int = 3
    timeout: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ResolutionPlan:
    """Decisions on one reference; made by `plan_resolution`.

    Args:
        installed: The resolver.
        fetch: The input of the resolver.
        uri: The address of the source.
        remote: The origin whose limits apply.
        policies: Decide on every further source of the request.
        admission: The requirements of the policies for the address.
        is_pinned: Whether the parameters name permanent content.
        uses_cache: Whether the content of these parameters is cached.
        caches_pinned: Whether the content of the pinned parameters is cached.
        rewritten_from: The address before the source map changed it; empty when it did not.
    """

    installed: InstalledResolver
    fetch: FetchRequest
    uri: str
    remote: str
    policies: RequestPolicies
    admission: PolicyDecision
    is_pinned: bool
    uses_cache: bool
    caches_pinned: bool
    rewritten_from: str

    def build_shared_key(self, params: Parameters) -> CacheKey:
        """Return the cache key of content; for a public source all tenants share it."""
        return self._build_key(params, "") if self.admission.is_public else self.build_tenant_key(params)

    def build_tenant_key(self, params: Parameters) -> CacheKey:
        """Return the key of fetches and failures, which tenants never share: another tenant's credential may fail."""
        return self._build_key(params, f"{self.fetch.namespace}/{self.fetch.user}")

    def _build_key(self, params: Parameters, tenant: str) -> CacheKey:
        return build_cache_key(
            self.installed.resolver.name,
            params,
            self.fetch.settings,
            tenant=tenant,
            has_signatures=self.fetch.wants_signatures,
        )


def plan_resolution(
    reference: Reference,
    requester: Requester,
    *,
    registry: ResolverRegistry,
    options: EngineOptions,
    policies: Iterable[Policy],
    source_map: SourceMap,
    services_for: ServicesFactory,
    is_listing: bool = False,
) -> ResolutionPlan:
    """Make all decisions on a reference that need no connection.

    Args:
        reference: The reference.
        requester: The namespace and user of the request.
        registry: The resolvers.
        options: The options for all resolvers.
        policies: The policies.
        source_map: Replacements of addresses.
        services_for: Builds the services of the resolver.
        is_listing: Whether the reference names a source whose definitions are listed, and none of them.

    Raises:
        ResolutionError: The reference is refused.
    """
    reference.check()
    installed = registry.get(reference.resolver)
    given = dict(reference.params)
    asked = _parse_cache_mode(given.pop(CACHE, None), f"parameter {CACHE!r}", Reason.INVALID_PARAMETERS)
    config_key = given.pop(CONFIG_KEY, "")
    if not isinstance(config_key, str):
        raise ResolutionError(Reason.INVALID_PARAMETERS, f"parameter {CONFIG_KEY!r}: expected text")
    settings = installed.settings.select(config_key)
    resolver = installed.resolver
    params, rewritten_from = source_map.rewrite(given)
    validate = _find_listing_resolver(resolver).validate_listing if is_listing else resolver.validate
    with wrap_resolver_errors(resolver.name):
        checked = validate(params, settings)
        policy_params = checked
        if reference.unpinned is not None:
            policy_params = resolver.validate(_rewrite_resolver_params(reference.unpinned, source_map), settings)
        uri = resolver.source_uri(checked, settings)
        remote = parse_origin(uri)
        is_pinned = resolver.is_pinned(checked)
    spell = resolver.spell_parameter if isinstance(resolver, SpellingResolver) else spell_plainly
    request_policies = RequestPolicies(tuple(policies), resolver.name, requester.namespace, uri, policy_params, spell)
    admission = request_policies.admit()
    if admission.digest_required_by and reference.digest is None and not is_pinned:
        message = "requires a digest; add a digest, or parameters with a permanent version"
        raise ResolutionError(Reason.DENIED, f"policy {admission.digest_required_by[0]}: {message}")
    configured = settings.get(_CACHE_MODE)
    asked = asked or _parse_cache_mode(configured, f"setting {_CACHE_MODE!r}", Reason.INVALID_CONFIGURATION)
    uses_cache, caches_pinned = (
        is_cacheable(operator=options.cache_mode, asked=asked, is_pinned=pinned) for pinned in (is_pinned, True)
    )
    timeout = options.timeout
    if own := settings.get(_TIMEOUT):
        timeout = min(timeout, as_duration(own))
    services = services_for(requester, admission)
    if services.http is not None:
        services = replace(services, http=services.http.with_settings(check_hop=request_policies.check_hop))
    return ResolutionPlan(
        installed=installed,
        fetch=FetchRequest(
            checked,
            settings,
            requester.namespace,
            requester.user,
            timeout.total_seconds(),
            services,
            wants_signatures=bool(admission.signatures),
        ),
        uri=uri,
        remote=remote,
        policies=request_policies,
        admission=admission,
        is_pinned=is_pinned,
        uses_cache=uses_cache,
        caches_pinned=caches_pinned,
        rewritten_from=rewritten_from,
    )


def _find_listing_resolver(resolver: Resolver) -> ListingResolver:
    if not isinstance(resolver, ListingResolver):
        message = f"resolver {resolver.name!r} cannot list the definitions of a source"
        raise ResolutionError(Reason.INVALID_PARAMETERS, message)
    return resolver


def _rewrite_resolver_params(params: Parameters, source_map: SourceMap) -> Parameters:
    return source_map.rewrite({name: value for name, value in params.items() if name not in ENGINE_PARAMETERS})[0]


def _parse_cache_mode(text: object, where: str, reason: Reason) -> CacheMode | None:
    if text is None or text == "":
        return None
    if isinstance(text, str) and text in {mode.value for mode in CacheMode}:
        return CacheMode(text)
    raise ResolutionError(reason, f"{where}: expected auto, always or never, found {str(text)[:40]!r}")
