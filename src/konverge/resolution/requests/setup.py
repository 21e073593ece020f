"""How a run is set up at the moment: its configuration, the policies, who serves what, and the engine that goes by it.

All of that is told from outside, and counts for the next fetch: what is under way ends as it began. What is decided of
a request here asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from konverge.kube import Object
from konverge.resolution.cache import Cache
from konverge.resolution.engine import Engine, Requester
from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import Reason
from konverge.resolution.registry import Registry
from konverge.resolution.requests.configuration import read_configuration
from konverge.resolution.requests.dialect import RequestSpec
from konverge.resolution.requests.figures import UNKNOWN
from konverge.resolution.requests.lifecycle import Rules, Served
from konverge.resolution.requests.policies import Policies, read_policies
from konverge.resolution.resolver import Resolver
from konverge.resolution.resolvers import known_resolver_names

__all__ = ["Setup"]


class Setup:
    """What all passes of a run go by.

    Args:
        resolvers: Those that this process serves.
        make_engine: Makes the engine; which resolvers it has, its options and its policies are set here.
        policies: Answers all `ResolutionPolicy` objects as they are held.
        others: Answers the resolvers that other processes serve.
        announced: Answers those that other processes serve or have served.
        keeps_lifecycle: Whether this process begins, ends and removes requests of all resolvers.
        has_tektons: Whether Tekton's own ConfigMaps count.

    Attributes:
        configuration: What the ConfigMaps say.
        engine: Resolves.
        installed: The resolvers that this process could serve.
    """

    def __init__(
        self,
        resolvers: Iterable[Resolver],
        make_engine: Callable[[Registry], Engine],
        *,
        policies: Callable[[], Iterable[Object]],
        others: Callable[[], frozenset[str]],
        announced: Callable[[], frozenset[str]],
        keeps_lifecycle: bool,
        has_tektons: bool,
    ) -> None:
        self._resolvers = tuple(resolvers)
        self._held_policies = policies
        self._policies: Policies | None = None
        self._known: frozenset[str] = frozenset()
        self._others = others
        self._announced = announced
        self.installed = known_resolver_names() | {resolver.name for resolver in self._resolvers}
        self._keeps_lifecycle = keeps_lifecycle
        self._has_tektons = has_tektons
        self.configuration = read_configuration(self._resolvers, {})
        self.engine = make_engine(self.configuration.registry)

    def configured(self, config_maps: Mapping[str, Object]) -> None:
        """These are the ConfigMaps now."""
        data = {name: obj.get("data") or {} for name, obj in config_maps.items()}
        found = self.configuration = read_configuration(self._resolvers, data, has_tektons=self._has_tektons)
        engine = self.engine
        engine.registry, engine.options, engine.source_map = found.registry, found.options, found.source_map
        if engine.cache.limits != found.cache_limits:
            engine.cache = Cache(found.cache_limits)

    def policies_changed(self) -> None:
        """A policy came, changed or went: they are read again before the next fetch."""
        self._policies = None

    @property
    def rules(self) -> Rules:
        """What the lifecycle of all requests goes by."""
        found = self.configuration
        return Rules(found.options.timeout, self._keeps_lifecycle, found.finished_lifetime)

    def served(self, asked: RequestSpec) -> Served:
        """Who fetches for a request."""
        if asked.mistake is not None:
            return Served.HERE if self._keeps_lifecycle else Served.NOWHERE
        if asked.resolver in self.configuration.registry:
            return Served.HERE
        return Served.ELSEWHERE if asked.resolver in self._others() else Served.NOWHERE

    def label(self, resolver: str) -> str:
        """The label of a resolver in metrics: what a request calls one is no label until there is one."""
        is_known = resolver in self.configuration.registry or resolver in self._others()
        return resolver if is_known else UNKNOWN

    def refusal(self, asked: RequestSpec, namespace: str) -> ResolutionError | None:
        """Why a request fails without anybody being asked; None when that has to be found out."""
        if asked.mistake is not None:
            return asked.mistake
        assert asked.reference is not None, "there is a reference or a mistake"
        try:
            asked.reference.check()
            self.configuration.check()
            self._current_policies().check(asked.resolver, namespace)
            self.engine.check(asked.reference, Requester(namespace, asked.user))
        except ResolutionError as error:
            if error.reason is Reason.RESOLVER_NOT_AVAILABLE and self._keeps_lifecycle:
                return self.nobody(asked)  # says which there are in other processes, too
            return error
        return None

    def nobody(self, asked: RequestSpec) -> ResolutionError:
        """The refusal of a request whose resolver nobody serves, with those that somebody does."""
        return self.configuration.registry.unavailable(asked.resolver, self._others())

    @property
    def known_resolvers(self) -> frozenset[str]:
        """The resolvers that a policy may name: those that are installed here, and those that others announce."""
        return self.installed | self._announced()

    def _current_policies(self) -> Policies:
        known = self.known_resolvers
        if self._policies is None or known != self._known:
            self._known = known
            self._policies = read_policies(self._held_policies(), known)
            self.engine.policies = self._policies.readable
        return self._policies
