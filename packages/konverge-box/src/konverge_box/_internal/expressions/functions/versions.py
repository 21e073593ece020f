"""Functions that parse, compare and increment semantic versions."""

from __future__ import annotations

import re

from konverge._internal.feature.version_ranges import VersionRange, compare_versions, parse_version_numbers
from konverge.errors import KonvergeError
from konverge_box._internal.expressions.functions.function import build_group

__all__ = ["VERSIONS"]

_PREFIX = re.compile(r"\s*v")


def semver_major(version: str) -> int:
    """Return the major version: `semverMajor("v1.31.4")` is 1."""
    return _parse_numbers(version)[0]


def semver_minor(version: str) -> int:
    """Return the minor version: `semverMinor("v1.31.4")` is 31."""
    return _parse_numbers(version)[1]


def semver_patch(version: str) -> int:
    """Return the patch version, 0 if it is left out: `semverPatch("v1.31.4")` is 4."""
    return _parse_numbers(version)[2]


def semver_valid(version: str) -> bool:
    """Tell whether it is a version: one to three numbers; leading v, pre-release and build metadata are optional."""
    try:
        parse_version_numbers(version)
    except KonvergeError:
        return False
    return True


def semver_compare(version: str, other: str) -> int:
    """Return -1, 0 or 1 if the first is before, equal to or after the second; `1.0.0-rc.1` is before `1.0.0`."""
    try:
        return compare_versions(version, other)
    except KonvergeError as error:
        raise ValueError(str(error)) from None


def semver_bump(version: str, part: str) -> str:
    """Return the next `major`, `minor` or `patch` version: `semverBump("v1.2.3", "minor")` is `v1.3.0`."""
    major, minor, patch = _parse_numbers(version)
    bumped = {
        "major": (major + 1, 0, 0),
        "minor": (major, minor + 1, 0),
        "patch": (major, minor, patch + 1),
    }
    if part not in bumped:
        raise ValueError(f"expected major, minor or patch, found {part[:20]!r}")
    prefix = "v" if _PREFIX.match(version) else ""
    return prefix + ".".join(map(str, bumped[part]))


def semver_constraint(version: str, constraint: str) -> bool:
    """Tell whether it is in the range: `semverConstraint(spec.version, ">=8.5 <9")`; also `^1.2`, `~1.2`, `1.x`."""
    try:
        return VersionRange(constraint).enabled(version)
    except KonvergeError as error:
        raise ValueError(str(error)) from None


def _parse_numbers(version: str) -> tuple[int, int, int]:
    try:
        return parse_version_numbers(version)
    except KonvergeError as error:
        raise ValueError(str(error)) from None


VERSIONS = build_group(
    "Semantic versions",
    "",
    semver_major,
    semver_minor,
    semver_patch,
    semver_valid,
    semver_compare,
    semver_bump,
    semver_constraint,
)
