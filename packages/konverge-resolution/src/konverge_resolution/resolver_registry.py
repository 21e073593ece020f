"""Which resolvers there are, of entry points or given; which are switched off, and how each is set up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points

from konverge.errors import ConfigurationError, format_error
from konverge.suggestions import did_you_mean
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Parameters
from konverge_resolution.resolver import Resolver
from konverge_resolution.resolver_settings import CONFIG_KEY, ResolverSettings, parse_settings

__all__ = ["ENTRY_POINTS", "InstalledResolver", "ResolverRegistry", "discover_resolvers", "list_resolvers"]

ENTRY_POINTS = "konverge.resolvers"
"""The group of entry points; each names a class that is called without arguments."""


@dataclass(frozen=True, slots=True)
class InstalledResolver:
    """One resolver, as it is set up here.

    Args:
        resolver: The resolver.
        settings: Its settings.
        is_enabled: Whether it may be used.
        errors: What is wrong with its configuration; with any, every request to it fails and says so.
    """

    resolver: Resolver
    settings: ResolverSettings = field(default_factory=ResolverSettings)
    is_enabled: bool = True
    errors: tuple[str, ...] = ()

    def select_settings(self, params: Parameters) -> Mapping[str, str]:
        """Return the settings that the parameter ``configKey`` selects; the default ones where it is absent or no text.

        Raises:
            ResolutionError: ``InvalidParams``: there is no such configuration.
        """
        config_key = params.get(CONFIG_KEY, "")
        return self.settings.select(config_key if isinstance(config_key, str) else "")


class ResolverRegistry:
    """The resolvers of a process, by name. It is replaced as a whole when a configuration changes.

    Args:
        installed: The resolvers.
    """

    def __init__(self, installed: Iterable[InstalledResolver] = ()) -> None:
        self._installed = {each.resolver.name: each for each in installed}

    @classmethod
    def of(
        cls,
        resolvers: Iterable[Resolver],
        configurations: Mapping[str, Mapping[str, str]] | None = None,
        *,
        disabled: Iterable[str] = (),
    ) -> ResolverRegistry:
        """One of resolvers and the data of their ConfigMaps.

        Args:
            resolvers: The resolvers.
            configurations: By name of the resolver; the defaults where there is none.
            disabled: Names that are switched off.
        """
        off = frozenset(disabled)
        found = []
        for resolver in resolvers:
            settings, mistakes = parse_settings((configurations or {}).get(resolver.name, {}), resolver.settings)
            found.append(InstalledResolver(resolver, settings, resolver.name not in off, mistakes))
        return cls(found)

    @property
    def names(self) -> tuple[str, ...]:
        """The resolvers that may be used, sorted."""
        return tuple(sorted(name for name, each in self._installed.items() if each.is_enabled))

    def __iter__(self) -> Iterator[InstalledResolver]:
        return iter(self._installed.values())

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a resolver of that name, which may be switched off."""
        return name in self._installed

    def build_unavailable_error(self, name: str, elsewhere: Iterable[str] = ()) -> ResolutionError:
        """The refusal of a resolver that may not be used: ``ResolverNotAvailable``.

        Args:
            name: What was asked for.
            elsewhere: The resolvers that there are besides.
        """
        why = "is switched off" if name in self else "does not exist here"
        message = f"resolver {name[:80]!r} {why}; {list_resolvers(name, {*self.names, *elsewhere})}"
        return ResolutionError(Reason.RESOLVER_NOT_AVAILABLE, message)

    def get(self, name: str) -> InstalledResolver:
        """The resolver of that name, ready to be used.

        Raises:
            ResolutionError: ``ResolverNotAvailable``: there is none, or it is switched off; ``InvalidConfiguration``:
                its configuration has mistakes.
        """
        found = self._installed.get(name)
        if found is None or not found.is_enabled:
            raise self.build_unavailable_error(name)
        if found.errors:
            message = f"resolver {name!r} is not set up correctly: {'; '.join(found.errors[:3])}"
            raise ResolutionError(Reason.INVALID_CONFIGURATION, message)
        return found


def list_resolvers(name: str, known: Iterable[str]) -> str:
    """The resolvers that there are, and the one that may be meant, for whoever asks for one that is not there.

    Args:
        name: What was asked for.
        known: The resolvers.
    """
    names = sorted(known)
    return f"there are: {', '.join(names) or 'none'}{did_you_mean(name, names)}"


def discover_resolvers(
    find: Callable[[], Iterable[EntryPoint]] = lambda: entry_points(group=ENTRY_POINTS),
) -> list[Resolver]:
    """The resolvers that installed packages declare, sorted by name.

    Args:
        find: Where the entry points come from.

    Raises:
        konverge.errors.ConfigurationError: One cannot be loaded, or is no resolver, or two have one name.
    """
    found: dict[str, Resolver] = {}
    for each in sorted(find(), key=lambda each: each.name):
        try:
            resolver = each.load()()
        except Exception as error:  # a package's own code, and the error goes on as one of ours
            raise ConfigurationError(f"resolver {each.name!r} ({each.value}): {format_error(error)}") from error
        name = getattr(resolver, "name", None)
        if not isinstance(name, str) or not callable(getattr(resolver, "resolve", None)):
            raise ConfigurationError(f"resolver {each.name!r} ({each.value}): expected a class with name and resolve")
        if name in found:
            raise ConfigurationError(f"resolver {name!r} is declared twice, the second time by {each.value}")
        found[name] = resolver
    return list(found.values())
