"""Loading of YAML from outside, as an API server reads it: the values of JSON, within limits.

The dialect is neither YAML 1.1 nor 1.2: ``y`` is true, ``1e3`` and ``08`` are numbers, ``1.0`` is 1, and ``12:30`` and
``2026-01-31`` are texts. A value without a form in JSON (``.nan``, ``!!binary``) is rejected. So is a duplicate field
in a mapping: readers differ in which of the two counts, and a reviewer may look at the other one.

The depth is checked before anything is loaded. libyaml builds nodes by recursion in C: a hundred thousand opening
brackets end the process, and no exception can be caught. Its event parser, which `check_yaml_depth` uses, does not
recurse.

The module imports PyYAML, which is 3 MB. A program in a Pod reads no YAML, so its modules import this one on demand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isinf
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

if TYPE_CHECKING:
    from yaml import SafeLoader as FastLoader
else:
    # The C loader where there is one; without libyaml only the speed differs.
    FastLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

__all__ = [
    "FastLoader",
    "ObjectLoader",
    "ObjectYAMLError",
    "TooManyValuesError",
    "YamlLimits",
    "check_yaml_depth",
    "load_yaml",
    "load_yaml_documents",
]

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
_WHOLE = 2.0**63  # a larger number stays a float: as a whole number it would have digits that the text does not have


class ObjectYAMLError(yaml.MarkedYAMLError):
    """Valid YAML that is rejected. Messages may contain its problem: it quotes no content, unlike libyaml's."""


class TooManyValuesError(ObjectYAMLError):
    """The aliases of a document stand for more values than the limit."""


@dataclass(frozen=True, slots=True)
class YamlLimits:
    """Limits of one read.

    Args:
        max_depth: Levels that a document may nest with its aliases written out; a document that contains itself has
            infinitely many.
        max_nodes: Nodes that a document may have with its aliases written out; keys are nodes too.
        max_written_nodes: Nodes and documents in the whole text as it is written; None for no limit. This limit is
            checked before loading, since loading half a million nodes takes seconds.
        may_repeat_fields: Accept a duplicate field in a mapping; the last one counts.
    """

    max_depth: int = 200
    max_nodes: int = 2_000_000
    max_written_nodes: int | None = None
    may_repeat_fields: bool = False


_DEFAULT_LIMITS = YamlLimits()
_MAX_WRITTEN_DEPTH = 500  # deeper than any object or configuration, and far below the depth that kills the process


def load_yaml(text: str | bytes, limits: YamlLimits = _DEFAULT_LIMITS) -> Any:
    """Load the only document of a text; None if the text is empty.

    Args:
        text: YAML or JSON; bytes are UTF-8, or UTF-16 with a byte order mark.
        limits: Limits that the text must keep.

    Raises:
        yaml.YAMLError: The text is not YAML, has several documents, or exceeds a limit.
    """
    documents = load_yaml_documents(text, limits)
    document = next(documents, None)
    for _ in documents:
        raise ObjectYAMLError(problem="expected a single document, found several")
    return document


def load_yaml_documents(text: str | bytes, limits: YamlLimits = _DEFAULT_LIMITS) -> Iterator[Any]:
    """Load the documents of a text one after the other; an empty document is None.

    Args:
        text: YAML or JSON; bytes are UTF-8, or UTF-16 with a byte order mark.
        limits: Limits that the text must keep.

    Raises:
        yaml.YAMLError: The text is not YAML or exceeds a limit.
    """
    check_yaml_depth(text, max_nodes=limits.max_written_nodes)
    try:
        loader = ObjectLoader(text, limits)
        try:
            while (node := loader.get_next_node()) is not None:
                yield loader.construct_document(node)
        finally:
            loader.dispose()
    except (UnicodeDecodeError, RecursionError) as error:
        _raise_yaml_error(error)


