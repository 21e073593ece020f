"""Table of konverge's own resolvers; each is imported on first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from konverge.errors import ConfigurationError
from konverge_resolution._internal.resolver import Resolver
from konverge_resolution._internal.resolver_registry import ENTRY_POINTS, discover_resolvers

__all__ = ["DISK", "STANDARD", "load_resolvers"]

DISK = "disk"
"""Name of the resolver for a local directory, which only a user's own program has: never loaded, never in a cluster."""

STANDARD: Mapping[str, tuple[str, str]] = {
    "bundles": ("konverge_resolution._internal.resolvers.bundles", "BundlesResolver"),
    "cluster": ("konverge_resolution._internal.resolvers.cluster", "ClusterResolver"),
    "git": ("konverge_resolution._internal.resolvers.git", "GitResolver"),
    "http": ("konverge_resolution._internal.resolvers.http", "HttpResolver"),
    "hub": ("konverge_resolution._internal.resolvers.hub", "HubResolver"),
}
"""By name of the resolver, its module and class.

The package's entry points repeat this table for programs that discover all resolvers. The table also works in a
checkout with outdated metadata.
"""


def load_resolvers(names: Iterable[str] | None = None) -> list[Resolver]:
    """Load konverge's own resolvers, and those that installed packages declare.

    Args:
        names: Load only these; packages with other names are not imported.

    Raises:
        konverge.errors.ConfigurationError: A declared resolver cannot be loaded, or its name is already used.
    """
    wanted = None if names is None else frozenset(names)
    resolvers: dict[str, Resolver] = {}
    for name, (module, attribute) in STANDARD.items():
        if wanted is None or name in wanted:
            resolver_class: Any = getattr(import_module(module), attribute)
            resolvers[name] = resolver_class()
    if wanted is not None and wanted <= resolvers.keys():
        return list(resolvers.values())
    for resolver in discover_resolvers(_list_entry_points):
        if resolver.name in STANDARD or resolver.name == DISK:
            raise ConfigurationError(
                f"resolver {resolver.name!r}: konverge has a resolver of that name; choose another name"
            )
        if wanted is None or resolver.name in wanted:
            resolvers[resolver.name] = resolver
    return list(resolvers.values())


def list_resolver_names() -> frozenset[str]:
    """Return the names of konverge's own resolvers, and of those that installed packages declare."""
    return frozenset(STANDARD) | {entry_point.name for entry_point in _list_entry_points()}


def _list_entry_points() -> list[EntryPoint]:
    own = {f"{module}:{attribute}" for module, attribute in STANDARD.values()}
    return [entry_point for entry_point in entry_points(group=ENTRY_POINTS) if entry_point.value not in own]
