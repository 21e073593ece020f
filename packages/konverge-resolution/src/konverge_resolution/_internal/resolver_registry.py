"""Registry of resolvers: from entry points or given, enabled or disabled, with their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points

from konverge._internal.suggestions import did_you_mean
from konverge.errors import ConfigurationError, format_error
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Parameters
from konverge_resolution._internal.resolver import Resolver
from konverge_resolution._internal.resolver_settings import CONFIG_KEY, ResolverSettings, parse_settings

__all__ = ["ENTRY_POINTS", "InstalledResolver", "ResolverRegistry", "discover_resolvers", "list_resolvers"]

ENTRY_POINTS = "konverge.resolvers"
"""Group of entry points; each names a class that is called without arguments."""


@dataclass(frozen=True, slots=True)
class InstalledResolver:
    """One resolver with its configuration.

    Args:
        resolver: The resolver.
        settings: The settings of the resolver.
        is_enabled: Whether it may be used.
        errors: Errors of its configuration; with any, every request to it fails with them.
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
    """Resolvers of a process by name. A change of the configuration replaces the whole registry.

    Args:
        installed: The resolvers.
    """

    def __init__(self, installed: Iterable[InstalledResolver] = ()) -> None:
        self._installed = {entry.resolver.name: entry for entry in installed}

    @classmethod
    def of(
        cls,
        resolvers: Iterable[Resolver],
        configurations: Mapping[str, Mapping[str, str]] | None = None,
        *,
        disabled: Iterable[str] = (),
    ) -> ResolverRegistry:
        """Build a registry from resolvers and the data of their ConfigMaps.

        Args:
            resolvers: The resolvers.
            configurations: The data by resolver name; the defaults apply without any.
            disabled: The names of disabled resolvers.
        """
        off = frozenset(disabled)
        installed = []
        for resolver in resolvers:
            settings, mistakes = parse_settings((configurations or {}).get(resolver.name, {}), resolver.settings)
            installed.append(InstalledResolver(resolver, settings, resolver.name not in off, mistakes))
        return cls(installed)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of enabled resolvers, sorted."""
        return tuple(sorted(name for name, entry in self._installed.items() if entry.is_enabled))

    def __iter__(self) -> Iterator[InstalledResolver]:
        return iter(self._installed.values())

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a resolver of that name, enabled or disabled."""
        return name in self._installed

    def build_unavailable_error(self, name: str, elsewhere: Iterable[str] = ()) -> ResolutionError:
        """Return the error for a resolver that is missing or disabled: ``ResolverNotAvailable``.

        Args:
            name: The requested resolver.
            elsewhere: Resolvers of other processes.
        """
        why = "is disabled" if name in self else "is not installed"
        message = f"resolver {name[:80]!r} {why}; {list_resolvers(name, {*self.names, *elsewhere})}"
        return ResolutionError(Reason.RESOLVER_NOT_AVAILABLE, message)

    def get(self, name: str) -> InstalledResolver:
        """Return the resolver of that name, ready for use.

        Raises:
            ResolutionError: ``ResolverNotAvailable``: it is missing or disabled; ``InvalidConfiguration``: its
                configuration has errors.
        """
        installed = self._installed.get(name)
        if installed is None or not installed.is_enabled:
            raise self.build_unavailable_error(name)
        if installed.errors:
            message = f"resolver {name!r}: invalid configuration: {'; '.join(installed.errors[:3])}"
            raise ResolutionError(Reason.INVALID_CONFIGURATION, message)
        return installed


def list_resolvers(name: str, known: Iterable[str]) -> str:
    """List the resolvers with the closest match, for an error about a missing one.

    Args:
        name: The requested resolver.
        known: The existing resolvers.
    """
    names = sorted(known)
    return f"available: {', '.join(names) or 'none'}{did_you_mean(name, names)}"


def discover_resolvers(
    find: Callable[[], Iterable[EntryPoint]] = lambda: entry_points(group=ENTRY_POINTS),
) -> list[Resolver]:
    """Return the resolvers that installed packages declare, sorted by name.

    Args:
        find: Returns the entry points.

    Raises:
        konverge.errors.ConfigurationError: A resolver cannot be loaded, an entry point is not a resolver, or two have
            the same name.
    """
    resolvers: dict[str, Resolver] = {}
    for entry_point in sorted(find(), key=lambda entry_point: entry_point.name):
        where = f"resolver {entry_point.name!r} ({entry_point.value})"
        try:
            resolver = entry_point.load()()
        except Exception as error:  # third-party code can raise anything
            raise ConfigurationError(f"{where}: {format_error(error)}") from error
        name = getattr(resolver, "name", None)
        if not isinstance(name, str) or not callable(getattr(resolver, "resolve", None)):
            raise ConfigurationError(f"{where}: expected a class with name and resolve")
        if name in resolvers:
            raise ConfigurationError(f"resolver {name!r} is declared twice, the second time by {entry_point.value}")
        resolvers[name] = resolver
    return list(resolvers.values())
