"""YAML from outside: how deep it may nest, decided before it is loaded.

libyaml builds what it reads by recursion in C: a hundred thousand opening brackets end the process, and no exception
can be caught. Its parser alone, which is asked here, does not recurse.
"""

from __future__ import annotations

from typing import Any

__all__ = ["MAX_YAML_DEPTH", "check_yaml_depth"]

MAX_YAML_DEPTH = 500
"""Deeper than any object or configuration, and far from what ends a process."""


def check_yaml_depth(text: str | bytes, *, max_nodes: int | None = None) -> None:
    """Look at how deep a text nests; call it before any ``yaml.load`` of what somebody else has written.

    Args:
        text: One or several documents.
        max_nodes: How many nodes and documents it may have in all, as they are written; None for any number.

    Raises:
        yaml.YAMLError: It nests deeper than `MAX_YAML_DEPTH`, has more nodes, or is no YAML; as loading itself raises
            it.
    """
    # Not at the top: a program in a Pod reads none.
    import yaml

    from konverge.kube.yaml_errors import ObjectYAMLError

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = nodes = 0
    for event in yaml.parse(text, Loader=loader):
        if max_nodes is not None and isinstance(event, yaml.NodeEvent | yaml.DocumentStartEvent):
            # Here, and not when it is loaded: to load half a million takes seconds.
            nodes += 1
            if nodes > max_nodes:
                at: Any = event.start_mark
                raise ObjectYAMLError(problem=f"it has more than {max_nodes} values", problem_mark=at)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_YAML_DEPTH:
                mark: Any = event.start_mark
                problem = f"it nests deeper than {MAX_YAML_DEPTH} levels"
                raise ObjectYAMLError(problem=problem, problem_mark=mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
