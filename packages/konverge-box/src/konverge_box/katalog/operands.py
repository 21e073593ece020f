"""What a part of a Go template has become: an operand of an expression of a box."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Operand", "quote_text", "strip_brackets"]


class Operand(NamedTuple):
    """A part of an expression.

    Args:
        text: An operand.
        type: ``text``, ``number``, ``bool``, ``list``, ``map``; empty for what is not known.
        may_be_absent: Whether it has no value for some objects.
        path: The path that it is, for what goes on from there.
    """

    text: str
    type: str = ""
    may_be_absent: bool = False
    path: tuple[str, ...] = ()

    def with_fallback(self, fallback: str) -> str:
        """With a fallback where it may be absent; that binds loosely."""
        return f"{self.text} | default({fallback})" if self.may_be_absent else self.text

    def to_operand(self, fallback: str) -> str:
        """The same, to be put between others."""
        return f"({self.with_fallback(fallback)})" if self.may_be_absent else self.text


def strip_brackets(text: str) -> str:
    """An operand without brackets around all of it."""
    depth = 0
    is_quoted = is_escaped = False
    for at, letter in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif letter == "\\":
            is_escaped = True
        elif letter == "'":
            is_quoted = not is_quoted
        elif not is_quoted:
            depth += (letter == "(") - (letter == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def quote_text(text: str) -> str:
    """A text as a literal of an expression."""
    inside = (
        text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    )
    return f"'{inside}'"
