"""Validation of a matrix' arguments before anything is built; each error is one sentence with its path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from konverge._internal.suggestions import did_you_mean
from konverge_cluster._internal.testing.version_matrix.fixtures import Fixture, parse_expectations

__all__ = ["find_contradictions", "find_shape_errors", "format_value"]

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,100}")


def find_shape_errors(versions: object, fixtures: object, exclude: object) -> Iterator[str]:
    """Yield errors for arguments that are not lists of the expected type or repeat a name."""
    named = [("versions", versions, ""), ("fixtures", fixtures, ".name")]
    for path, value, suffix in named:
        if not _is_list(value):
            yield f"{path}: expected a list, found {format_value(value)}"
            continue
        if not value:
            yield f"{path}: expected at least one, found none"
        seen: set[str] = set()
        for index, item in enumerate(value):
            if suffix and not isinstance(item, Fixture):
                yield f"{path}[{index}]: expected a Fixture, found {format_value(item)}"
                continue
            name = item.name if suffix else item
            where = f"{path}[{index}]{suffix}"
            if not isinstance(name, str):
                yield f"{where}: expected text, found {format_value(name)}"
            elif not _FILE_NAME.fullmatch(name):
                yield f"{where}: {name!r} cannot be a file name: expected letters, digits, then also . _ + -"
            elif name in seen:
                yield f"{where}: {name!r} occurs twice"
            else:
                seen.add(name)
            if suffix:
                for field in ("requires", "forbids"):
                    yield from _find_expectation_errors(f"{path}[{index}].{field}", getattr(item, field))
    if not _is_list(exclude):
        yield f"exclude: expected a list, found {format_value(exclude)}"
        return
    for index, name in enumerate(exclude):
        if not isinstance(name, str) or not name:
            yield f"exclude[{index}]: expected the name of a mutation, found {format_value(name)}"


def find_contradictions(
    versions: Sequence[str], fixtures: Sequence[Fixture[Any]], exclude: Sequence[str]
) -> Iterator[str]:
    """Yield errors for unknown versions, and for mutations that are required and also forbidden or excluded."""
    required: dict[str, str] = {}
    for index, fixture in enumerate(fixtures):
        requires, forbids = parse_expectations(fixture.requires), parse_expectations(fixture.forbids)
        for field, expectations in (("requires", requires), ("forbids", forbids)):
            for place, (name, version) in enumerate(expectations):
                if version is not None and version not in versions:
                    yield (
                        f"fixtures[{index}].{field}[{place}]: {name!r} is meant for {version!r}, "
                        f"expected one of versions{did_you_mean(version, versions)}"
                    )
        for place, (name, version) in enumerate(requires):
            required.setdefault(name, fixture.name)
            if (name, None) in forbids or (name, version) in forbids:
                yield f"fixtures[{index}].requires[{place}]: {name!r} is forbidden too"
    for index, name in enumerate(exclude):
        if name in required:
            yield f"exclude[{index}]: {name!r} is required by fixture {required[name]!r}: it needs no exception"


def format_value(value: object) -> str:
    """Return the value for an error message."""
    return repr(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"


def _find_expectation_errors(path: str, expectations: object) -> Iterator[str]:
    if not _is_list(expectations):
        yield f"{path}: expected a list of mutations, found {format_value(expectations)}"
        return
    for index, value in enumerate(expectations):
        parts = (value,) if isinstance(value, str) else value
        is_pair = isinstance(parts, tuple) and len(parts) in (1, 2)
        if not (is_pair and all(isinstance(part, str) and part for part in parts)):
            yield (
                f"{path}[{index}]: expected the name of a mutation, or a pair of a name and a version, "
                f"found {format_value(value)}"
            )


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    # No iterator: a second iteration would be empty.
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
