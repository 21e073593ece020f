"""Errors of a box file: each is one sentence with a position that an editor can open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from konverge._internal.message_text import quote
from konverge._internal.suggestions import closest_match
from konverge.errors import ConfigurationError

__all__ = ["BoxFieldError", "BoxFileError", "Path", "format_hint", "format_path"]

Path = tuple[str | int, ...]
"""The path to a value from the root of the file: field names and indexes."""

_MAX_TEXT_LENGTH = 50

# Words of other systems and of earlier file formats: their spelling is too different for `closest_match`.
_OTHER_WORDS = {
    "apiTypes": "resource",
    "conditions": "when",
    "customResources": "crds",
    "defaultValue": "default",
    "dns": "dnsNames",
    "gt": "greaterThan",
    "gte": "min",
    "greaterThanOrEqual": "min",
    "hpa": "horizontalPodAutoscalers",
    "if": "when",
    "interval": "resync",
    "labelSelector": "selector",
    "lt": "lessThan",
    "lte": "max",
    "lessThanOrEqual": "max",
    "mutations": "mutation",
    "observe": "cross",
    "pdb": "podDisruptionBudgets",
    "resources": "onReconcile",
    "template": "manifest",
    "validations": "validation",
    "valueType": "type",
}


class BoxFieldError(msgspec.Struct, frozen=True, kw_only=True):
    """One error of a box file.

    Args:
        file: The name of the file as given.
        line: The line of its beginning, from 1.
        column: The column of its beginning, from 1.
        path: The field, for example ``spec.crds.website.validation[0].action``; empty for the file itself.
        message: What was expected and found, with the nearest known word.
    """

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        at = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}:{self.column}: {_escape_to_one_line(at + self.message)}"


class BoxFileError(ConfigurationError):
    """A box file is invalid; `errors` holds every error of it.

    Args:
        errors: The errors in the order of their positions; at least one.
    """

    def __init__(self, errors: Sequence[BoxFieldError]) -> None:
        self.errors = tuple(errors)
        lines = [str(each) for each in self.errors[:_MAX_TEXT_LENGTH]]
        more = len(self.errors) - len(lines)
        super().__init__("\n".join([*lines, f"and {more} more errors"] if more else lines))


def format_path(path: Path) -> str:
    """Return a path in the form of messages: ``spec.crds.website.onReconcile.deployments[0]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step and all(letter.isalnum() or letter in "_-" for letter in step):
            text += f".{step}" if text else step
        else:
            text += f"[{quote(step)}]"
    return text


def format_hint(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: the nearest known word, or all words if they are few."""
    words = sorted(set(known))
    other = _OTHER_WORDS.get(word)
    if other in words:
        return f"; did you mean {other}?"
    near = closest_match(word, words)
    if near:
        return f"; did you mean {near}?"
    return f"; known: {', '.join(words)}" if 0 < len(words) <= 16 else ""


def _escape_to_one_line(text: str) -> str:
    """Escape unprintable characters of a message: it quotes the file, and terminals and build logs interpret them."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
