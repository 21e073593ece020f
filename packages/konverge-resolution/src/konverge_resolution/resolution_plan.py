"""What is decided of a reference before anybody is asked: who gets it, by which parameters, and whether it may be.

reference -> resolver and its settings -> source map -> parameters -> policy -> whether it is kept, and for whom
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from konverge_resolution.content_cache import CacheKey, CacheMode, build_cache_key, is_cacheable
from konverge_resolution.content_validation import ANY_KIND, AllowedKinds
from konverge_resolution.errors import ResolutionError
from konverge_resolution.policy import Policy, PolicyDecision, RequestPolicies
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Parameters, Reference
from konverge_resolution.remote_caller import parse_origin, wrap_resolver_errors
from konverge_resolution.resolver import FetchRequest, Services
from konverge_resolution.resolver_registry import InstalledResolver, ResolverRegistry
from konverge_resolution.resolver_settings import CONFIG_KEY, as_duration
from konverge_resolution.source_map import SourceMap

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
"""The parameter that asks for a mode of the cache."""

ENGINE_PARAMETERS = (CACHE, CONFIG_KEY)
"""Parameters that no resolver sees; what is pinned does not have them."""

_CACHE_MODE, _TIMEOUT = "default-cache-mode", "fetch-timeout"
"""Settings that count here, of every resolver that has them."""


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks.

    Args:
        namespace: Whose Secrets may be used, and which policies count.
        user: As Kubernetes names users; empty when nobody knows.
    """

    namespace: str
    user: str = ""


class ServicesFactory(Protocol):
    """Makes the services for one request."""

    def __call__(self, requester: Requester, admission: PolicyDecision) -> Services:
        """What a resolver may use for it: Secrets of that namespace, connections that those policies allow."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What holds for all resolvers.

    Args:
        kinds: Which kinds may be fetched.
        cache_mode: What the operator says of the cache; None leaves it to who asks.
        attempts: How often a remote is asked in all, when it may answer later.
        timeout: How long one resolution may take; that of the resolver, if shorter.
    """

    kinds: AllowedKinds = ANY_KIND
    cache_mode: CacheMode | None = None
    attempts: int = 3
    timeout: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ResolutionPlan:
    """What is decided of a reference; made by `planned`.

    Args:
        installed: Its resolver.
        fetch: What that is asked for.
        uri: Where it would look.
        remote: Whose places that takes.
        policies: Decide about every place that it leads to.
        admission: What they ask for of the place where it begins.
        is_pinned: Whether the parameters name one content for ever.
        uses_cache: Whether what these parameters come to is kept.
        caches_pinned: Whether what they are pinned to is.
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
        """What an answer is kept under: that of a public source for everybody."""
        return self._build_key(params, "") if self.admission.is_public else self.build_tenant_key(params)

    def build_tenant_key(self, params: Parameters) -> CacheKey:
        """What fetches and failures are known by: nobody waits for another tenant's, nor fails by its credential."""
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
) -> ResolutionPlan:
    """Decide what can be decided without a connection.

    Args:
        reference: The reference.
        requester: Who asks.
        registry: The resolvers.
        options: What holds for all of them.
        policies: What may be fetched.
        source_map: Which addresses stand for others.
        services_for: Makes what resolvers may use.

    Raises:
        ResolutionError: It is refused.
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
    with wrap_resolver_errors(resolver.name):
        checked = resolver.validate(params, settings)
        judged = checked
        if reference.unpinned is not None:
            judged = resolver.validate(_rewrite_resolver_params(reference.unpinned, source_map), settings)
        uri = resolver.source_uri(checked, settings)
        remote = parse_origin(uri)
        is_pinned = resolver.is_pinned(checked)
    of_request = RequestPolicies(tuple(policies), resolver.name, requester.namespace, uri, judged)
    admission = of_request.admit()
    if admission.digest_required_by and reference.digest is None and not is_pinned:
        message = "asks for a digest: give one, or parameters that name one content for ever"
        raise ResolutionError(Reason.DENIED, f"policy {admission.digest_required_by[0]} {message}")
    configured = settings.get(_CACHE_MODE)
    asked = asked or _parse_cache_mode(configured, f"setting {_CACHE_MODE!r}", Reason.INVALID_CONFIGURATION)
    keeps, keeps_pinned = (
        is_cacheable(operator=options.cache_mode, asked=asked, is_pinned=pinned) for pinned in (is_pinned, True)
    )
    timeout = options.timeout
    if own := settings.get(_TIMEOUT):
        timeout = min(timeout, as_duration(own))
    services = services_for(requester, admission)
    if services.http is not None:
        services = replace(services, http=services.http.with_settings(check_hop=of_request.check_hop))
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
        policies=of_request,
        admission=admission,
        is_pinned=is_pinned,
        uses_cache=keeps,
        caches_pinned=keeps_pinned,
        rewritten_from=rewritten_from,
    )


def _rewrite_resolver_params(params: Parameters, source_map: SourceMap) -> Parameters:
    return source_map.rewrite({name: value for name, value in params.items() if name not in ENGINE_PARAMETERS})[0]


def _parse_cache_mode(text: object, where: str, reason: Reason) -> CacheMode | None:
    if text is None or text == "":
        return None
    if isinstance(text, str) and text in {mode.value for mode in CacheMode}:
        return CacheMode(text)
    raise ResolutionError(reason, f"{where}: expected auto, always or never, found {str(text)[:40]!r}")
