"""What is decided of a reference before anybody is asked: who gets it, by which parameters, and whether it may be.

reference -> resolver and its settings -> source map -> parameters -> policy -> whether it is kept, and for whom
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from konverge.resolution.asking import contained, remote_of
from konverge.resolution.cache import CacheKey, CacheMode, cache_key, is_kept
from konverge.resolution.content import ANY_KIND, AllowedKinds
from konverge.resolution.errors import ResolutionError
from konverge.resolution.policy import Admission, Policy, RequestPolicies
from konverge.resolution.reasons import Reason
from konverge.resolution.reference import Parameters, Reference
from konverge.resolution.registry import Installed, Registry
from konverge.resolution.resolver import Fetch, Services
from konverge.resolution.settings import CONFIG_KEY, as_duration
from konverge.resolution.source_map import SourceMap

__all__ = ["CACHE", "OF_THE_ENGINE", "EngineOptions", "Plan", "Requester", "ServicesFor", "planned"]

CACHE = "cache"
"""The parameter that asks for a mode of the cache."""

OF_THE_ENGINE = (CACHE, CONFIG_KEY)
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


class ServicesFor(Protocol):
    """Makes the services for one request."""

    def __call__(self, requester: Requester, admission: Admission) -> Services:
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
class Plan:
    """What is decided of a reference; made by `planned`.

    Args:
        installed: Its resolver.
        fetch: What that is asked for.
        uri: Where it would look.
        remote: Whose places that takes.
        policies: Decide about every place that it leads to.
        admission: What they ask for of the place where it begins.
        is_pinned: Whether the parameters name one content for ever.
        keeps: Whether what these parameters come to is kept.
        keeps_pinned: Whether what they are pinned to is.
        rewritten_from: The address before the source map changed it; empty when it did not.
    """

    installed: Installed
    fetch: Fetch
    uri: str
    remote: str
    policies: RequestPolicies
    admission: Admission
    is_pinned: bool
    keeps: bool
    keeps_pinned: bool
    rewritten_from: str

    def key(self, params: Parameters) -> CacheKey:
        """What an answer is kept under: that of a public source for everybody."""
        return self._key(params, "") if self.admission.is_public else self.own_key(params)

    def own_key(self, params: Parameters) -> CacheKey:
        """What fetches and failures are known by: nobody waits for another tenant's, nor fails by its credential."""
        return self._key(params, f"{self.fetch.namespace}/{self.fetch.user}")

    def _key(self, params: Parameters, tenant: str) -> CacheKey:
        return cache_key(
            self.installed.resolver.name,
            params,
            self.fetch.settings,
            tenant=tenant,
            has_signatures=self.fetch.wants_signatures,
        )


def planned(
    reference: Reference,
    requester: Requester,
    *,
    registry: Registry,
    options: EngineOptions,
    policies: Iterable[Policy],
    source_map: SourceMap,
    services_for: ServicesFor,
) -> Plan:
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
    asked = _cache_mode(given.pop(CACHE, None), f"parameter {CACHE!r}", Reason.INVALID_PARAMETERS)
    config_key = given.pop(CONFIG_KEY, "")
    if not isinstance(config_key, str):
        raise ResolutionError(Reason.INVALID_PARAMETERS, f"parameter {CONFIG_KEY!r}: expected text")
    settings = installed.settings.chosen(config_key)
    resolver = installed.resolver
    params, rewritten_from = source_map.rewritten(given)
    with contained(resolver.name):
        checked = resolver.validate(params, settings)
        judged = checked
        if reference.unpinned is not None:
            judged = resolver.validate(_of_resolver(reference.unpinned, source_map), settings)
        uri = resolver.source_uri(checked, settings)
        remote = remote_of(uri)
        is_pinned = resolver.is_pinned(checked)
    of_request = RequestPolicies(tuple(policies), resolver.name, requester.namespace, uri, judged)
    admission = of_request.admit()
    if admission.digest_wanted_by and reference.digest is None and not is_pinned:
        told = "asks for a digest: give one, or parameters that name one content for ever"
        raise ResolutionError(Reason.DENIED, f"policy {admission.digest_wanted_by[0]} {told}")
    configured = settings.get(_CACHE_MODE)
    asked = asked or _cache_mode(configured, f"setting {_CACHE_MODE!r}", Reason.INVALID_CONFIGURATION)
    keeps, keeps_pinned = (
        is_kept(operator=options.cache_mode, asked=asked, is_pinned=pinned) for pinned in (is_pinned, True)
    )
    timeout = options.timeout
    if own := settings.get(_TIMEOUT):
        timeout = min(timeout, as_duration(own))
    services = services_for(requester, admission)
    if services.http is not None:
        services = replace(services, http=services.http.adapted(check_hop=of_request.check_hop))
    return Plan(
        installed=installed,
        fetch=Fetch(
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
        keeps=keeps,
        keeps_pinned=keeps_pinned,
        rewritten_from=rewritten_from,
    )


def _of_resolver(params: Parameters, source_map: SourceMap) -> Parameters:
    return source_map.rewritten({name: value for name, value in params.items() if name not in OF_THE_ENGINE})[0]


def _cache_mode(text: object, where: str, reason: Reason) -> CacheMode | None:
    if text is None or text == "":
        return None
    if isinstance(text, str) and text in {mode.value for mode in CacheMode}:
        return CacheMode(text)
    raise ResolutionError(reason, f"{where}: expected auto, always or never, found {str(text)[:40]!r}")
