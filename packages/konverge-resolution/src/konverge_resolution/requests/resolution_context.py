"""How a run is set up at the moment: its configuration, the policies, who serves what, and the engine that goes by it.

All of that is told from outside, and counts for the next fetch: what is under way ends as it began. What is decided of
a request here asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from konverge.kube import Object
from konverge_resolution.content_cache import ContentCache
from konverge_resolution.engine import Engine, Requester
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.requests.metrics import UNKNOWN
from konverge_resolution.requests.policy_parsing import PolicySet, parse_policies
from konverge_resolution.requests.request_format import RequestSpec
from konverge_resolution.requests.request_lifecycle import LifecycleOptions, ResolverLocation
from konverge_resolution.requests.resolution_config import parse_config
from konverge_resolution.resolver import Resolver
from konverge_resolution.resolver_registry import ResolverRegistry
from konverge_resolution.resolvers import list_resolver_names

__all__ = ["ResolutionContext"]


class ResolutionContext:
    """What all passes of a run go by.

    Args:
        resolvers: Those that this process serves.
        make_engine: Makes the engine; which resolvers it has, its options and its policies are set here.
        policies: Answers all `ResolutionPolicy` objects as they are held.
        others: Answers the resolvers that other processes serve.
        announced: Answers those that other processes serve or have served.
        keeps_lifecycle: Whether this process begins, ends and removes requests of all resolvers.
        uses_tekton_config: Whether Tekton's own ConfigMaps count.

    Attributes:
        configuration: What the ConfigMaps say.
        engine: Resolves.
        installed: The resolvers that this process could serve.
    """

    def __init__(
        self,
        resolvers: Iterable[Resolver],
        make_engine: Callable[[ResolverRegistry], Engine],
        *,
        policies: Callable[[], Iterable[Object]],
        others: Callable[[], frozenset[str]],
        announced: Callable[[], frozenset[str]],
        keeps_lifecycle: bool,
        uses_tekton_config: bool,
    ) -> None:
        self._resolvers = tuple(resolvers)
        self._list_policies = policies
        self._policies: PolicySet | None = None
        self._known: frozenset[str] = frozenset()
        self._others = others
        self._announced = announced
        self.installed = list_resolver_names() | {resolver.name for resolver in self._resolvers}
        self._keeps_lifecycle = keeps_lifecycle
        self._uses_tekton_config = uses_tekton_config
        self.configuration = parse_config(self._resolvers, {})
        self.engine = make_engine(self.configuration.registry)

    def apply_config_maps(self, config_maps: Mapping[str, Object]) -> None:
        """These are the ConfigMaps now."""
        data = {name: obj.get("data") or {} for name, obj in config_maps.items()}
        found = self.configuration = parse_config(self._resolvers, data, uses_tekton_config=self._uses_tekton_config)
        engine = self.engine
        engine.registry, engine.options, engine.source_map = found.registry, found.options, found.source_map
        if engine.cache.limits != found.cache_limits:
            engine.cache = ContentCache(found.cache_limits)

    def invalidate_policies(self) -> None:
        """A policy came, changed or went: they are read again before the next fetch."""
        self._policies = None

    @property
    def rules(self) -> LifecycleOptions:
        """What the lifecycle of all requests goes by."""
        found = self.configuration
        return LifecycleOptions(found.options.timeout, self._keeps_lifecycle, found.finished_lifetime)

    def locate_resolver(self, asked: RequestSpec) -> ResolverLocation:
        """Who fetches for a request."""
        if asked.error is not None:
            return ResolverLocation.HERE if self._keeps_lifecycle else ResolverLocation.NOWHERE
        if asked.resolver in self.configuration.registry:
            return ResolverLocation.HERE
        return ResolverLocation.ELSEWHERE if asked.resolver in self._others() else ResolverLocation.NOWHERE

    def get_metric_label(self, resolver: str) -> str:
        """The label of a resolver in metrics: what a request calls one is no label until there is one."""
        is_known = resolver in self.configuration.registry or resolver in self._others()
        return resolver if is_known else UNKNOWN

    def find_error(self, asked: RequestSpec, namespace: str) -> ResolutionError | None:
        """Why a request fails without anybody being asked; None when that has to be found out."""
        if asked.error is not None:
            return asked.error
        assert asked.reference is not None, "there is a reference or a mistake"
        try:
            asked.reference.check()
            self.configuration.check()
            self._load_policies().check(asked.resolver, namespace)
            self.engine.check(asked.reference, Requester(namespace, asked.user))
        except ResolutionError as error:
            if error.reason is Reason.RESOLVER_NOT_AVAILABLE and self._keeps_lifecycle:
                return self.build_unserved_error(asked)  # says which there are in other processes, too
            return error
        return None

    def build_unserved_error(self, asked: RequestSpec) -> ResolutionError:
        """The refusal of a request whose resolver nobody serves, with those that somebody does."""
        return self.configuration.registry.build_unavailable_error(asked.resolver, self._others())

    @property
    def known_resolvers(self) -> frozenset[str]:
        """The resolvers that a policy may name: those that are installed here, and those that others announce."""
        return self.installed | self._announced()

    def _load_policies(self) -> PolicySet:
        known = self.known_resolvers
        if self._policies is None or known != self._known:
            self._known = known
            self._policies = parse_policies(self._list_policies(), known)
            self.engine.policies = self._policies.valid
        return self._policies
