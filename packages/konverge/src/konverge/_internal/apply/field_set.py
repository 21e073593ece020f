"""Field sets: the fields of an object that a manager owns, as recorded in ``managedFields`` (meta/v1 ``FieldsV1``).

A path is a tuple of *elements* in their wire format: ``f:name`` for a field, ``k:{...}`` for the item of an associative
list with these key fields, ``v:...`` for a member of a set. A `FieldSet` is a tree of elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

__all__ = [
    "EMPTY",
    "FieldSet",
    "Path",
    "encode_value",
    "field_element",
    "format_path",
    "key_element",
    "parse_key_element",
    "value_element",
]

Path: TypeAlias = tuple[str, ...]

# Elements are compared as text, so equal values must have equal texts.
_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})

# No object on a server is nested deeper; deeper levels are cut off instead of exhausting the stack.
_MAX_DEPTH = 200


def encode_value(value: Any) -> str:
    """Encode the value like the API server: with sorted fields, and with the special characters of HTML escaped."""
    return msgspec.json.encode(value, order="sorted").decode().translate(_HTML)


@lru_cache(maxsize=8192, typed=True)  # typed: True and 1 are equal, but have different texts
def _encode_scalar(value: Any) -> str:
    return encode_value(int(value) if isinstance(value, float) and value.is_integer() else value)


def field_element(name: str) -> str:
    """Return the element of a field of a mapping."""
    return "f:" + name


def key_element(fields: Mapping[str, Any]) -> str:
    """Return the element of an item of an associative list, from its key fields, which are scalars."""
    return "k:{" + ",".join(f"{_encode_scalar(name)}:{_encode_scalar(fields[name])}" for name in sorted(fields)) + "}"


def value_element(value: Any) -> str:
    """Return the element of a member of a set, which is a scalar."""
    return "v:" + _encode_scalar(value)


@lru_cache(maxsize=8192)
def parse_key_element(element: str) -> Mapping[str, Any]:
    """Parse a ``k:`` element: the key fields of the item and their values; empty for an invalid element.

    The caller must not change the result.
    """
    try:
        keys = msgspec.json.decode(element[2:])
    except (msgspec.DecodeError, RecursionError):
        return {}
    if not isinstance(keys, dict) or any(isinstance(value, dict | list) for value in keys.values()):
        return {}
    return keys


@lru_cache(maxsize=8192)
def _canonicalize_element(element: str) -> str | None:
    """Return the canonical text of the element; None for an invalid one (from a newer server, or a faulty client)."""
    start = element[:2]
    if start in ("f:", "i:"):
        return element
    if start == "k:":
        fields = parse_key_element(element)
        return key_element(fields) if fields else None
    if start != "v:":
        return None
    try:
        value = msgspec.json.decode(element[2:])
    except (msgspec.DecodeError, RecursionError):
        return None
    return None if isinstance(value, dict | list) else value_element(value)


class FieldSet:
    """An immutable set of paths.

    Attributes:
        owned: Whether the path that leads to this node is itself in the set.
        children: The nodes below, by element; none of them is empty.
    """

    __slots__ = ("children", "owned")

    def __init__(self, children: Mapping[str, FieldSet] | None = None, *, owned: bool = False) -> None:
        self.children: Mapping[str, FieldSet] = children or {}
        self.owned = owned

    @staticmethod
    def of(paths: Iterable[Path]) -> FieldSet:
        """Return the set of these paths."""
        root: dict[str, Any] = {}
        for path in paths:
            node = root
            for element in path:
                node = node.setdefault(element, {})
            if path:  # No manager owns an object as a whole.
                node["."] = True
        return _build_field_set(root)

    @staticmethod
    def parse(fields: Mapping[str, Any]) -> FieldSet:
        """Parse ``fieldsV1``; invalid elements are left out, as in the API server."""
        return FieldSet(_parse_children(fields, 0))

    def format(self) -> dict[str, Any]:
        """Return the set as ``fieldsV1``, in the server's order (fields, then keys, then values)."""
        return {element: self.children[element]._format() for element in sorted(self.children, key=_element_order)}

    def _format(self) -> dict[str, Any]:
        if not self.children:
            return {}
        formatted: dict[str, Any] = {".": {}} if self.owned else {}
        formatted.update(self.format())
        return formatted

    def iter_paths(self) -> Iterator[Path]:
        """Iterate over the paths of the set: the members of a node first, then the paths below them."""
        yield from self._iter_below(())

    def _iter_below(self, prefix: Path) -> Iterator[Path]:
        ordered = sorted(self.children, key=_element_order)
        for element in ordered:
            if self.children[element].owned:
                yield (*prefix, element)
        for element in ordered:
            yield from self.children[element]._iter_below((*prefix, element))

    def __bool__(self) -> bool:
        return self.owned or bool(self.children)

    def __contains__(self, path: Path) -> bool:
        node: FieldSet | None = self
        for element in path:
            node = node.children.get(element) if node is not None else None
        return node is not None and node.owned

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldSet):
            return NotImplemented
        return self.owned == other.owned and self.children == other.children

    def __hash__(self) -> int:
        return hash((self.owned, frozenset(self.children)))

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(format_path(path) for path in self.iter_paths())})"

    def __or__(self, other: FieldSet) -> FieldSet:
        """Return the paths that are in either set."""
        if not other:
            return self
        if not self:
            return other
        children = dict(self.children)
        for element, theirs in other.children.items():
            ours = children.get(element)
            children[element] = theirs if ours is None else ours | theirs
        return FieldSet(children, owned=self.owned or other.owned)

    def __and__(self, other: FieldSet) -> FieldSet:
        """Return the paths that are in both sets."""
        children = {}
        for element, ours in self.children.items():
            theirs = other.children.get(element)
            common = ours & theirs if theirs is not None else EMPTY
            if common:
                children[element] = common
        return FieldSet(children, owned=self.owned and other.owned)

    def __sub__(self, other: FieldSet) -> FieldSet:
        """Return the paths that are not in the other set; paths below a path of the other set stay."""
        if not other.children and not other.owned:
            return self
        children = {}
        for element, ours in self.children.items():
            theirs = other.children.get(element)
            rest = ours if theirs is None else ours - theirs
            if rest:
                children[element] = rest
        return FieldSet(children, owned=self.owned and not other.owned)

    def subtract_trees(self, other: FieldSet) -> FieldSet:
        """Return the paths that are neither in the other set nor below one of its paths."""
        if not other:
            return self
        children = {}
        for element, ours in self.children.items():
            theirs = other.children.get(element)
            if theirs is None:
                children[element] = ours
            elif not theirs.owned:
                rest = ours.subtract_trees(theirs)
                if rest:
                    children[element] = rest
        return FieldSet(children, owned=self.owned)


