"""Detection of dependency cycles between custom resources, calls and observations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

__all__ = ["find_cycle"]


def find_cycle(edges: Mapping[str, Iterable[str]]) -> Sequence[str]:
    """Return one cycle, with its first node repeated at the end; empty if there is none.

    Args:
        edges: The dependencies of each node; dependencies that are not nodes themselves are ignored.
    """
    done: set[str] = set()
    for start in edges:
        path: list[str] = []
        # Each node of the current path with its dependencies that are not visited yet.
        open_steps = [(start, iter(edges[start]))]
        while open_steps:
            node, rest = open_steps[-1]
            if len(path) < len(open_steps):
                path.append(node)
            following = next((each for each in rest if each in edges and each not in done), None)
            if following is None:
                done.add(node)
                path.pop()
                open_steps.pop()
            elif following in path:
                return [*path[path.index(following) :], following]
            else:
                open_steps.append((following, iter(edges[following])))
    return ()
