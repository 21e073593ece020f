"""YAML of a box file: plain values with their positions, limited before any value is built.

Scalars follow YAML 1.2, as in JSON: ``yes``, ``on``, ``12:30`` and dates are strings. A number with a leading zero is
rejected because YAML 1.1 parsers read it as octal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from konverge._internal.kube.yaml_loader import FastLoader, check_yaml_depth
from konverge._internal.message_text import quote
from konverge_box._internal.file.validation_errors import BoxFieldError, Path, format_path

__all__ = ["MAX_BYTES", "YamlSource", "parse_source"]

MAX_BYTES = 1024 * 1024
"""The maximum size of a file in bytes; a cluster hardly accepts more as one object."""

_MAX_DEPTH = 64
_MAX_VALUES = 100_000
_MAX_TEXT = 256 * 1024
_MAX_NAME = 1_024
_MAX_ERRORS = 1_000
_MAX_INTEGER = 2**63
_BARE_EXPRESSION = re.compile(r"(?:[:-] +)(\{\{)")
_QUOTE_EXPRESSION = 'put the expression in quotes: "{{ ... }}"'


@dataclass
class YamlSource:
    """One document of a file with the errors that are found in it so far.

    Args:
        file: The name of the file in messages.
        value: The document as JSON values; None if it could not be read.
        positions: Line and column of each value, from 1; for a value of a mapping those of its key.
        errors: The errors in the order of their discovery.
        origins: The other file that a value comes from, by path (`file.imported_box`).
    """

    file: str
    value: Any = None
    positions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    errors: list[BoxFieldError] = field(default_factory=list)
    origins: dict[Path, str] = field(default_factory=dict)

    def find_file(self, path: Path) -> str:
        """Return the file that contains the value at a path."""
        for length in range(len(path), 0, -1) if self.origins else ():
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return self.file

    def add_error(self, path: Path, message: str) -> None:
        """Add an error at a value; an absent value gets the position of the nearest value above it."""
        if len(self.errors) >= _MAX_ERRORS:
            return
        at = path
        while at and at not in self.positions:
            at = at[:-1]
        self.add_error_at(self.positions.get(at, (1, 1)), path, message)

    def add_error_at(self, position: tuple[int, int], path: Path, message: str) -> None:
        """Add an error at a position of the file."""
        line, column = position
        error = BoxFieldError(
            file=self.find_file(path), line=line, column=column, path=format_path(path), message=message
        )
        if error not in self.errors[-20:]:
            self.errors.append(error)


def parse_source(text: str | bytes, file: str) -> list[YamlSource]:
    """Return the documents of a file without empty ones.

    Args:
        text: The file's content; bytes are UTF-8.
        file: The name of the file in messages.
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
        whole.add_error_at(*_explain_syntax_error(text, position, error))
        return [whole]
    except yaml.YAMLError as error:
        whole.add_error((), f"invalid YAML: {' '.join(str(error).split())}")
        return [whole]
    sources: list[YamlSource] = []
    for node in nodes:
        source = YamlSource(file)
        source.value = _NodeConverter(source).convert_document(node, ())
        if source.value is not None or source.errors:
            sources.append(source)
    return sources


def _explain_syntax_error(
    text: str | bytes, position: tuple[int, int], error: yaml.MarkedYAMLError
) -> tuple[tuple[int, int], Path, str]:
    """Return the position and the message of a syntax error, in plain words for the two most common causes."""
    lines = (text.decode(errors="replace") if isinstance(text, bytes) else text).splitlines()
    number = position[0]
    for nearby in (number, number - 1):
        line = lines[nearby - 1] if 1 <= nearby <= len(lines) else ""
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent:
            return (nearby, indent.index("\t") + 1), (), "found a tab; indent with spaces"
        bare = _BARE_EXPRESSION.search(line)
        if bare is not None:
            return (nearby, bare.start(1) + 1), (), _QUOTE_EXPRESSION
    about = " ".join(f"{error.context or ''} {error.problem or ''}".split())
    return position, (), f"invalid YAML: {about}"


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
    """The aliases of the file expand to more values than a box may have."""


