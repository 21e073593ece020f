"""The resolvers that konverge brings, one module or package each; none is imported before it is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from konverge.errors import ConfigurationError
from konverge_resolution.resolver import Resolver
from konverge_resolution.resolver_registry import ENTRY_POINTS, discover_resolvers

__all__ = ["STANDARD", "load_resolvers"]

STANDARD: Mapping[str, tuple[str, str]] = {
    "bundles": ("konverge_resolution.resolvers.bundles", "BundlesResolver"),
    "cluster": ("konverge_resolution.resolvers.cluster", "ClusterResolver"),
    "git": ("konverge_resolution.resolvers.git", "GitResolver"),
    "http": ("konverge_resolution.resolvers.http", "HttpResolver"),
    "hub": ("konverge_resolution.resolvers.hub", "HubResolver"),
}
"""By name of the resolver, its module and class.

The entry points of the package say the same, for whoever looks for all resolvers there are; that a checkout whose
metadata is older works all the same is why they are here.
"""


def load_resolvers(names: Iterable[str] | None = None) -> list[Resolver]:
    """The resolvers that konverge brings, and those that installed packages declare.

    Args:
        names: Only these; a package of another name is not imported then.

    Raises:
        konverge.errors.ConfigurationError: One that a package declares cannot be loaded, or has a name that is taken.
    """
    wanted = None if names is None else frozenset(names)
    found: dict[str, Resolver] = {}
    for name, (module, attribute) in STANDARD.items():
        if wanted is None or name in wanted:
            made: Any = getattr(import_module(module), attribute)
            found[name] = made()
    if wanted is not None and wanted <= found.keys():
        return list(found.values())
    for resolver in discover_resolvers(_list_entry_points):
        if resolver.name in STANDARD:
            raise ConfigurationError(f"resolver {resolver.name!r}: konverge brings one of that name; give it another")
        if wanted is None or resolver.name in wanted:
            found[resolver.name] = resolver
    return list(found.values())


def list_resolver_names() -> frozenset[str]:
    """The names of the resolvers that konverge brings, and of those that installed packages declare."""
    return frozenset(STANDARD) | {each.name for each in _list_entry_points()}


def _list_entry_points() -> list[EntryPoint]:
    own = {f"{module}:{attribute}" for module, attribute in STANDARD.values()}
    return [each for each in entry_points(group=ENTRY_POINTS) if each.value not in own]
