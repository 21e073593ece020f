"""Container selectors: predicates for the containers of an edit.

A selector is any function of a container's index and the container. All selectors of a mutation are evaluated before
its first container edit, so an edit that renames a container does not change the matches of the others.
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
    """Select every container, whatever its name."""
    return lambda _index, _container: True


def container_named(name: str) -> ContainerSelector:
    """Select the container of this name."""
    return containers_named(name)


def containers_named(*names: str) -> ContainerSelector:
    """Select the containers of these names."""
    return lambda _index, container: container.get("name") in names


def container_not_named(name: str) -> ContainerSelector:
    """Select every container except the one of this name."""
    return containers_not_named(name)


def containers_not_named(*names: str) -> ContainerSelector:
    """Select every container except those of these names."""
    return lambda _index, container: container.get("name") not in names


def container_at_index(index: int) -> ContainerSelector:
    """Select the container at this index, counted from 0."""
    return lambda position, _container: position == index
