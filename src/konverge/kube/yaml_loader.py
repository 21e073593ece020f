"""YAML from outside, loaded as an API server takes it: what JSON can say, within limits.

`konverge.kube.yaml_depth` comes before it: building the nodes of a text that nests deeply ends the process.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml
from yaml.constructor import SafeConstructor

__all__ = ["ObjectLoader", "TooManyValuesError"]

# A date is a text to an API server. So is the equals sign, of which the safe loader makes nothing.
_ONLY_YAML = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")

# The safe loader's patterns without numbers to the base of sixty: ``12:30`` is a text to an API server, and a megabyte
# of ``1:1:1`` would take a minute to become a number.
_WRITTEN = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}


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


def _int(loader: ObjectLoader, node: yaml.ScalarNode) -> int:
    found: int = _scalar(loader, node, SafeConstructor.construct_yaml_int)
    return found


def _float(loader: ObjectLoader, node: yaml.ScalarNode) -> float:
    found: float = _scalar(loader, node, SafeConstructor.construct_yaml_float)
    return found


def _bool(loader: ObjectLoader, node: yaml.ScalarNode) -> bool:
    found: bool = _scalar(loader, node, SafeConstructor.construct_yaml_bool)
    return found


def _scalar(loader: ObjectLoader, node: yaml.ScalarNode, construct: Any) -> Any:
    """A value by the safe loader, which raises anything for a text that its tag does not fit (``!!bool x``)."""
    try:
        if ":" not in node.value:
            return construct(loader, node)
    except (ValueError, KeyError, IndexError):
        pass
    raise yaml.MarkedYAMLError(problem="it is no value of its type", problem_mark=node.start_mark)


ObjectLoader.yaml_implicit_resolvers = {
    letter: [(tag, _WRITTEN.get(tag, pattern)) for tag, pattern in resolvers if tag not in _ONLY_YAML]
    for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
for _type, _construct in (("int", _int), ("float", _float), ("bool", _bool)):
    ObjectLoader.add_constructor(f"tag:yaml.org,2002:{_type}", _construct)
