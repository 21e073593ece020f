"""Validation of revisions and paths, and parsing of a server's references. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice

from konverge._internal.feature import VersionRange
from konverge._internal.suggestions import did_you_mean
from konverge.errors import KonvergeError
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.parameter_checks import build_param_error
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.version_selection import select_version

__all__ = [
    "build_not_found_error",
    "find_commit",
    "find_highest_tag",
    "find_short_commit",
    "is_commit",
    "is_name",
    "is_short_commit",
    "is_version_range",
    "list_candidates",
    "normalize_path",
    "normalize_revision",
    "parse_references",
    "spell_revision",
]

_MAX_LENGTH = 1024
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REFERENCE = re.compile(r"^refs/(?:heads|tags)/")
_SHORT_COMMIT = re.compile(r"[0-9a-f]{7,63}", re.IGNORECASE)
_RANGE_SIGN = re.compile(r"[\^~<>=|* ]|(?:^|\.)[xX](?:\.|$)")
_MAX_AMBIGUOUS = 100
_TAGS, _PEELED = "refs/tags/", "^{}"
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_ENCODED = re.compile(r"%(?:2e|2f|5c|00|0a)", re.IGNORECASE)


def is_commit(revision: str) -> bool:
    """Tell whether the revision is a full commit id: 40 or 64 hexadecimal digits."""
    return _COMMIT.fullmatch(revision) is not None


def normalize_revision(text: str) -> str:
    """Return a branch, a tag, a reference such as ``refs/tags/v1``, ``HEAD``, a commit id in lower case, or a range.

    The rules are those of ``git check-ref-format``, without a leading dash, which git would read as an option
    (CVE-2026-40938). Expressions such as ``HEAD~1``, ``main:file`` and ``a..b`` are refused.

    Raises:
        ResolutionError: The text is not one of these.
    """
    if not is_name(text) and not is_version_range(text):
        message = "expected a branch, a tag, a full reference, a commit id, or a range of versions such as ^1.2"
        raise build_param_error("revision", f"{message}, found {text[:80]!r}")
    return text.lower() if is_commit(text.lower()) else text


def spell_revision(text: str) -> tuple[str, ...]:
    """Return the spellings of a revision: its canonical form, then the revisions that it may be.

    A short name can be a tag or a branch. ``HEAD``, a commit id and a range can be any of them.
    """
    canonical = text.lower() if is_commit(text.lower()) else text
    if text == "HEAD" or is_commit(canonical) or is_short_commit(text) or is_version_range(text):
        return canonical, "*"
    if short := _REFERENCE.match(text):
        return canonical, text[short.end() :]
    return (canonical, *list_candidates(text))


def is_name(text: str) -> bool:
    """Tell whether a revision can be the name of a branch or a tag, or a commit id."""
    parts = text.split("/")
    is_valid = (
        0 < len(text) <= _MAX_LENGTH
        and not text.startswith("-")
        and not text.endswith(".")
        and text != "@"
        and not _FORBIDDEN.search(text)
        and all(part and not part.startswith((".", "-")) and not part.endswith(".lock") for part in parts)
    )
    return is_valid and text.isprintable()


def is_version_range(text: str) -> bool:
    """Tell whether a revision is a range of versions with a sign of one: ``^1.2``, ``>=1.2 <2``, ``v1.x``.

    ``v1.2`` is a name, and ``main`` too. A name with the form of a range (``v1.x``) is first looked up as a name.
    """
    if not _RANGE_SIGN.search(text) or not any(character.isdigit() for character in text) or not text.isprintable():
        return False
    try:
        VersionRange(text)
    except KonvergeError:
        return False
    return True


def is_short_commit(revision: str) -> bool:
    """Tell whether a revision can be the beginning of a commit id."""
    return _SHORT_COMMIT.fullmatch(revision) is not None


def find_short_commit(beginning: str, output: bytes) -> str | None:
    """Return the only commit whose id begins with these digits; None without one.

    Args:
        beginning: The first digits, from `is_short_commit`.
        output: The ids of all commits, one per line; there can be hundreds of thousands.

    Raises:
        ResolutionError: ``InvalidParams``: several commits begin so.
    """
    lines = re.finditer(rb"^%b[0-9a-f]*$" % beginning.lower().encode(), output, re.MULTILINE)
    found = {line[0].decode() for line in islice(lines, _MAX_AMBIGUOUS)}
    if len(found) > 1:
        message = f"expected more digits of the commit id, since {len(found)} commits begin with {beginning!r}"
        raise build_param_error("revision", message)
    return found.pop() if found else None


def find_highest_tag(revision: str, references: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the tag with the highest version in a range without pre-releases, and its commit; None without one.

    Args:
        revision: A range of versions.
        references: From `parse_references`.
    """
    tags = [name.removeprefix(_TAGS) for name in references if name.startswith(_TAGS) and not name.endswith(_PEELED)]
    best = select_version(tags, VersionRange(revision))
    if best is None:
        return None
    name = f"{_TAGS}{best}"
    return best, references.get(f"{name}{_PEELED}", references[name])


def normalize_path(text: str) -> str:
    """Return the normalized path in a repository: no leading slash, no empty parts and no ``.``.

    Raises:
        ResolutionError: The text is not a path, or leads out of the repository.
    """
    parts = [part for part in text.split("/") if part not in ("", ".")]
    message = ""
    if not parts or len(text) > _MAX_LENGTH or text.endswith("/"):
        message = f"expected the path of a file in the repository, at most {_MAX_LENGTH} characters"
    elif ".." in parts:
        message = "expected a path without .."
    elif "\\" in text or not text.isprintable() or _ENCODED.search(text):
        message = "expected a path without backslashes, control characters and encoded dots or slashes"
    if message:
        raise build_param_error("pathInRepo", f"{message}, found {text[:80]!r}")
    return "/".join(parts)


def list_candidates(revision: str) -> tuple[str, ...]:
    """Return the references that a revision may mean, in order: like git, tags precede branches."""
    if revision == "HEAD" or revision.startswith("refs/"):
        return (revision,)
    return (f"refs/tags/{revision}", f"refs/heads/{revision}")


def parse_references(output: bytes) -> Mapping[str, str]:
    """Return the commits by reference from the output of ``git ls-remote``; skip other lines."""
    found = {}
    for line in output.decode("utf-8", "replace").splitlines():
        commit, tab, name = line.partition("\t")
        if tab and is_commit(commit):
            found[name] = commit
    return found


def find_commit(revision: str, references: Mapping[str, str]) -> str | None:
    """Return the commit of a revision, for an annotated tag the tagged commit; None without one.

    Args:
        revision: From `normalize_revision`.
        references: From `parse_references`.
    """
    for name in list_candidates(revision):
        commit = references.get(f"{name}^{{}}") or references.get(name)
        if commit is not None:
            return commit
    return None


def build_not_found_error(revision: str, uri: str, references: Iterable[str]) -> ResolutionError:
    """Return the error for an unknown revision.

    Args:
        revision: The revision.
        uri: The repository, as records name it.
        references: The names of its references.
    """
    if is_short_commit(revision):
        message = (
            f"has no branch or tag {revision!r}, and no commit of its branches and tags begins so; give all digits"
        )
    elif is_version_range(revision):
        message = f"has no tag with a version in {revision[:120]!r} besides pre-releases"
    else:
        names = (_REFERENCE.sub("", each) for each in references)
        message = (
            f"has no branch, tag or reference {revision[:120]!r}{did_you_mean(_REFERENCE.sub('', revision), names)}"
        )
    return ResolutionError(Reason.NOT_FOUND, f"parameter 'revision': repository {uri} {message}")
