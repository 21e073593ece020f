"""The results of a conversion besides the box: findings and notes, each with its position in the Katalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from konverge_box._internal.file.validation_errors import Path, format_path
from konverge_box._internal.file.yaml_source import YamlSource
from konverge_box._internal.katalog.go_template import has_template

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
    """The reason why a part of a Katalog is not converted.

    Args:
        what: The part.
        why: The obstacle.
        instead: The alternative.
    """

    what: str
    why: str
    instead: str


INCLUDE = FindingReason("another file", "a box is one file", "copy its content here, and import again")
PROFILE = FindingReason("a profile", "konverge has no profiles", "write its values")
_NO_TEMPLATE = FindingReason("a template", "a box has no expression in this field", "write the value")
SLEEP = FindingReason("a pause for tests", "a reconcile does not sleep", "remove it")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a Katalog that the box does not contain.

    Args:
        file: The name of the Katalog as given.
        line: The line of its beginning, from 1; 0 for an error of the resulting box.
        column: The column of its beginning, from 1.
        path: The field.
        what: The part.
        why: The reason why it is not converted.
        instead: The alternative.
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
    """One part that is converted and behaves slightly differently in a box.

    Args:
        path: The field in the Katalog.
        text: The difference.
    """

    path: str
    text: str


class FindingCollector:
    """Collector of findings and notes.

    Args:
        source: The Katalog, which has the position of each value.
    """

    def __init__(self, source: YamlSource) -> None:
        self._source = source
        self.findings: list[Finding] = []
        self.decisions: list[ConversionNote] = []

    def add_finding(self, path: Path, why: FindingReason) -> None:
        """Add a finding; the same finding at the same position is added once."""
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
        """Add a note about a difference."""
        self.decisions.append(ConversionNote(path=format_path(path), text=text))


_WORDS = {dict: "a mapping", list: "a list", str: "a string", bool: "true or false", int: "a number"}


class KatalogFields:
    """A mapping of the Katalog; every field that the conversion does not take becomes a finding when it is closed.

    Args:
        notes: The collector of findings.
        value: The mapping; any other value becomes a finding and counts as an empty mapping.
        path: The path of the mapping.
    """

    def __init__(self, notes: FindingCollector, value: Any, path: Path) -> None:
        self.notes = notes
        self.path = path
        self._left: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {}
        if value is not None and not isinstance(value, Mapping):
            notes.add_finding(
                path, FindingReason("a value of an unexpected type", "expected a mapping", "convert it by hand")
            )

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def peek(self, key: str) -> Any:
        """Return the value of a field without taking it."""
        return self._left.get(key)

    def is_mapping(self, key: str) -> bool:
        """Tell whether a field is a mapping."""
        return isinstance(self._left.get(key), Mapping)

    def list_remaining(self) -> list[str]:
        """Return the fields that are not taken yet."""
        return list(self._left)

    def build_path(self, key: str | int) -> Path:
        """Return the path of a field."""
        return (*self.path, key)

    def take(self, key: str) -> Any:
        """Take the value of a field, None if absent; the caller converts it or adds a finding."""
        return self._left.pop(key, None)

    def take_first(self, *keys: str) -> tuple[str, Any]:
        """Take the first present field of several names, one per schema generation; return its name and value."""
        present = [key for key in keys if key in self._left]
        if not present:
            return keys[0], None
        return present[0], self.take(present[0])

    def take_typed(self, key: str, type_: type) -> Any:
        """Take a value of this type; any other becomes a finding and counts as absent."""
        value = self.take(key)
        if value is None or (isinstance(value, type_) and (type_ is bool or not isinstance(value, bool))):
            return value
        self.reject_field(key, "a value of an unexpected type", f"expected {_WORDS[type_]}", "convert it by hand")
        return None

    def take_text(self, key: str, *, may_be_template: bool = False) -> str | None:
        """Take a string; numbers and booleans are converted to strings, as in a Katalog.

        Args:
            key: The field.
            may_be_template: True if the caller translates templates. Otherwise a template becomes a finding, and counts
                as absent.
        """
        value = self.take(key)
        if isinstance(value, str) and has_template(value) and not may_be_template:
            self.notes.add_finding(self.build_path(key), _NO_TEMPLATE)
            return None
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return str(value)
        self.reject_field(key, "a value of an unexpected type", "expected a string", "convert it by hand")
        return None

    def take_texts(self, key: str) -> list[str]:
        """Take a list of strings; a template in it becomes a finding, and is left out."""
        texts = [str(each) for each in self.take_typed(key, list) or []]
        for index, text in enumerate(texts):
            if has_template(text):
                self.notes.add_finding((*self.build_path(key), index), _NO_TEMPLATE)
        return [text for text in texts if not has_template(text)]

    def take_mapping(self, key: str) -> KatalogFields:
        """Take a mapping; an absent one counts as empty."""
        return KatalogFields(self.notes, self.take(key), self.build_path(key))

    def take_items(self, key: str) -> list[KatalogFields]:
        """Take a list and return its items as mappings."""
        value = self.take_typed(key, list) or []
        return [KatalogFields(self.notes, each, (*self.path, key, index)) for index, each in enumerate(value)]

    def is_list(self, key: str) -> bool:
        """Tell whether a field is a list or absent."""
        value = self._left.get(key)
        return value is None or isinstance(value, list)

    def reject_field(self, key: str | int, what: str, why: str, instead: str) -> None:
        """Add a finding for a field."""
        self.notes.add_finding(self.build_path(key), FindingReason(what, why, instead))

    def add_note(self, key: str, text: str) -> None:
        """Add a note that a field is converted with a difference."""
        self.notes.add_note(self.build_path(key), text)

    def report_remaining(self, known: Mapping[str, FindingReason] | None = None) -> None:
        """Add findings for the remaining fields, with these reasons where given."""
        for key in self._left:
            self.notes.add_finding(
                self.build_path(key),
                (known or {}).get(key)
                or FindingReason("an unknown field", "no schema generation has it here", "remove it"),
            )
        self._left = {}
