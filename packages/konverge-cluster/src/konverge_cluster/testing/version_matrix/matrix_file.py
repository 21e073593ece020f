"""A version matrix in a YAML file: everything but the function that builds.

folder: golden/web              # beside this file
versions: ["8.4.0", "8.5.0"]
exclude: [user-overrides]
revealSecrets: false
fixtures:
- name: default
spec: {replicas: 2}         # or specFile: default.yaml
requires: [tracing, {mutation: legacy-arguments, for: "8.4.0"}]
forbids: [{mutation: legacy-arguments, for: "8.5.0"}]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from konverge.component import Component
from konverge.errors import BuildError
from konverge.kube.yaml_loader import load_yaml
from konverge.primitives.resource_protocol import Resource
from konverge.suggestions import did_you_mean
from konverge_cluster.testing.version_matrix.argument_validation import format_value
from konverge_cluster.testing.version_matrix.fixtures import Expectation, Fixture
from konverge_cluster.testing.version_matrix.version_matrix import VersionMatrix

__all__ = ["load_matrix"]

_MATRIX_FIELDS = ("folder", "versions", "exclude", "revealSecrets", "fixtures")
_FIXTURE_FIELDS = ("name", "spec", "specFile", "requires", "forbids")
_EXPECTATION_FIELDS = ("mutation", "for")


def load_matrix(path: str | os.PathLike[str], build: Callable[[str, Any], Component | Resource]) -> VersionMatrix[Any]:
    """The matrix that a YAML file describes.

    Args:
        path: The file. The paths in it start at its own folder.
        build: As for `VersionMatrix`; a spec is what YAML makes of it, with dates as text.

    Raises:
        konverge.errors.BuildError: With everything that is wrong with the file, each mistake with its place.
    """
    file = Path(path).absolute()
    reading = _MatrixReader(file.parent)
    found = reading.read_document(file)
    if reading.mistakes:
        raise BuildError(f"version matrix {path}", reading.mistakes)
    fields = reading.read_fields(found, "", _MATRIX_FIELDS, ("folder", "versions", "fixtures"))
    folder = reading.read_text(fields.get("folder", "."), "folder")
    versions = reading.read_texts(fields.get("versions", ()), "versions")
    exclude = reading.read_texts(fields.get("exclude", ()), "exclude")
    reveal = fields.get("revealSecrets", False)
    if not isinstance(reveal, bool):
        reading.add_error("revealSecrets", "true or false", reveal)
    fixtures = [
        reading.read_fixture(item, f"fixtures[{index}]")
        for index, item in enumerate(reading.read_items(fields.get("fixtures", ()), "fixtures"))
    ]
    subject = f"version matrix {path}"
    if reading.mistakes:
        raise BuildError(subject, reading.mistakes)
    try:
        return VersionMatrix(
            file.parent / folder,
            versions=versions,
            fixtures=fixtures,
            build=build,
            exclude=exclude,
            reveal_secrets=reveal,
        )
    except BuildError as error:
        raise BuildError(subject, error.errors) from None


class _MatrixReader:
    """Reads values, and goes on after a mistake: what it then answers is of the right type and used by nobody."""

    def __init__(self, folder: Path) -> None:
        self.mistakes: list[str] = []
        self._folder = folder

    def add_error(self, path: str, expected: str, found: object) -> None:
        """Note a mistake; an empty path is the whole file."""
        begin = f"{path}: " if path else ""
        self.mistakes.append(f"{begin}expected {expected}, found {format_value(found)}")

    def read_document(self, file: Path, path: str = "") -> Any:
        """The one document of a file; None, and a mistake, without."""
        begin = f"{path}: " if path else ""
        try:
            text = file.read_bytes().decode("utf-8-sig")
            return load_yaml(text)
        except FileNotFoundError:
            self.mistakes.append(f"{begin}there is no file {file}")
        except yaml.MarkedYAMLError as error:
            line = f", line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
            self.mistakes.append(f"{begin}{file} cannot be read: {error.problem}{line}")
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            self.mistakes.append(f"{begin}{file} cannot be read: {' '.join(str(error).split())}")
        return None

    def read_fields(self, found: object, path: str, known: tuple[str, ...], needed: Iterable[str]) -> dict[str, Any]:
        """A mapping of known fields."""
        if not isinstance(found, dict):
            self.add_error(path, f"a mapping with {', '.join(known)}", found)
            return {}
        begin = f"{path}." if path else ""
        for field in found:
            if field not in known:
                near = did_you_mean(str(field), known)
                self.mistakes.append(f"{begin}{field}: expected one of {', '.join(known)}{near}")
        for field in needed:
            if field not in found:
                self.mistakes.append(f"{begin}{field} is missing")
        return found

    def read_items(self, found: object, path: str) -> list[Any]:
        """A list."""
        if isinstance(found, list | tuple):
            return list(found)
        self.add_error(path, "a list", found)
        return []

    def read_texts(self, found: object, path: str) -> list[str]:
        """A list of texts."""
        return [self.read_text(item, f"{path}[{index}]") for index, item in enumerate(self.read_items(found, path))]

    def read_text(self, found: object, path: str) -> str:
        """A text."""
        if isinstance(found, str):
            return found
        is_number = isinstance(found, int | float)
        self.add_error(path, "text (put it into quotes)" if is_number else "text", found)
        return ""

    def read_fixture(self, found: object, path: str) -> Fixture[Any]:
        """A fixture, with its spec from the file where one is named."""
        fields = self.read_fields(found, path, _FIXTURE_FIELDS, ("name",))
        if not fields:
            return Fixture("", None)
        given = [field for field in ("spec", "specFile") if field in fields]
        spec = fields.get("spec")
        if len(given) != 1:
            self.mistakes.append(f"{path}: expected either spec or specFile, found {' and '.join(given) or 'neither'}")
        elif given == ["specFile"]:
            where = f"{path}.specFile"
            name = self.read_text(fields["specFile"], where)
            spec = self.read_document(self._folder / name, where) if name else None
        return Fixture(
            self.read_text(fields.get("name", ""), f"{path}.name"),
            spec,
            requires=self.read_expectations(fields.get("requires", ()), f"{path}.requires"),
            forbids=self.read_expectations(fields.get("forbids", ()), f"{path}.forbids"),
        )

    def read_expectations(self, found: object, path: str) -> list[Expectation]:
        """Names of mutations, with or without a version."""
        return [
            self.read_expectation(item, f"{path}[{index}]") for index, item in enumerate(self.read_items(found, path))
        ]

    def read_expectation(self, found: object, path: str) -> Expectation:
        """The name of a mutation, or a mapping of it and a version."""
        if not isinstance(found, dict):
            return self.read_text(found, path)
        fields = self.read_fields(found, path, _EXPECTATION_FIELDS, ("mutation",))
        name = self.read_text(fields.get("mutation", ""), f"{path}.mutation")
        return (name, self.read_text(fields["for"], f"{path}.for")) if "for" in fields else name
