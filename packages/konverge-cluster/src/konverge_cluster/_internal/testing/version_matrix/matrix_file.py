"""A version matrix in a YAML file, which contains everything but the build function.

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

from konverge._internal.component import Component
from konverge._internal.kube.yaml_loader import load_yaml
from konverge._internal.primitives.resource_protocol import Resource
from konverge._internal.suggestions import did_you_mean
from konverge.errors import BuildError
from konverge_cluster._internal.testing.version_matrix.argument_validation import format_value
from konverge_cluster._internal.testing.version_matrix.fixtures import Expectation, Fixture
from konverge_cluster._internal.testing.version_matrix.version_matrix import VersionMatrix

__all__ = ["load_matrix"]

_MATRIX_FIELDS = ("folder", "versions", "exclude", "revealSecrets", "fixtures")
_FIXTURE_FIELDS = ("name", "spec", "specFile", "requires", "forbids")
_EXPECTATION_FIELDS = ("mutation", "for")


def load_matrix(path: str | os.PathLike[str], build: Callable[[str, Any], Component | Resource]) -> VersionMatrix[Any]:
    """Load the matrix that a YAML file describes.

    Args:
        path: The path of the file. Paths inside the file are relative to its folder.
        build: See `VersionMatrix`; a spec is the value from YAML, with dates as text.

    Raises:
        konverge.errors.BuildError: The file is invalid; the error lists everything that is wrong, each with its path.
    """
    file = Path(path).absolute()
    reader = _MatrixReader(file.parent)
    value = reader.read_document(file)
    if reader.errors:
        raise BuildError(f"version matrix {path}", reader.errors)
    fields = reader.read_fields(value, "", _MATRIX_FIELDS, ("folder", "versions", "fixtures"))
    folder = reader.read_text(fields.get("folder", "."), "folder")
    versions = reader.read_texts(fields.get("versions", ()), "versions")
    exclude = reader.read_texts(fields.get("exclude", ()), "exclude")
    reveal = fields.get("revealSecrets", False)
    if not isinstance(reveal, bool):
        reader.add_error("revealSecrets", "true or false", reveal)
    fixtures = [
        reader.read_fixture(item, f"fixtures[{index}]")
        for index, item in enumerate(reader.read_items(fields.get("fixtures", ()), "fixtures"))
    ]
    subject = f"version matrix {path}"
    if reader.errors:
        raise BuildError(subject, reader.errors)
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
    """Reader of values that collects all errors; after an error it returns an unused value of the right type."""

    def __init__(self, folder: Path) -> None:
        self.errors: list[str] = []
        self._folder = folder

    def add_error(self, path: str, expected: str, value: object) -> None:
        """Record an error; an empty path means the whole file."""
        begin = f"{path}: " if path else ""
        self.errors.append(f"{begin}expected {expected}, found {format_value(value)}")

    def read_document(self, file: Path, path: str = "") -> Any:
        """Return the only document of a file; None after an error."""
        begin = f"{path}: " if path else ""
        try:
            text = file.read_bytes().decode("utf-8-sig")
            return load_yaml(text)
        except FileNotFoundError:
            self.errors.append(f"{begin}file {file} does not exist")
        except yaml.MarkedYAMLError as error:
            line = f", line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
            self.errors.append(f"{begin}{file} cannot be read: {error.problem}{line}")
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            self.errors.append(f"{begin}{file} cannot be read: {' '.join(str(error).split())}")
        return None

    def read_fields(self, value: object, path: str, known: tuple[str, ...], needed: Iterable[str]) -> dict[str, Any]:
        """Return a mapping with only known fields."""
        if not isinstance(value, dict):
            self.add_error(path, f"a mapping with {', '.join(known)}", value)
            return {}
        begin = f"{path}." if path else ""
        for field in value:
            if field not in known:
                near = did_you_mean(str(field), known)
                self.errors.append(f"{begin}{field}: expected one of {', '.join(known)}{near}")
        for field in needed:
            if field not in value:
                self.errors.append(f"{begin}{field}: expected a value, found none")
        return value

    def read_items(self, value: object, path: str) -> list[Any]:
        """Return a list; empty after an error."""
        if isinstance(value, list | tuple):
            return list(value)
        self.add_error(path, "a list", value)
        return []

    def read_texts(self, value: object, path: str) -> list[str]:
        """Return a list of strings."""
        return [self.read_text(item, f"{path}[{index}]") for index, item in enumerate(self.read_items(value, path))]

    def read_text(self, value: object, path: str) -> str:
        """Return a string; empty after an error."""
        if isinstance(value, str):
            return value
        is_number = isinstance(value, int | float)
        self.add_error(path, "text (add quotes)" if is_number else "text", value)
        return ""

    def read_fixture(self, value: object, path: str) -> Fixture[Any]:
        """Return a fixture, with its spec from a file if the file is given."""
        fields = self.read_fields(value, path, _FIXTURE_FIELDS, ("name",))
        if not fields:
            return Fixture("", None)
        given = [field for field in ("spec", "specFile") if field in fields]
        spec = fields.get("spec")
        if len(given) != 1:
            self.errors.append(f"{path}: expected either spec or specFile, found {' and '.join(given) or 'neither'}")
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

    def read_expectations(self, value: object, path: str) -> list[Expectation]:
        """Return mutation names, with or without a version."""
        return [
            self.read_expectation(item, f"{path}[{index}]") for index, item in enumerate(self.read_items(value, path))
        ]

    def read_expectation(self, value: object, path: str) -> Expectation:
        """Return a mutation name, or a pair of a name and a version."""
        if not isinstance(value, dict):
            return self.read_text(value, path)
        fields = self.read_fields(value, path, _EXPECTATION_FIELDS, ("mutation",))
        name = self.read_text(fields.get("mutation", ""), f"{path}.mutation")
        return (name, self.read_text(fields["for"], f"{path}.for")) if "for" in fields else name
