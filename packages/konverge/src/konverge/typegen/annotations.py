"""Types as they are written in Python: as one line, or wrapped as ``ruff format`` wraps what is too long for one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = [
    "ANY",
    "ANY_MAPPING",
    "INDENT",
    "INT_OR_STRING",
    "Annotation",
    "build_list",
    "build_literal",
    "build_mapping",
    "quote_string",
]

INDENT = "    "
_WIDTH = 120
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Annotation:
    """A type: what stands before its brackets, what in them, and whether it may be None.

    `inside` holds other types, or the literals of a ``Literal`` as they are written.
    """

    head: str
    inside: tuple[Annotation, ...] = ()
    or_none: bool = False

    @property
    def text(self) -> str:
        """The type on one line."""
        brackets = f"[{', '.join(each.text for each in self.inside)}]" if self.inside else ""
        return f"{self.head}{brackets}{' | None' if self.or_none else ''}"

    @property
    def names(self) -> Iterator[str]:
        """What it refers to: ``dict``, ``Any``, ``Container``, ``meta_v1.ObjectMeta``."""
        yield from self.head.split(" | ")
        if self.head != "Literal":
            for each in self.inside:
                yield from each.names

    @property
    def identifiers(self) -> Iterator[str]:
        """The names that must mean what they mean where it is written: ``meta_v1`` of ``meta_v1.ObjectMeta``."""
        for name in self.names:
            yield from _IDENTIFIER.findall(name.partition(".")[0])

    def wrap(self, indent: str, room: int) -> str:
        """The type over several lines, when it does not fit into one.

        Args:
            indent: That of the line that it begins in.
            room: How many characters of that line it may take.
        """
        flat = self.text
        if len(flat) <= room or not self.inside or self.or_none:
            return flat
        within = indent + INDENT
        if len(self.inside) == 1:
            lines = within + self.inside[0].wrap(within, _WIDTH - len(within))
        else:
            lines = "\n".join(f"{within}{each.wrap(within, _WIDTH - len(within) - 1)}," for each in self.inside)
        return f"{self.head}[\n{lines}\n{indent}]"

    def or_null(self) -> Annotation:
        """The type, or None."""
        if self == ANY:
            return self
        if self.head == "Literal":
            none = Annotation("None")
            return self if none in self.inside else replace(self, inside=(*self.inside, none))
        return replace(self, or_none=True)


ANY = Annotation("Any")
INT_OR_STRING = Annotation("int | str")


def build_list(item: Annotation) -> Annotation:
    """A list of that."""
    return Annotation("list", (item,))


def build_mapping(value: Annotation) -> Annotation:
    """A mapping from strings to that."""
    return Annotation("dict", (Annotation("str"), value))


ANY_MAPPING = build_mapping(ANY)


def build_literal(*values: str | int | None) -> Annotation:
    """One of those values."""
    return Annotation(
        "Literal", tuple(Annotation(quote_string(each) if isinstance(each, str) else repr(each)) for each in values)
    )


def quote_string(text: str) -> str:
    """The literal of a string, in ASCII, with the quotes that ``ruff format`` would choose."""
    found = ascii(text)
    return found if '"' in found else f'"{found[1:-1]}"'