class _NodeConverter:
    """Converts nodes to plain values with all aliases expanded, and records the position of each value."""

    def __init__(self, source: YamlSource) -> None:
        self._source = source
        self._left = _MAX_VALUES
        self._merging = 0

    def convert_document(self, node: yaml.Node, path: Path) -> Any:
        """Return the value of a document."""
        try:
            return self._convert_value(node, path, _get_position(node))
        except _AliasLimitError:
            message = f"more than {_MAX_VALUES:,} values after the expansion of its aliases"
            self._source.add_error_at(_get_position(node), (), message)
            return None

    def _convert_value(self, node: yaml.Node, path: Path, position: tuple[int, int]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _AliasLimitError
        self._source.positions[path] = position
        if len(path) > _MAX_DEPTH:
            self._source.add_error(path[:8], f"nested deeper than {_MAX_DEPTH} levels")
            return None
        if isinstance(node, yaml.MappingNode) and node.tag == _MAP:
            if _is_bare_expression(node):
                self._source.add_error_at(_get_position(node), path, _QUOTE_EXPRESSION)
                return "{{ '' }}"  # an expression, so that no other check reports a mapping
            return self._convert_mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQ:
            return [
                self._convert_value(item, (*path, index), _get_position(item)) for index, item in enumerate(node.value)
            ]
        if isinstance(node, yaml.ScalarNode):
            return self._convert_scalar(node, path)
        self._source.add_error(path, f"expected a plain value, found the tag {quote(node.tag)}")
        return None

    def _convert_mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        merges = [value for key, value in node.value if key.tag == _MERGE]
        values: dict[str, Any] = {}
        for each in reversed([merged for value in merges for merged in _list_merged_nodes(value)]):
            values |= self._convert_merge(each, path)
        own: set[str] = set()
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            at = (*path, key.value) if key.tag == _STR else path
            if key.tag != _STR or not isinstance(key, yaml.ScalarNode):
                found = quote(key.value) if isinstance(key, yaml.ScalarNode) else "a collection"
                self._source.add_error_at(_get_position(key), path, f"expected a field name, found {found}; quote it")
            elif len(key.value) > _MAX_NAME:
                self._source.add_error_at(
                    _get_position(key),
                    path,
                    f"expected a field name of at most {_MAX_NAME:,} characters, found {len(key.value):,}",
                )
            elif key.value in own:
                first = self._source.positions[at][0]
                self._source.add_error_at(_get_position(key), at, f"duplicate field, first on line {first}; remove one")
            else:
                own.add(key.value)
                values[key.value] = self._convert_value(value, at, _get_position(key))
        return values

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
            self._source.add_error(path, f"expected at most {_MAX_TEXT >> 10} KiB, found {len(text) >> 10} KiB")
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
        self._source.add_error(path, f"expected a plain value, found the tag {quote(node.tag)}")
        return None

    def _parse_integer(self, text: str, path: Path) -> int | None:
        digits = text.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
            self._source.add_error(
                path, "found a number with a leading zero; write 0o for an octal number, or quote it"
            )
            return None
        try:
            number = int(text, 0 if digits[:2] in ("0o", "0x") else 10)
        except ValueError:  # an explicit tag, or thousands of digits
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
            self._source.add_error(path, "expected a finite number")
            return None
        return number


def _get_position(node: yaml.Node) -> tuple[int, int]:
    mark: Any = node.start_mark
    return mark.line + 1, mark.column + 1


def _is_bare_expression(node: yaml.MappingNode) -> bool:
    """Tell whether a mapping is an expression without quotes: braces in braces, whose only key is a mapping."""
    if len(node.value) != 1 or not node.flow_style:
        return False
    key, value = node.value[0]
    return isinstance(key, yaml.MappingNode) and bool(key.flow_style) and value.tag == _NULL


def _list_merged_nodes(value: yaml.Node) -> list[yaml.Node]:
    return list(value.value) if isinstance(value, yaml.SequenceNode) else [value]
