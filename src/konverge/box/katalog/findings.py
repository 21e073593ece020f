"""What an import could not carry over, and what it decided: each at its place in the Katalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from konverge.box.file.mistakes import Path, format_path
from konverge.box.file.source import Source

__all__ = ["INCLUDE", "PROFILE", "SLEEP", "Decision", "Fields", "Finding", "Notes", "Why"]


class Why(NamedTuple):
    """Why something is not carried over.

    Args:
        what: What it is.
        why: What stands against it.
        instead: What to do.
    """

    what: str
    why: str
    instead: str


INCLUDE = Why("another file", "a box is one file", "copy what stands there to this place, and import again")
PROFILE = Why("a profile", "konverge has no profiles", "write its values out")
SLEEP = Why("a pause for tests", "a pass of konverge does not sleep", "remove it")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing of a Katalog that the box does not have.

    Args:
        file: The Katalog's name as it was given.
        line: Where it begins, from 1; 0 for what is not in the Katalog but in the box that came out.
        column: Where it begins, from 1.
        path: The field.
        what: What it is.
        why: Why it is not carried over.
        instead: What to do.
    """

    file: str
    line: int
    column: int
    path: str
    what: str
    why: str
    instead: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.path}: {self.what}: {self.why}; instead: {self.instead}"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is carried over, and is not quite the same here.

    Args:
        path: The field in the Katalog.
        text: What is different.
    """

    path: str
    text: str


class Notes:
    """Collects findings and decisions.

    Args:
        source: The Katalog, which knows where each value stands.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.findings: list[Finding] = []
        self.decisions: list[Decision] = []

    def list(self, path: Path, why: Why) -> None:
        """Note what is not carried over; the same thing at the same place is one."""
        at = path
        while at and at not in self._source.positions:
            at = at[:-1]
        line, column = self._source.positions.get(at, (1, 1))
        found = Finding(
            file=self._source.file, line=line, column=column, path=format_path(path) or "the file", **why._asdict()
        )
        if found not in self.findings:
            self.findings.append(found)

    def decide(self, path: Path, text: str) -> None:
        """Note a difference."""
        self.decisions.append(Decision(path=format_path(path), text=text))


_WORDS = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number"}


class Fields:
    """A mapping of the Katalog: what nobody takes out of it is listed when it is closed.

    Args:
        notes: What gets the findings.
        value: The mapping; anything else is listed, and is then empty here.
        path: Where it stands.
    """

    def __init__(self, notes: Notes, value: Any, path: Path) -> None:
        self.notes = notes
        self.path = path
        self._left: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {}
        if value is not None and not isinstance(value, Mapping):
            notes.list(path, Why("a value of another form", "expected a mapping", "look at it by hand"))

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def peek(self, key: str) -> Any:
        """The value of a field that somebody takes later."""
        return self._left.get(key)

    def is_mapping(self, key: str) -> bool:
        """Tell whether a field is a mapping."""
        return isinstance(self._left.get(key), Mapping)

    def names(self) -> list[str]:
        """The fields that nobody has taken yet."""
        return list(self._left)

    def at(self, key: str | int) -> Path:
        """The path of a field."""
        return (*self.path, key)

    def take(self, key: str) -> Any:
        """The value of a field, None for none; whoever takes it carries it over or lists it."""
        return self._left.pop(key, None)

    def first(self, *keys: str) -> tuple[str, Any]:
        """The first of several names that the field has in one generation or the other, and its value."""
        found = [key for key in keys if key in self._left]
        if not found:
            return keys[0], None
        return found[0], self.take(found[0])

    def typed(self, key: str, type_: type) -> Any:
        """As `take`, for a value of that type; any other is listed, and None here."""
        value = self.take(key)
        if value is None or (isinstance(value, type_) and (type_ is bool or not isinstance(value, bool))):
            return value
        self.refuse(key, "a value of another form", f"expected {_WORDS[type_]}", "look at it by hand")
        return None

    def text(self, key: str) -> str | None:
        """As `take`, for text; numbers and booleans are read as text, as they are there."""
        value = self.take(key)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return str(value)
        self.refuse(key, "a value of another form", "expected text", "look at it by hand")
        return None

    def below(self, key: str) -> Fields:
        """The fields of a mapping; none for what is not there."""
        return Fields(self.notes, self.take(key), self.at(key))

    def items(self, key: str) -> list[Fields]:
        """The mappings of a list."""
        value = self.typed(key, list) or []
        return [Fields(self.notes, each, (*self.path, key, index)) for index, each in enumerate(value)]

    def is_list(self, key: str) -> bool:
        """Tell whether a field is a list, or not there."""
        value = self._left.get(key)
        return value is None or isinstance(value, list)

    def refuse(self, key: str | int, what: str, why: str, instead: str) -> None:
        """List a field."""
        self.notes.list(self.at(key), Why(what, why, instead))

    def decide(self, key: str, text: str) -> None:
        """Note that a field is carried over and is not quite the same."""
        self.notes.decide(self.at(key), text)

    def close(self, known: Mapping[str, Why] | None = None) -> None:
        """List what is left; of what is known it says why."""
        for key in self._left:
            self.notes.list(
                self.at(key),
                (known or {}).get(key) or Why("an unknown field", "no generation of the file has it here", "remove it"),
            )
        self._left = {}
