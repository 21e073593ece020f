"""Sets of semantic versions, written as ranges.

The syntax is that of npm and Masterminds/semver: ``>=8.5 <9``, ``^1.2``, ``~1.2``, ``1.x``, ``1.2 - 1.4``,
``8.4 || >=8.6``. The ``node-semver`` package implements the syntax and the order of versions. Two rules are added.
Versions can have the form that clusters use (``v1.31`` is 1.31.0). The length and form of a text are checked first,
because the regular expressions of the package take seconds for a few hundred blanks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from konverge._internal.message_text import quote
from konverge.errors import KonvergeError

__all__ = ["VersionRange", "compare_versions", "parse_version_numbers"]

_MAX_LENGTH = 256
_MAX_QUOTED_LENGTH = 60

_IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_SUFFIXES = rf"(-{_IDENTIFIERS})?(?:\+{_IDENTIFIERS})?"
_VERSION = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?{_SUFFIXES}")

_PARTIAL = rf"v?(?:[0-9]+|[xX*])(?:\.(?:[0-9]+|[xX*])){{0,2}}{_SUFFIXES}"
_BOUND = rf"(?:(?:[<>]=?|=|\^|~>?) ?)?{_PARTIAL}"
_ALTERNATIVE = re.compile(rf"{_PARTIAL} - {_PARTIAL}|{_BOUND}(?: {_BOUND})*")

_Alternatives: TypeAlias = tuple[tuple[tuple[Any, bool], ...], ...]
"""The bounds of each alternative, each with True if it names a pre-release."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A range of versions; a `konverge.feature.VersionConstraint`.

    ==================  ===========================================
    range               means
    ==================  ===========================================
    ``>=8.5 <9``        both; a comma can separate them
    ``8.4 || >=8.6``    either
    ``^1.2.3``          ``>=1.2.3 <2.0.0``; ``^0.2.3``: ``<0.3.0``
    ``~1.2.3``          ``>=1.2.3 <1.3.0``
    ``1.x``, ``1.2``    ``>=1.0.0 <2.0.0``, ``>=1.2.0 <1.3.0``
    ``1.2 - 1.4``       ``>=1.2.0 <1.5.0``
    ``*``               every version
    ==================  ===========================================

    A bound without a pre-release compares only the three numbers: ``8.6.0-rc.1`` is in ``>=8.6`` and not in ``<8.6``,
    and ``v1.32.9-eks-1`` is 1.32.9. A bound with a pre-release uses semver's precedence: ``8.6.0-rc.1`` is not in
    ``>=8.6.0-rc.2``. Therefore every version is in exactly one of ``<V`` and ``>=V``, and a release candidate gets the
    features of its release; with npm, ``8.6.0-rc.1`` is in neither. Build metadata (``v1.30.5+k3s1``) never counts.

    Args:
        text: The range; at most 256 characters.

    Raises:
        KonvergeError: The text is not a range.
    """

    text: str
    _alternatives: _Alternatives = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_alternatives", _parse_range(_check_length("version range", _RANGES, self.text)))

    def enabled(self, version: str) -> bool:
        """Return True if the version is in the range.

        Args:
            version: One to three numbers with semver suffixes, such as ``8.5.1``, ``v1.31``, ``8.6.0-rc.1``; at most
                256 characters. Surrounding blanks are ignored.

        Raises:
            KonvergeError: The text is not a version.
        """
        exact, numbers = _parse_version(_check_length("version", _VERSIONS, version))
        return any(
            all(bound.test(exact if names_prerelease else numbers) for bound, names_prerelease in bounds)
            for bounds in self._alternatives
        )


def parse_version_numbers(version: str) -> tuple[int, int, int]:
    """Return major, minor and patch of a version in the form of `VersionRange`.

    Raises:
        KonvergeError: The text is not a version.
    """
    _, numbers = _parse_version(_check_length("version", _VERSIONS, version))
    return numbers.major, numbers.minor, numbers.patch


def compare_versions(one: str, other: str) -> int:
    """Compare two versions by semver's precedence: -1, 0 or 1. A pre-release is lower than its version.

    Raises:
        KonvergeError: A text is not a version.
    """
    left, right = (_parse_version(_check_length("version", _VERSIONS, version))[0] for version in (one, other))
    order: int = left.compare(right)
    return order


_RANGES = "bounds such as '>=8.5 <9', '^1.2', '~1.2', '1.x' or '1.2 - 1.4', with '||' between alternatives"
_VERSIONS = "one to three numbers such as 8.5.1 or v1.31, perhaps with a pre-release (8.6.0-rc.1)"


def _check_length(what: str, expected: str, text: object) -> str:
    if not isinstance(text, str):
        raise _build_error(what, f"text: {expected}", type(text).__name__)
    if len(text) > _MAX_LENGTH:
        raise _build_error(what, f"at most {_MAX_LENGTH} characters", f"{len(text)}: {quote(text, _MAX_QUOTED_LENGTH)}")
    return text


def _build_error(what: str, expected: str, found: str) -> KonvergeError:
    return KonvergeError(f"cannot read the {what}: expected {expected}; found {found}")


# Each reconcile builds its components again, with the same few ranges and versions.
@lru_cache(maxsize=1024)
def _parse_range(text: str) -> _Alternatives:
    import nodesemver  # here, because its import takes 20 ms, and most programs have no range

    alternatives = [" ".join(part.split()) for part in text.replace(",", " ").split("||")]
    # For the package, an empty alternative means every version: `>=8.5 ||` would always be on.
    if not all(_ALTERNATIVE.fullmatch(part) for part in alternatives):
        raise _build_error("version range", _RANGES, quote(text, _MAX_QUOTED_LENGTH))
    try:
        parsed: list[list[Any]] = nodesemver.make_range("||".join(alternatives), loose=False).set
    except ValueError:
        raise _build_error("version range", _RANGES, quote(text, _MAX_QUOTED_LENGTH)) from None
    return tuple(
        tuple((bound, bool(bound.semver.prerelease)) for bound in bounds if bound.semver is not nodesemver.ANY)
        for bounds in parsed
    )


@lru_cache(maxsize=1024)
def _parse_version(text: str) -> tuple[Any, Any]:
    """Return the exact version, and the version of only its three numbers."""
    import nodesemver

    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise _build_error("version", _VERSIONS, quote(text, _MAX_QUOTED_LENGTH))
    major, minor, patch, prerelease = match.groups()
    numbers = f"{int(major)}.{int(minor or 0)}.{int(patch or 0)}"
    # After the check above, loose only allows a leading zero in a number of the pre-release.
    exact = f"{numbers}{prerelease or ''}"
    return nodesemver.make_semver(exact, loose=True), nodesemver.make_semver(numbers, loose=False)
