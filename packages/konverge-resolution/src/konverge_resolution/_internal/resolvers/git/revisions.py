"""Validation of revisions and paths, and parsing of a server's references. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from konverge._internal.suggestions import did_you_mean
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.parameter_checks import build_param_error
from konverge_resolution._internal.reasons import Reason

__all__ = [
    "build_not_found_error",
    "find_commit",
    "is_commit",
    "list_candidates",
    "normalize_path",
    "normalize_revision",
    "parse_references",
]

_MAX_LENGTH = 1024
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REFERENCE = re.compile(r"^refs/(?:heads|tags)/")
_SHORT = re.compile(r"[0-9a-f]{4,63}", re.IGNORECASE)
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_ENCODED = re.compile(r"%(?:2e|2f|5c|00|0a)", re.IGNORECASE)


def is_commit(revision: str) -> bool:
    """Tell whether the revision is a full commit id: 40 or 64 hexadecimal digits."""
    return _COMMIT.fullmatch(revision) is not None


def normalize_revision(text: str) -> str:
    """Return a branch, a tag, a reference such as ``refs/tags/v1``, ``HEAD`` or a full commit id in lower case.

    The rules are those of ``git check-ref-format``, without a leading dash, which git would read as an option
    (CVE-2026-40938). Expressions such as ``HEAD~1``, ``main:file`` and ``a..b`` are refused.

    Raises:
        ResolutionError: The text is not one of these.
    """
    parts = text.split("/")
    is_name = (
        0 < len(text) <= _MAX_LENGTH
        and not text.startswith("-")
        and not text.endswith(".")
        and text != "@"
        and not _FORBIDDEN.search(text)
        and all(part and not part.startswith((".", "-")) and not part.endswith(".lock") for part in parts)
    )
    if not is_name or not text.isprintable():
        message = "expected the name of a branch or a tag, a full reference, or a commit's id of 40 or 64 digits"
        raise build_param_error("revision", f"{message}, found {text[:80]!r}")
    return text.lower() if is_commit(text.lower()) else text


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
    """Return the error for an unknown revision. A shortened commit id has its own message: no server finds those.

    Args:
        revision: The revision.
        uri: The repository, as records name it.
        references: The names of its references.
    """
    if _SHORT.fullmatch(revision):
        message = f"has no branch or tag {revision!r}; for a commit give its id in full, all 40 or 64 digits"
    else:
        names = (_REFERENCE.sub("", each) for each in references)
        message = (
            f"has no branch, tag or reference {revision[:120]!r}{did_you_mean(_REFERENCE.sub('', revision), names)}"
        )
    return ResolutionError(Reason.NOT_FOUND, f"parameter 'revision': repository {uri} {message}")
