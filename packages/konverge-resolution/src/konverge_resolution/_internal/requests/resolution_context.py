"""Current configuration of a run: settings, policies, available resolvers, and the engine that uses them.

All of it comes from outside and applies to the next fetch; running fetches end as they began. Decisions on a request
here need no connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from konverge._internal.kube import Object
from konverge_resolution._internal.content_cache import ContentCache
from konverge_resolution._internal.engine import Engine, Requester
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.requests.metrics import UNKNOWN
from konverge_resolution._internal.requests.policy_parsing import PolicySet, parse_policies
from konverge_resolution._internal.requests.request_format import RequestSpec
from konverge_resolution._internal.requests.request_lifecycle import LifecycleOptions, ResolverLocation
from konverge_resolution._internal.requests.resolution_config import parse_config
from konverge_resolution._internal.resolver import Resolver
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolvers import list_resolver_names

__all__ = ["ResolutionContext"]


class ResolutionContext:
    """Configuration that all reconciles of a run share.

    Args:
        resolvers: The resolvers of this process.
        make_engine: Builds the engine; its resolvers, options and policies are set here.
        policies: Returns all cached `ResolutionPolicy` objects.
        others: Returns the resolvers that other processes serve.
        announced: Returns the resolvers that other processes serve or have served.
        is_starting: Tells whether this process has started so recently that others may not have announced yet.
        keeps_lifecycle: Whether this process starts, ends and removes requests of all resolvers.
        uses_tekton_config: Whether Tekton's own ConfigMaps apply.

    Attributes:
        configuration: The configuration from the ConfigMaps.
        engine: The engine.
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
        is_starting: Callable[[], bool],
        keeps_lifecycle: bool,
        uses_tekton_config: bool,
    ) -> None:
        self._resolvers = tuple(resolvers)
        self._list_policies = policies
        self._policies: PolicySet | None = None
        self._known: frozenset[str] = frozenset()
        self._others = others
        self._announced = announced
        self._is_starting = is_starting
        self.installed = list_resolver_names() | {resolver.name for resolver in self._resolvers}
        self._keeps_lifecycle = keeps_lifecycle
        self._uses_tekton_config = uses_tekton_config
        self.configuration = parse_config(self._resolvers, {})
        self.engine = make_engine(self.configuration.registry)

    def apply_config_maps(self, config_maps: Mapping[str, Object]) -> None:
        """Apply changed ConfigMaps to the configuration and the engine."""
        data = {name: obj.get("data") or {} for name, obj in config_maps.items()}
        config = self.configuration = parse_config(self._resolvers, data, uses_tekton_config=self._uses_tekton_config)
        engine = self.engine
        engine.registry, engine.options, engine.source_map = config.registry, config.options, config.source_map
        if engine.cache.limits != config.cache_limits:
            engine.cache = ContentCache(config.cache_limits)

    def invalidate_policies(self) -> None:
        """Parse the policies again before the next fetch, because one has changed."""
        self._policies = None

    @property
    def rules(self) -> LifecycleOptions:
        """The options for the lifecycle of all requests."""
        config = self.configuration
        return LifecycleOptions(config.options.timeout, self._keeps_lifecycle, config.finished_lifetime)

    def locate_resolver(self, asked: RequestSpec) -> ResolverLocation:
        """Return the process that serves the resolver of a request."""
        if asked.error is not None:
            return ResolverLocation.HERE if self._keeps_lifecycle else ResolverLocation.NOWHERE
        if asked.resolver in self.configuration.registry:
            return ResolverLocation.HERE
        if asked.resolver in self._others():
            return ResolverLocation.ELSEWHERE
        # A new cluster starts all processes at the same time. A misspelled name is refused at once nevertheless.
        is_expected = self._is_starting() and asked.resolver in self.known_resolvers
        return ResolverLocation.EXPECTED if is_expected else ResolverLocation.NOWHERE

    def get_metric_label(self, resolver: str) -> str:
        """Return the metric label of a resolver; ``unknown`` for a name that only a request contains."""
        is_known = resolver in self.configuration.registry or resolver in self._others()
        return resolver if is_known else UNKNOWN

    def find_error(self, asked: RequestSpec, namespace: str) -> ResolutionError | None:
        """Return the error of a request that needs no connection to be refused; None if there is none."""
        if asked.error is not None:
            return asked.error
        assert asked.reference is not None, "a spec has a reference or an error"
        try:
            asked.reference.check()
            self.configuration.check()
            self._load_policies().check(asked.resolver, namespace)
            self.engine.check(asked.reference, Requester(namespace, asked.user))
        except ResolutionError as error:
            if error.reason is Reason.RESOLVER_NOT_AVAILABLE and self._keeps_lifecycle:
                return self.build_unserved_error(asked)  # lists resolvers of other processes, too
            return error
        return None

    def build_unserved_error(self, asked: RequestSpec) -> ResolutionError:
        """Return the error for a resolver that no process serves, with the available resolvers."""
        return self.configuration.registry.build_unavailable_error(asked.resolver, self._others())

    @property
    def known_resolvers(self) -> frozenset[str]:
        """The resolvers that a policy may name: those installed here, and those that other processes announce."""
        return self.installed | self._announced()

    def _load_policies(self) -> PolicySet:
        known = self.known_resolvers
        if self._policies is None or known != self._known:
            self._known = known
            self._policies = parse_policies(self._list_policies(), known)
            self.engine.policies = self._policies.valid
        return self._policies
