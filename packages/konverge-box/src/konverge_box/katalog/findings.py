"""What an import could not carry over, and what it decided: each at its place in the Katalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from konverge_box.file.validation_errors import Path, format_path
from konverge_box.file.yaml_source import YamlSource

__all__ = [
    "INCLUDE",
    "PROFILE",
    "SLEEP",
    "ConversionNote",
    "Finding",
    "FindingCollector",
    "FindingReason",
    "KatalogFields",
]


class FindingReason(NamedTuple):
    """Why something is not carried over.

    Args:
        what: What it is.
        why: What stands against it.
        instead: What to do.
    """

    what: str
    why: str
    instead: str


INCLUDE = FindingReason("another file", "a box is one file", "copy what stands there to this place, and import again")
PROFILE = FindingReason("a profile", "konverge has no profiles", "write its values out")
SLEEP = FindingReason("a pause for tests", "a pass of konverge does not sleep", "remove it")


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


class ConversionNote(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is carried over, and is not quite the same here.

    Args:
        path: The field in the Katalog.
        text: What is different.
    """

    path: str
    text: str


class FindingCollector:
    """Collects findings and decisions.

    Args:
        source: The Katalog, which knows where each value stands.
    """

    def __init__(self, source: YamlSource) -> None:
        self._source = source
        self.findings: list[Finding] = []
        self.decisions: list[ConversionNote] = []

    def add_finding(self, path: Path, why: FindingReason) -> None:
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

    def add_note(self, path: Path, text: str) -> None:
        """Note a difference."""
        self.decisions.append(ConversionNote(path=format_path(path), text=text))


_WORDS = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number"}


class KatalogFields:
    """A mapping of the Katalog: what nobody takes out of it is listed when it is closed.

    Args:
        notes: What gets the findings.
        value: The mapping; anything else is listed, and is then empty here.
        path: Where it stands.
    """

    def __init__(self, notes: FindingCollector, value: Any, path: Path) -> None:
        self.notes = notes
        self.path = path
        self._left: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {}
        if value is not None and not isinstance(value, Mapping):
            notes.add_finding(
                path, FindingReason("a value of another form", "expected a mapping", "look at it by hand")
            )

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def peek(self, key: str) -> Any:
        """The value of a field that somebody takes later."""
        return self._left.get(key)

    def is_mapping(self, key: str) -> bool:
        """Tell whether a field is a mapping."""
        return isinstance(self._left.get(key), Mapping)

    def list_remaining(self) -> list[str]:
        """The fields that nobody has taken yet."""
        return list(self._left)

    def build_path(self, key: str | int) -> Path:
        """The path of a field."""
        return (*self.path, key)

    def take(self, key: str) -> Any:
        """The value of a field, None for none; whoever takes it carries it over or lists it."""
        return self._left.pop(key, None)

    def take_first(self, *keys: str) -> tuple[str, Any]:
        """The first of several names that the field has in one generation or the other, and its value."""
        found = [key for key in keys if key in self._left]
        if not found:
            return keys[0], None
        return found[0], self.take(found[0])

    def take_typed(self, key: str, type_: type) -> Any:
        """As `take`, for a value of that type; any other is listed, and None here."""
        value = self.take(key)
        if value is None or (isinstance(value, type_) and (type_ is bool or not isinstance(value, bool))):
            return value
        self.reject_field(key, "a value of another form", f"expected {_WORDS[type_]}", "look at it by hand")
        return None

    def take_text(self, key: str) -> str | None:
        """As `take`, for text; numbers and booleans are read as text, as they are there."""
        value = self.take(key)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return str(value)
        self.reject_field(key, "a value of another form", "expected text", "look at it by hand")
        return None

    def take_mapping(self, key: str) -> KatalogFields:
        """The fields of a mapping; none for what is not there."""
        return KatalogFields(self.notes, self.take(key), self.build_path(key))

    def take_items(self, key: str) -> list[KatalogFields]:
        """The mappings of a list."""
        value = self.take_typed(key, list) or []
        return [KatalogFields(self.notes, each, (*self.path, key, index)) for index, each in enumerate(value)]

    def is_list(self, key: str) -> bool:
        """Tell whether a field is a list, or not there."""
        value = self._left.get(key)
        return value is None or isinstance(value, list)

    def reject_field(self, key: str | int, what: str, why: str, instead: str) -> None:
        """List a field."""
        self.notes.add_finding(self.build_path(key), FindingReason(what, why, instead))

    def add_note(self, key: str, text: str) -> None:
        """Note that a field is carried over and is not quite the same."""
        self.notes.add_note(self.build_path(key), text)

    def report_remaining(self, known: Mapping[str, FindingReason] | None = None) -> None:
        """List what is left; of what is known it says why."""
        for key in self._left:
            self.notes.add_finding(
                self.build_path(key),
                (known or {}).get(key)
                or FindingReason("an unknown field", "no generation of the file has it here", "remove it"),
            )
        self._left = {}
