"""YAML as a box file has it: plain values with their positions, bounded before anything is built from them.

The scalars are those of YAML 1.2, which are JSON's: ``yes``, ``on``, ``12:30`` and dates are texts. A number with a
leading zero is refused, since it is eight times as large to some readers as to others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from konverge.kube.yaml_loader import FastLoader, check_yaml_depth
from konverge_box.file.validation_errors import BoxFieldError, Path, format_path, shorten_text

__all__ = ["MAX_BYTES", "YamlSource", "parse_source"]

MAX_BYTES = 1024 * 1024
"""The longest file; a cluster takes hardly more as one object."""

_MAX_DEPTH = 64
_MAX_VALUES = 100_000
_TOO_MANY = f"has more than {_MAX_VALUES:,} values"
_MAX_TEXT = 256 * 1024
_MAX_NAME = 1_024
_MAX_MISTAKES = 1_000
_MAX_INTEGER = 2**63


@dataclass
class YamlSource:
    """One document of a file, and the mistakes that have been found in it so far.

    Args:
        file: The file's name, for messages.
        value: The document as JSON has it; None when it could not be read.
        positions: Line and column of each value, from 1; of a mapping's value those of its key.
        errors: What is wrong, in the order of finding.
        origins: By path, the other file that a value comes from (`konverge_box.file.imported_box`).
    """

    file: str
    value: Any = None
    positions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    errors: list[BoxFieldError] = field(default_factory=list)
    origins: dict[Path, str] = field(default_factory=dict)

    def find_file(self, path: Path) -> str:
        """The file that has the value at a path."""
        for length in range(len(path), 0, -1) if self.origins else ():
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return self.file

    def add_error(self, path: Path, message: str) -> None:
        """Note a mistake at a value; one that is absent gets the position of the nearest value above."""
        if len(self.errors) >= _MAX_MISTAKES:
            return
        at = path
        while at and at not in self.positions:
            at = at[:-1]
        self.add_error_at(self.positions.get(at, (1, 1)), path, message)

    def add_error_at(self, position: tuple[int, int], path: Path, message: str) -> None:
        """Note a mistake at a position of the file."""
        line, column = position
        found = BoxFieldError(
            file=self.find_file(path), line=line, column=column, path=format_path(path), message=message
        )
        if found not in self.errors[-20:]:
            self.errors.append(found)


def parse_source(text: str | bytes, file: str) -> list[YamlSource]:
    """The documents of a file, without empty ones.

    Args:
        text: The file's content; bytes are UTF-8.
        file: What it is called in messages.
    """
    whole = YamlSource(file)
    if len(text) > MAX_BYTES:
        whole.add_error((), f"expected at most {MAX_BYTES >> 20} MiB, found {len(text) / 2**20:.1f} MiB")
        return [whole]
    try:
        check_yaml_depth(text, max_depth=_MAX_DEPTH, max_nodes=_MAX_VALUES)
        nodes = list(yaml.compose_all(text, Loader=_YamlLoader))
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        position = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        about = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        whole.add_error_at(position, (), f"no YAML: {about}")
        return [whole]
    except yaml.YAMLError as error:
        whole.add_error((), f"no YAML: {' '.join(str(error).split())}")
        return [whole]
    found: list[YamlSource] = []
    for node in nodes:
        source = YamlSource(file)
        source.value = _NodeConverter(source).convert_document(node, ())
        if source.value is not None or source.errors:
            found.append(source)
    return found


class _YamlLoader(FastLoader):
    """Composes nodes, whose scalars are those of YAML 1.2's core schema."""


