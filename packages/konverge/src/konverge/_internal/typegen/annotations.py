"""Types as Python source: on one line, or wrapped like the output of ``ruff format``."""

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
    """A type: the part before its brackets, the parts inside them, and whether it can be None.

    `inside` contains other types, or the literals of a ``Literal`` as source.
    """

    head: str
    inside: tuple[Annotation, ...] = ()
    or_none: bool = False

    @property
    def text(self) -> str:
        """The type on one line."""
        brackets = f"[{', '.join(annotation.text for annotation in self.inside)}]" if self.inside else ""
        return f"{self.head}{brackets}{' | None' if self.or_none else ''}"

    @property
    def names(self) -> Iterator[str]:
        """The referenced types: ``dict``, ``Any``, ``Container``, ``meta_v1.ObjectMeta``."""
        yield from self.head.split(" | ")
        if self.head != "Literal":
            for annotation in self.inside:
                yield from annotation.names

    @property
    def identifiers(self) -> Iterator[str]:
        """The names that must not be shadowed where the type is written: ``meta_v1`` of ``meta_v1.ObjectMeta``."""
        for name in self.names:
            yield from _IDENTIFIER.findall(name.partition(".")[0])

    def wrap(self, indent: str, room: int) -> str:
        """Return the type on several lines if it does not fit on one.

        Args:
            indent: The indentation of the first line.
            room: The available characters on that line.
        """
        flat = self.text
        if len(flat) <= room or not self.inside or self.or_none:
            return flat
        within = indent + INDENT
        if len(self.inside) == 1:
            lines = within + self.inside[0].wrap(within, _WIDTH - len(within))
        else:
            lines = "\n".join(
                f"{within}{annotation.wrap(within, _WIDTH - len(within) - 1)}," for annotation in self.inside
            )
        return f"{self.head}[\n{lines}\n{indent}]"

    def or_null(self) -> Annotation:
        """Return the type that also permits None."""
        if self == ANY:
            return self
        if self.head == "Literal":
            none = Annotation("None")
            return self if none in self.inside else replace(self, inside=(*self.inside, none))
        return replace(self, or_none=True)


ANY = Annotation("Any")
INT_OR_STRING = Annotation("int | str")


def build_list(item: Annotation) -> Annotation:
    """Return the type of a list with these items."""
    return Annotation("list", (item,))


def build_mapping(value: Annotation) -> Annotation:
    """Return the type of a mapping from strings to this type."""
    return Annotation("dict", (Annotation("str"), value))


ANY_MAPPING = build_mapping(ANY)


def build_literal(*values: str | int | None) -> Annotation:
    """Return the type with exactly these values."""
    return Annotation(
        "Literal", tuple(Annotation(quote_string(value) if isinstance(value, str) else repr(value)) for value in values)
    )


def quote_string(text: str) -> str:
    """Return a string literal in ASCII with the quotation marks of ``ruff format``."""
    literal = ascii(text)
    return literal if '"' in literal else f'"{literal[1:-1]}"'
