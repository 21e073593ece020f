"""YAML from outside, loaded as an API server takes it: what JSON can say, within limits.

That is neither YAML 1.1 nor 1.2: ``y`` is true, ``1e3`` and ``08`` are numbers, ``1.0`` is 1, and ``12:30`` and
``2026-01-31`` are texts. What JSON has no form for (``.nan``, ``!!binary``) is refused.

A field that stands twice in one mapping is refused: which of the two counts differs from one reader to the next, and
who reviews a file may look at the other one.

`konverge.kube.yaml_limits` comes before it: building the nodes of a text that nests deeply ends the process.
"""

from __future__ import annotations

import re
from math import isinf
from typing import Any, ClassVar

import yaml

from konverge.kube.yaml_errors import ObjectYAMLError, TooManyValuesError

__all__ = ["ObjectLoader"]

_TAG = "tag:yaml.org,2002:"
_NOT_OF_JSON = frozenset(f"{_TAG}{name}" for name in ("binary", "omap", "pairs", "set", "timestamp"))

_INT = re.compile(r"([-+]?)(?:(0|[1-9][0-9]*)|0[oO]?([0-7]+)|0[xX]([0-9a-fA-F]+)|0[bB]([01]+))$")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
_ENDLESS = re.compile(r"[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$")
_BOOL = re.compile(r"(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$")

_NUMBERS_BEGIN = frozenset("-+.0123456789")
_TRUTHS_BEGIN = frozenset("yYnNtTfFoO")
_BASES = (10, 8, 16, 2)  # in the order of the groups above
_MAX_DIGITS = 64  # the longest whole number of 64 bits, which is one in binary
_WHOLE = 2.0**63  # what is larger stays a float: as a whole number it would have digits that nobody has written


class ObjectLoader(yaml.CSafeLoader):
    """The safe loader with an API server's types, and with aliases bounded before they are followed."""

    max_depth: ClassVar[int] = 200
    """How many levels a document may nest with its aliases written out; one that contains itself has no end."""
    max_nodes: ClassVar[int] = 2_000_000
    """How many nodes it may have with its aliases written out; keys are nodes too."""
    may_repeat_fields: ClassVar[bool] = False
    """Whether a field may stand twice in one mapping; the last one counts."""

    def construct_document(self, node: yaml.Node) -> Any:
        """The value of a document.

        Raises:
            TooManyValuesError: It has more nodes than it may.
            ObjectYAMLError: A field stands twice.
            yaml.YAMLError: It nests too deeply, or has what the safe loader does not take.
        """
        # Merge keys (``<<``) copy what they name already while the value is made: twelve lines can fill the memory.
        self._count_nodes(node, {}, 0)
        return super().construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping, whose fields have texts as names: ``1: a`` is ``"1": a``.

        Raises:
            ObjectYAMLError: A name has no form as a text.
        """
        if not isinstance(node, yaml.MappingNode):
            raise ObjectYAMLError(problem="it is no value of its type", problem_mark=node.start_mark)
        self.flatten_mapping(node)
        return {self.read_field_name(name): self.construct_object(value, deep=deep) for name, value in node.value}

    def read_field_name(self, node: yaml.Node) -> str:
        """The name of a field.

        Raises:
            ObjectYAMLError: It has no form as a text.
        """
        match self.construct_object(node) if isinstance(node, yaml.ScalarNode) else None:
            case str() as name:
                return name
            case bool() as name:
                return "true" if name else "false"
            case int() | float() as name:
                return str(name)
        raise ObjectYAMLError(problem="the name of a field is no text", problem_mark=node.start_mark)

    def _count_nodes(self, node: yaml.Node, known: dict[int, int], depth: int) -> int:
        """How many nodes it stands for when each alias is written out."""
        if depth > self.max_depth:
            problem = f"it nests deeper than {self.max_depth} levels"
            raise ObjectYAMLError(problem=problem, problem_mark=node.start_mark)
        count = known.get(id(node))
        if count is None:
            if isinstance(node, yaml.MappingNode) and not self.may_repeat_fields:
                self._check_fields(node)
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

    def _check_fields(self, node: yaml.MappingNode) -> None:
        """Refuse a mapping with a field twice, before merge keys put those of others beside its own."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # refused with the mapping's value
            name = key.value if key.tag == f"{_TAG}merge" else self.read_field_name(key)
            if name in seen:
                raise ObjectYAMLError(problem="a field stands twice", problem_mark=key.start_mark)
            seen.add(name)


class _NumberPattern:
    """What is read as a number; a loader takes it for a compiled pattern, of which it calls this method alone."""

    @staticmethod
    def match(text: str) -> bool:
        plain = text.replace("_", "")
        return bool(_INT.match(plain) or _FLOAT.match(plain) or _ENDLESS.match(text))


def _construct_number(loader: ObjectLoader, node: yaml.ScalarNode) -> int | float | str:
    """A number as Go reads it, or the text where it is too large for Go's integers and floats."""
    plain = node.value.replace("_", "")
    whole = _INT.match(plain)
    if whole is not None:
        sign, *groups = whole.groups()
        digits, base = next((found, base) for found, base in zip(groups, _BASES, strict=True) if found is not None)
        if len(digits) <= _MAX_DIGITS:
            found = int(sign + digits, base)
            if -(2**63) <= found < 2**64:
                return found
    if _FLOAT.match(plain):
        value = float(plain)
        if isinf(value):
            return str(node.value)
        return int(value) if value.is_integer() and abs(value) < _WHOLE else value
    if whole is not None:
        return str(node.value)
    problem = "a number has no end" if _ENDLESS.match(node.value) else "it is no value of its type"
    raise ObjectYAMLError(problem=problem, problem_mark=node.start_mark)


def _construct_bool(loader: ObjectLoader, node: yaml.ScalarNode) -> bool:
    if _BOOL.match(node.value) is None:
        raise ObjectYAMLError(problem="it is no value of its type", problem_mark=node.start_mark)
    return node.value[0] in "yYtT" or node.value.lower() == "on"


def _construct_text(loader: ObjectLoader, node: yaml.ScalarNode) -> str:
    """``<<``, where it is no field's name."""
    return str(node.value)


def _list_resolvers(letter: str) -> list[tuple[str, Any]]:
    """What a text that begins with a letter can be, by its tag; the first that fits counts."""
    found: list[tuple[str, Any]] = [
        (tag, pattern)
        for tag, pattern in yaml.CSafeLoader.yaml_implicit_resolvers.get(letter, ())
        if tag in (f"{_TAG}null", f"{_TAG}merge")
    ]
    if letter in _NUMBERS_BEGIN:
        found.append((f"{_TAG}int", _NumberPattern))
    if letter in _TRUTHS_BEGIN:
        found.append((f"{_TAG}bool", _BOOL))
    return found


ObjectLoader.yaml_implicit_resolvers = {
    letter: _list_resolvers(letter) for letter in yaml.CSafeLoader.yaml_implicit_resolvers
}
ObjectLoader.yaml_constructors = {
    tag: constructor for tag, constructor in yaml.CSafeLoader.yaml_constructors.items() if tag not in _NOT_OF_JSON
}
ObjectLoader.add_constructor(f"{_TAG}int", _construct_number)
ObjectLoader.add_constructor(f"{_TAG}float", _construct_number)
ObjectLoader.add_constructor(f"{_TAG}bool", _construct_bool)
ObjectLoader.add_constructor(f"{_TAG}merge", _construct_text)