def check_yaml_depth(text: str | bytes, *, max_depth: int = _MAX_WRITTEN_DEPTH, max_nodes: int | None = None) -> None:
    """Check how deep a text nests and how many nodes it has, without building nodes.

    Args:
        text: One or several documents.
        max_depth: Levels that a document may nest as it is written.
        max_nodes: Nodes and documents that the whole text may have as it is written; None for no limit.

    Raises:
        yaml.YAMLError: The text exceeds a limit or is not YAML.
    """
    depth = nodes = 0
    try:
        for event in yaml.parse(text, Loader=FastLoader):
            if max_nodes is not None and isinstance(event, yaml.NodeEvent | yaml.DocumentStartEvent):
                nodes += 1
                if nodes > max_nodes:
                    raise ObjectYAMLError(
                        problem=f"it has more than {max_nodes:,} values", problem_mark=_get_start(event)
                    )
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > max_depth:
                    problem = f"it nests deeper than {max_depth} levels"
                    raise ObjectYAMLError(problem=problem, problem_mark=_get_start(event))
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except UnicodeDecodeError as error:
        _raise_yaml_error(error)


def _get_start(event: yaml.Event) -> Any:
    return event.start_mark


def _raise_yaml_error(error: UnicodeDecodeError | RecursionError) -> NoReturn:
    """Raise an error of the loader as the one error class that callers expect."""
    problem = "it nests too deeply" if isinstance(error, RecursionError) else f"it is not UTF-8: {error.reason}"
    raise ObjectYAMLError(problem=problem) from None


class ObjectLoader(FastLoader):
    """The safe loader with an API server's types, and with aliases bounded before they are followed."""

    def __init__(self, stream: str | bytes, limits: YamlLimits = _DEFAULT_LIMITS) -> None:
        super().__init__(stream)
        self._limits = limits

    def get_next_node(self) -> yaml.Node | None:
        """Compose the next document; None at the end of the text."""
        return self.get_node() if self.check_node() else None

    def construct_document(self, node: yaml.Node) -> Any:
        """Construct the value of a document.

        Raises:
            TooManyValuesError: The document has too many nodes.
            ObjectYAMLError: A mapping has a duplicate field.
            yaml.YAMLError: The document nests too deeply, or the safe loader rejects it.
        """
        # Merge keys (``<<``) copy their targets while the value is constructed: twelve lines can fill the memory.
        self._count_nodes(node, {}, 0)
        return super().construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping with texts as field names: ``1: a`` becomes ``"1": a``.

        Raises:
            ObjectYAMLError: A name cannot be converted to a text.
        """
        if not isinstance(node, yaml.MappingNode):
            raise ObjectYAMLError(problem="it is not a valid value of its type", problem_mark=node.start_mark)
        self.flatten_mapping(node)
        return {self.read_field_name(name): self.construct_object(value, deep=deep) for name, value in node.value}

    def read_field_name(self, node: yaml.Node) -> str:
        """Return the name of a field as a text.

        Raises:
            ObjectYAMLError: The name cannot be converted to a text.
        """
        match self.construct_object(node) if isinstance(node, yaml.ScalarNode) else None:
            case str() as name:
                return name
            case bool() as name:
                return "true" if name else "false"
            case int() | float() as name:
                return str(name)
        raise ObjectYAMLError(problem="the name of a field is not a text", problem_mark=node.start_mark)

    def _count_nodes(self, node: yaml.Node, counts: dict[int, int], depth: int) -> int:
        """Count the nodes below and including this one, with each alias written out."""
        if depth > self._limits.max_depth:
            problem = f"it nests deeper than {self._limits.max_depth} levels"
            raise ObjectYAMLError(problem=problem, problem_mark=node.start_mark)
        count = counts.get(id(node))
        if count is None:
            if isinstance(node, yaml.MappingNode) and not self._limits.may_repeat_fields:
                self._check_fields(node)
            below = node.value if isinstance(node, yaml.CollectionNode) else []
            parts = [part for entry in below for part in (entry if isinstance(entry, tuple) else (entry,))]
            count = 1
            for part in parts:
                count += self._count_nodes(part, counts, depth + 1)
            if count > self._limits.max_nodes:
                problem = f"with its aliases written out it has more than {self._limits.max_nodes:,} values"
                raise TooManyValuesError(problem=problem, problem_mark=node.start_mark)
            counts[id(node)] = count
        return count

    def _check_fields(self, node: yaml.MappingNode) -> None:
        """Reject a mapping with a duplicate field, before merge keys add fields of other mappings."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # rejected with the mapping's value
            name = key.value if key.tag == f"{_TAG}merge" else self.read_field_name(key)
            if name in seen:
                raise ObjectYAMLError(problem="duplicate field", problem_mark=key.start_mark)
            seen.add(name)


