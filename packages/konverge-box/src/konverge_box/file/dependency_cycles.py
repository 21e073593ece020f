"""Circles: of custom resources that wait for or observe each other, of calls and observations that read each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

__all__ = ["find_cycle"]


def find_cycle(edges: Mapping[str, Iterable[str]]) -> Sequence[str]:
    """One way from a node back to itself, its first node also at its end; empty where there is none.

    Args:
        edges: To each node those that it needs; one that is no node itself is left out.
    """
    done: set[str] = set()
    for start in edges:
        way: list[str] = []
        # Each step of the way with what is still to be looked at from there.
        open_steps = [(start, iter(edges[start]))]
        while open_steps:
            node, rest = open_steps[-1]
            if len(way) < len(open_steps):
                way.append(node)
            following = next((each for each in rest if each in edges and each not in done), None)
            if following is None:
                done.add(node)
                way.pop()
                open_steps.pop()
            elif following in way:
                return [*way[way.index(following) :], following]
            else:
                open_steps.append((following, iter(edges[following])))
    return ()
