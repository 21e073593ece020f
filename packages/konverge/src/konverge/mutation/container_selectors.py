"""Container selectors: which containers an edit is for.

A selector is any function of a container's index and the container. All selectors of a mutation are asked before its
first container edit runs, so an edit that renames a container does not change what the others match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = [
    "ContainerSelector",
    "all_containers",
    "container_at_index",
    "container_named",
    "container_not_named",
    "containers_named",
    "containers_not_named",
]

ContainerSelector: TypeAlias = Callable[[int, Mapping[str, Any]], bool]


def all_containers() -> ContainerSelector:
    """Every container."""
    return lambda _index, _container: True


def container_named(name: str) -> ContainerSelector:
    """The container of that name."""
    return containers_named(name)


def containers_named(*names: str) -> ContainerSelector:
    """The containers of these names."""
    return lambda _index, container: container.get("name") in names


def container_not_named(name: str) -> ContainerSelector:
    """Every container but the one of that name."""
    return containers_not_named(name)


def containers_not_named(*names: str) -> ContainerSelector:
    """Every container but those of these names."""
    return lambda _index, container: container.get("name") not in names


def container_at_index(index: int) -> ContainerSelector:
    """The container at that place, counted from 0."""
    return lambda found, _container: found == index
