"""Files of YAML documents that somebody else has written: read within limits, as an API server takes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from konverge.errors import ConfigurationError
from konverge.kube import Object
from konverge.kube.yaml_depth import check_yaml_depth

__all__ = ["STDIN", "read_objects"]

STDIN = Path("-")

_MAX_BYTES = 16 * 1024 * 1024
_MAX_NODES = 2_000_000
_MAX_DEPTH = 200


def read_objects(file: Path) -> list[Object]:
    """The objects of a file, or of stdin; those that stand in a List one by one.

    Raises:
        konverge.errors.ConfigurationError: It cannot be read, is no YAML, has anything but objects, or is too large.
    """
    text = _text(file)
    try:
        check_yaml_depth(text)
        documents = [each for each in yaml.load_all(text, Loader=_Loader) if each is not None]
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigurationError(f"{file}: no YAML: {' '.join(str(error).split())}") from error
    found: list[Object] = []
    for document in documents:
        items = document.get("items") if _is_list(document) else [document]
        for each in items if isinstance(items, list) else [items]:
            if not isinstance(each, dict):
                raise ConfigurationError(f"{file}: expected objects, found a {type(each).__name__}")
            found.append(each)
    return found


def _is_list(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(kind := document.get("kind"), str) and kind.endswith("List")


def _text(file: Path) -> bytes:
    try:
        if file == STDIN:
            text = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with file.open("rb") as opened:
                text = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
    if len(text) > _MAX_BYTES:
        raise ConfigurationError(f"{file}: expected at most {_MAX_BYTES >> 20} MiB of YAML, found more")
    return text


class _Loader(yaml.CSafeLoader):
    """The safe loader, with what only YAML has left as it is written, and aliases bounded before they are followed."""

    def construct_document(self, node: yaml.Node) -> Any:
        """The value of a document."""
        # Merge keys (``<<``) copy what they name already while the value is made: twelve lines can fill the memory.
        _count_nodes(node, {}, 0)
        return super().construct_document(node)


# A date is a text to an API server. So is the equals sign, of which the safe loader makes nothing.
_ONLY_YAML = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag not in _ONLY_YAML]
    for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _count_nodes(node: yaml.Node, known: dict[int, int], depth: int) -> int:
    """How many nodes it stands for when each alias is written out; what has no end nests too deeply."""
    if depth > _MAX_DEPTH:
        raise yaml.MarkedYAMLError(problem=f"it nests deeper than {_MAX_DEPTH} levels", problem_mark=node.start_mark)
    count = known.get(id(node))
    if count is None:
        below = node.value if isinstance(node, yaml.CollectionNode) else []
        parts = [part for entry in below for part in (entry if isinstance(entry, tuple) else (entry,))]
        count = 1
        for part in parts:
            count += _count_nodes(part, known, depth + 1)
        if count > _MAX_NODES:
            raise yaml.MarkedYAMLError(
                problem=f"with its aliases written out it has more than {_MAX_NODES} values",
                problem_mark=node.start_mark,
            )
        known[id(node)] = count
    return count
