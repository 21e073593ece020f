"""YAML from outside, loaded as an API server takes it: what JSON can say, within limits.

`konverge.kube.yaml_depth` comes before it: building the nodes of a text that nests deeply ends the process.
"""

from __future__ import annotations

from typing import Any, ClassVar

import yaml

__all__ = ["ObjectLoader", "TooManyValuesError"]

# A date is a text to an API server. So is the equals sign, of which the safe loader makes nothing.
_ONLY_YAML = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")


class TooManyValuesError(yaml.MarkedYAMLError):
    """A document's aliases stand for more values than are allowed."""


class ObjectLoader(yaml.CSafeLoader):
    """The safe loader, with what only YAML has left as it is written, and aliases bounded before they are followed."""

    max_depth: ClassVar[int] = 200
    """How many levels a document may nest with its aliases written out; one that contains itself has no end."""
    max_nodes: ClassVar[int] = 2_000_000
    """How many nodes it may have with its aliases written out; keys are nodes too."""

    def construct_document(self, node: yaml.Node) -> Any:
        """The value of a document.

        Raises:
            TooManyValuesError: It has more nodes than it may.
            yaml.YAMLError: It nests too deeply, or has what the safe loader does not take.
        """
        # Merge keys (``<<``) copy what they name already while the value is made: twelve lines can fill the memory.
        self._count_nodes(node, {}, 0)
        return super().construct_document(node)

    def _count_nodes(self, node: yaml.Node, known: dict[int, int], depth: int) -> int:
        """How many nodes it stands for when each alias is written out."""
        if depth > self.max_depth:
            problem = f"it nests deeper than {self.max_depth} levels"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        count = known.get(id(node))
        if count is None:
            below = node.value if isinstance(node, yaml.CollectionNode) else []
            parts = [part for entry in below for part in (entry if isinstance(entry, tuple) else (entry,))]
            count = 1
            for part in parts:
                count += self._count_nodes(part, known, depth + 1)
            if count > self.max_nodes:
                problem = f"with its aliases written out it has more than {self.max_nodes} values"
                raise TooManyValuesError(problem=problem, problem_mark=node.start_mark)
            known[id(node)] = count
        return count


ObjectLoader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag not in _ONLY_YAML]
    for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
