"""What is wrong in a box file, and where: one mistake is one sentence with a place that an editor can jump to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from konverge.errors import ConfigurationError
from konverge.suggestions import closest_match

__all__ = ["BoxFieldError", "BoxFileError", "Path", "format_hint", "format_path"]

Path = tuple[str | int, ...]
"""The way to a value from the file's root: field names and indexes."""

_MAX_TEXT_LENGTH = 50

# What other systems and earlier generations of such files call a thing: too far away for a comparison of letters.
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
    """One thing that has to be changed before the box can be used.

    Args:
        file: The file's name as it was given.
        line: Where it begins, from 1.
        column: Where it begins, from 1.
        path: The field, for example ``spec.crds.website.validation[0].action``; empty for the file itself.
        message: What was expected and what was found, with the nearest known word.
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
    """A box file cannot be used; every mistake that was found is in `mistakes`.

    Args:
        errors: In the order in which they stand in the file; at least one.
    """

    def __init__(self, mistakes: Sequence[BoxFieldError]) -> None:
        self.errors = tuple(mistakes)
        lines = [str(each) for each in self.errors[:_MAX_TEXT_LENGTH]]
        more = len(self.errors) - len(lines)
        super().__init__("\n".join([*lines, f"and {more} more mistakes"] if more else lines))


def format_path(path: Path) -> str:
    """A path as messages show it: ``spec.crds.website.onReconcile.deployments[0]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step and all(letter.isalnum() or letter in "_-" for letter in step):
            text += f".{step}" if text else step
        else:
            text += f"[{shorten_text(step)}]"
    return text


def format_hint(word: str, known: Iterable[str]) -> str:
    """The end of a message about a word that is not among those: the nearest one, else all if they are few."""
    words = sorted(set(known))
    other = _OTHER_WORDS.get(word)
    if other in words:
        return f"; did you mean {other}?"
    near = closest_match(word, words)
    if near:
        return f"; did you mean {near}?"
    return f"; known: {', '.join(words)}" if 0 < len(words) <= 16 else ""


def _escape_to_one_line(text: str) -> str:
    """A message that quotes the file: what a terminal or the log of a build would obey is written as an escape."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def shorten_text(text: str) -> str:
    """A text of the file as a message shows it, on one line."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