EMPTY = FieldSet()


def _parse_children(fields: Mapping[str, Any], depth: int) -> dict[str, FieldSet]:
    children: dict[str, FieldSet] = {}
    for spelled, below in fields.items():
        element = _canonicalize_element(spelled)
        if element is None:
            continue
        grandchildren = _parse_children(below, depth + 1) if isinstance(below, Mapping) and depth < _MAX_DEPTH else {}
        node = FieldSet(grandchildren, owned=not grandchildren or "." in below)
        twin = children.get(element)
        children[element] = node if twin is None else twin | node
    return children


def _build_field_set(node: dict[str, Any]) -> FieldSet:
    owned = node.pop(".", False)
    return FieldSet({element: _build_field_set(below) for element, below in node.items()}, owned=owned)


def _element_order(element: str) -> tuple[int, str]:
    return "fkvi".find(element[0]), element


def format_path(path: Path) -> str:
    """Format the path like the API server, for example ``.spec.containers[name="app"].image``."""
    return "".join(_format_element(element) for element in path)


def _format_element(element: str) -> str:
    start, rest = element[:2], element[2:]
    if start == "f:":
        return "." + rest
    if start == "k:":
        return (
            "[" + ",".join(f"{name}={_quote_value(value)}" for name, value in parse_key_element(element).items()) + "]"
        )
    if start == "v:":
        return f"[={_quote_value(msgspec.json.decode(rest))}]"
    return f"[{rest}]"


def _quote_value(value: Any) -> str:
    return msgspec.json.encode(value).decode()
