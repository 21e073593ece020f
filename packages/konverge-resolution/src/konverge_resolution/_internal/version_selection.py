"""Selection of the highest version in a range, from the versions that a source has. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from konverge._internal.feature import VersionRange
from konverge._internal.feature.version_ranges import compare_versions
from konverge.errors import KonvergeError

__all__ = ["select_version"]

_PRERELEASE = re.compile(r"v?[0-9.]+-")


def select_version(versions: Iterable[str], wanted: VersionRange) -> str | None:
    """Return the highest version of a range without pre-releases; None without one.

    Args:
        versions: The existing versions; invalid ones are skipped.
        wanted: The range.
    """
    best: str | None = None
    for version in versions:
        try:
            # Invalid versions are skipped, so that one of them does not make all others unusable.
            if not _PRERELEASE.match(version) and wanted.enabled(version):
                best = version if best is None or compare_versions(version, best) > 0 else best
        except KonvergeError:
            continue
    return best