class _NumberPattern:
    """A matcher for numbers; the loader accepts it as a compiled pattern because it calls only ``match``."""

    @staticmethod
    def match(text: str) -> bool:
        plain = text.replace("_", "")
        return bool(_INT.match(plain) or _FLOAT.match(plain) or _ENDLESS.match(text))


def _construct_number(loader: ObjectLoader, node: yaml.ScalarNode) -> int | float | str:
    """Construct a number as Go parses it, or a text if the number is too large for Go's integers and floats."""
    plain = node.value.replace("_", "")
    whole = _INT.match(plain)
    if whole is not None:
        sign, *groups = whole.groups()
        digits, base = next((group, base) for group, base in zip(groups, _BASES, strict=True) if group is not None)
        if len(digits) <= _MAX_DIGITS:
            number = int(sign + digits, base)
            if -(2**63) <= number < 2**64:
                return number
    if _FLOAT.match(plain):
        value = float(plain)
        if isinf(value):
            return str(node.value)
        return int(value) if value.is_integer() and abs(value) < _WHOLE else value
    if whole is not None:
        return str(node.value)
    problem = "expected a finite number" if _ENDLESS.match(node.value) else "it is not a valid value of its type"
    raise ObjectYAMLError(problem=problem, problem_mark=node.start_mark)


def _construct_bool(loader: ObjectLoader, node: yaml.ScalarNode) -> bool:
    if _BOOL.match(node.value) is None:
        raise ObjectYAMLError(problem="it is not a valid value of its type", problem_mark=node.start_mark)
    return node.value[0] in "yYtT" or node.value.lower() == "on"


def _construct_text(loader: ObjectLoader, node: yaml.ScalarNode) -> str:
    """Construct ``<<`` as a text where it is not the name of a field."""
    return str(node.value)


def _list_resolvers(letter: str) -> list[tuple[str, Any]]:
    """List the tags, with their patterns, of a text that begins with a letter; the first that matches counts."""
    resolvers: list[tuple[str, Any]] = [
        (tag, pattern)
        for tag, pattern in FastLoader.yaml_implicit_resolvers.get(letter, ())
        if tag in (f"{_TAG}null", f"{_TAG}merge")
    ]
    if letter in _NUMBERS_BEGIN:
        resolvers.append((f"{_TAG}int", _NumberPattern))
    if letter in _TRUTHS_BEGIN:
        resolvers.append((f"{_TAG}bool", _BOOL))
    return resolvers


ObjectLoader.yaml_implicit_resolvers = {
    letter: _list_resolvers(letter) for letter in FastLoader.yaml_implicit_resolvers
}
ObjectLoader.yaml_constructors = {
    tag: constructor for tag, constructor in FastLoader.yaml_constructors.items() if tag not in _NOT_OF_JSON
}
ObjectLoader.add_constructor(f"{_TAG}int", _construct_number)
ObjectLoader.add_constructor(f"{_TAG}float", _construct_number)
ObjectLoader.add_constructor(f"{_TAG}bool", _construct_bool)
ObjectLoader.add_constructor(f"{_TAG}merge", _construct_text)