_NULL, _BOOL, _INT, _FLOAT, _STR, _MERGE, _MAP, _SEQ = (
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "merge", "map", "seq")
)
_SCALARS = (
    (_NULL, r"~|null|Null|NULL|", "~nN"),
    (_BOOL, r"true|True|TRUE|false|False|FALSE", "tTfF"),
    (_INT, r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        _FLOAT,
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    (_MERGE, r"<<", "<"),
)
_YamlLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in _SCALARS:
    _YamlLoader.add_implicit_resolver(
        _tag, re.compile(rf"(?:{_pattern})$"), [*_first, *([""] if _tag == _NULL else [])]
    )


class _AliasLimitError(Exception):
    """The file's aliases stand for more values than a box may have."""


class _NodeConverter:
    """Turns nodes into plain values, each alias written out, and notes where each value stands."""

    def __init__(self, source: YamlSource) -> None:
        self._source = source
        self._left = _MAX_VALUES
        self._merging = 0

    def convert_document(self, node: yaml.Node, path: Path) -> Any:
        """The value of a document."""
        try:
            return self._convert_value(node, path, _get_position(node))
        except _AliasLimitError:
            self._source.add_error_at(_get_position(node), (), f"with its aliases written out it {_TOO_MANY}")
            return None

    def _convert_value(self, node: yaml.Node, path: Path, position: tuple[int, int]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _AliasLimitError
        self._source.positions[path] = position
        if len(path) > _MAX_DEPTH:
            self._source.add_error(path[:8], f"it nests deeper than {_MAX_DEPTH} levels")
            return None
        if isinstance(node, yaml.MappingNode) and node.tag == _MAP:
            return self._convert_mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQ:
            return [
                self._convert_value(item, (*path, index), _get_position(item)) for index, item in enumerate(node.value)
            ]
        if isinstance(node, yaml.ScalarNode):
            return self._convert_scalar(node, path)
        self._source.add_error(path, f"expected a plain value, found one with the tag {shorten_text(node.tag)}")
        return None

    def _convert_mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        merges = [value for key, value in node.value if key.tag == _MERGE]
        found: dict[str, Any] = {}
        for each in reversed([one for value in merges for one in _list_merged_nodes(value)]):
            found |= self._convert_merge(each, path)
        own: set[str] = set()
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            at = (*path, key.value) if key.tag == _STR else path
            if key.tag != _STR or not isinstance(key, yaml.ScalarNode):
                shown = shorten_text(key.value) if isinstance(key, yaml.ScalarNode) else "a collection"
                self._source.add_error_at(_get_position(key), path, f"expected a field's name, found {shown}; quote it")
            elif len(key.value) > _MAX_NAME:
                self._source.add_error_at(
                    _get_position(key), path, f"the name of a field has {len(key.value):,} letters"
                )
            elif key.value in own:
                first = self._source.positions[at][0]
                self._source.add_error_at(_get_position(key), at, f"stands twice, first on line {first}; remove one")
            else:
                own.add(key.value)
                found[key.value] = self._convert_value(value, at, _get_position(key))
        return found

    def _convert_merge(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        self._merging += 1
        if self._merging > _MAX_DEPTH:  # a mapping that is merged into itself
            raise _AliasLimitError
        try:
            if isinstance(node, yaml.MappingNode):
                return self._convert_mapping(node, path)
        finally:
            self._merging -= 1
        self._source.add_error_at(_get_position(node), path, "<<: expected a mapping or a list of mappings")
        return {}

    def _convert_scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text: str = node.value
        if len(text) > _MAX_TEXT:
            self._source.add_error(path, f"expected at most {_MAX_TEXT >> 10} KiB of text, found {len(text) >> 10} KiB")
            return ""
        match node.tag:
            case "tag:yaml.org,2002:str":
                return text
            case "tag:yaml.org,2002:null":
                return None
            case "tag:yaml.org,2002:bool":
                return text.lower() == "true"
            case "tag:yaml.org,2002:int":
                return self._parse_integer(text, path)
            case "tag:yaml.org,2002:float":
                return self._parse_number(text, path)
        self._source.add_error(path, f"expected a plain value, found one with the tag {shorten_text(node.tag)}")
        return None

    def _parse_integer(self, text: str, path: Path) -> int | None:
        digits = text.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
            self._source.add_error(
                path, "a number with a leading zero; write 0o before the rest of it if it is octal, or quote it"
            )
            return None
        try:
            number = int(text, 0 if digits[:2] in ("0o", "0x") else 10)
        except ValueError:  # a tag that says so, or thousands of digits
            number = _MAX_INTEGER
        if not -_MAX_INTEGER <= number < _MAX_INTEGER:
            self._source.add_error(path, "expected a whole number of 64 bits")
            return None
        return number

    def _parse_number(self, text: str, path: Path) -> float | None:
        try:
            number = float(text)
        except ValueError:  # .inf and .nan, which JSON does not have
            number = float("inf")
        if number - number != 0:
            self._source.add_error(path, "expected a number that JSON has")
            return None
        return number


def _get_position(node: yaml.Node) -> tuple[int, int]:
    mark: Any = node.start_mark
    return mark.line + 1, mark.column + 1


def _list_merged_nodes(value: yaml.Node) -> list[yaml.Node]:
    return list(value.value) if isinstance(value, yaml.SequenceNode) else [value]
