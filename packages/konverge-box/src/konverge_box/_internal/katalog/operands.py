"""Operands: the parts of a box expression that parts of a Go template become."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Operand", "quote_text", "strip_brackets"]


class Operand(NamedTuple):
    """A part of an expression.

    Args:
        text: The text of the operand.
        type: ``text``, ``number``, ``bool``, ``list``, ``map``; empty if unknown.
        may_be_absent: Whether some objects have no value for it.
        path: Its path if it is one, for fields below it.
    """

    text: str
    type: str = ""
    may_be_absent: bool = False
    path: tuple[str, ...] = ()

    def with_fallback(self, fallback: str) -> str:
        """Return the text with a fallback if it may be absent; the result binds loosely."""
        return f"{self.text} | default({fallback})" if self.may_be_absent else self.text

    def to_operand(self, fallback: str) -> str:
        """Return the text with a fallback if it may be absent, for use between other operands."""
        return f"({self.with_fallback(fallback)})" if self.may_be_absent else self.text


def strip_brackets(text: str) -> str:
    """Return an operand without brackets around the whole of it."""
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
    """Return a string as a literal of an expression."""
    inside = (
        text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    )
    return f"'{inside}'"
