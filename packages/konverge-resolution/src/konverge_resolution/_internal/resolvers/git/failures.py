"""Table from git's error messages to reasons and messages. Pure.

Git's own messages are not passed on: they repeat text of the server, which can repeat a credential.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import CA_CERTIFICATES_HINT, PLAIN_HTTP_HINT
from konverge_resolution._internal.http_statuses import CLIENT_ERRORS, OTHER_CLIENT_ERROR
from konverge_resolution._internal.reasons import Reason

__all__ = ["is_not_git_server", "is_refusing_objects", "parse_failure"]


@dataclass(frozen=True, slots=True)
class _FailurePattern:
    pattern: re.Pattern[str]
    reason: Reason
    message: str


def _build_pattern(words: str, reason: Reason, message: str) -> _FailurePattern:
    return _FailurePattern(re.compile(words, re.IGNORECASE), reason, message)


_NO_CREDENTIAL = (
    "requires a credential, but the request had none; name a Secret with parameter 'gitToken', or with parameter "
    "'gitSSHSecret' for ssh"
)
_BAD_CREDENTIAL = "rejects the credential of the request"
_TOO_LARGE = "sends more than the limit for one repository (setting 'max-repository-bytes')"
_UNPACKING = "sends data that needs more memory to unpack than the limit (setting 'max-memory-bytes')"
_COMPUTING = "sends data that needs more time or memory to unpack than the limit"
_BROKEN = "closed the connection in the middle of its response"
_NO_SERVER = (
    "is on a web server without git's protocol; expected the clone address of a git server, or git http-backend behind "
    "that web server"
)
_OTHER_PROTOCOL = "uses an unknown version of git's protocol; expected upload-pack of version 0, 1 or 2"
_REDIRECT = "redirects to another address; git follows no redirect, so use the current address of the repository"
_NO_COMMIT = "does not have the revision, or does not send it by its commit id"
_OTHER_OBJECTS = "does not send the requested objects"
_TOO_DEEP = "has more nested directories than git supports"

_RULES = (
    _build_pattern(r"died of signal 24|cpu time limit", Reason.TOO_LARGE, _COMPUTING),
    _build_pattern(
        r"died of signal 9", Reason.TOO_LARGE, _UNPACKING
    ),  # by the kernel, when the machine has no more memory
    _build_pattern(r"died of signal 25|file too large|disk quota exceeded", Reason.TOO_LARGE, _TOO_LARGE),
    _build_pattern(
        r"no space left on device", Reason.INTERNAL, "could not be fetched: no space left on the disk of the resolver"
    ),
    _build_pattern(r"out of memory|malloc failed|mmap failed|cannot allocate", Reason.TOO_LARGE, _UNPACKING),
    _build_pattern(r"maximum allowed tree depth|died of signal 11", Reason.TOO_LARGE, _TOO_DEEP),
    _build_pattern(
        r"host key verification failed",
        Reason.DENIED,
        "has a host key that is not in known_hosts of the credential",
    ),
    _build_pattern(r"dumb http transport", Reason.NOT_FOUND, _NO_SERVER),
    _build_pattern(r"unknown protocol|invalid server response", Reason.NOT_FOUND, _OTHER_PROTOCOL),
    _build_pattern(
        r"couldn't find remote ref|not our ref|unadvertised object|no such ref|shallow file has changed",
        Reason.NOT_FOUND,
        _NO_COMMIT,
    ),
    _build_pattern(r"error: 30[1-8]\b|unable to update url base", Reason.DENIED, _REDIRECT),
    _build_pattern(r"error: 5\d\d\b", Reason.UNREACHABLE, "reports an internal error"),
    _build_pattern(
        r"repository '.*' not found|error: (404|410)\b", Reason.NOT_FOUND, "does not exist, or requires a credential"
    ),
    *(_build_pattern(rf"error: {status}\b", *meaning) for status, meaning in CLIENT_ERRORS.items()),
    _build_pattern(r"error: 4\d\d\b", *OTHER_CLIENT_ERROR),
    _build_pattern(r"is this a git repository|not a git repository", Reason.NOT_FOUND, "is not a git repository"),
    _build_pattern(
        r"does not appear to be a git repository|repository not found|no such file or directory",
        Reason.NOT_FOUND,
        "does not exist, or requires a credential",
    ),
    _build_pattern(r"certificate", Reason.DENIED, f"has a certificate that is not trusted; {CA_CERTIFICATES_HINT}"),
    _build_pattern(
        r"unexpected tls packet|wrong version number|packet length too long|record layer",
        Reason.DENIED,
        f"supports no common version of TLS; {PLAIN_HTTP_HINT}",
    ),
    _build_pattern(r"gnutls_handshake|ssl", Reason.UNREACHABLE, "ended the TLS connection"),
    _build_pattern(
        r"mismatched algorithms|object format",
        Reason.NOT_FOUND,
        "has commit ids of another length; expected 40 or 64 digits as in its object format",
    ),
    _build_pattern(r"could not resolve host", Reason.UNREACHABLE, "has a host that cannot be resolved"),
    _build_pattern(
        r"failed to connect|couldn't connect|connection refused|no route|network is unreachable|timed out",
        Reason.UNREACHABLE,
        "cannot be connected to",
    ),
    _build_pattern(r"did not send all necessary objects", Reason.UNREACHABLE, _OTHER_OBJECTS),
    _build_pattern(
        r"early eof|transfer closed|unexpected disconnect|hung up|rpc failed|empty reply|connection reset|recv failure"
        r"|closed by remote"
        r"|bad line|expected|index-pack failed|(?<!-)pack |inflate|unpack|protocol error",
        Reason.UNREACHABLE,
        _BROKEN,
    ),
    # Without a message of index-pack itself it was killed, which git does not report.
    _build_pattern(r"invalid index-pack output", Reason.TOO_LARGE, _COMPUTING),
    _build_pattern(r"remote error", Reason.UNREACHABLE, "reports an internal error"),
)
_REFUSED = re.compile(
    r"could not read (username|password)|authentication failed|error: 40[13]\b|permission denied", re.IGNORECASE
)
_DUMB = re.compile(r"dumb http transport", re.IGNORECASE)
_REFUSING_OBJECTS = re.compile(r"unadvertised object", re.IGNORECASE)


def parse_failure(
    errors: str, *, uri: str, has_credential: bool, status: int | None = None, path: str = "", commit: str = ""
) -> ResolutionError:
    """Return the error for git's standard error.

    Args:
        errors: The standard error.
        uri: The repository, as records name it.
        has_credential: Whether a credential was sent.
        status: The exit status; negative for a signal, which git itself cannot report.
        path: The file that was fetched alone; empty for several files.
        commit: The commit that was requested by its id; empty for none.
    """
    own = _strip_server_text(errors)
    if status is not None and status < 0:
        own += f"\ngit died of signal {-status}"  # the words that git uses for its child processes
    if _REFUSED.search(own):
        reason = Reason.DENIED if has_credential else Reason.AUTHENTICATION_REQUIRED
        return ResolutionError(reason, f"repository {uri} {_BAD_CREDENTIAL if has_credential else _NO_CREDENTIAL}")
    for rule in _RULES:
        if rule.pattern.search(own):
            if path and rule.message is _TOO_LARGE:
                return ResolutionError(rule.reason, f"file {path!r} is larger than the limit for a definition")
            if commit and rule.message is _NO_COMMIT:
                message = f"does not have commit {commit}, or does not send it by its id"
                return ResolutionError(rule.reason, f"repository {uri} {message}")
            return ResolutionError(rule.reason, f"repository {uri} {rule.message}")
    return ResolutionError(Reason.INTERNAL, f"repository {uri} could not be read: git failed without a known cause")


def is_not_git_server(errors: str) -> bool:
    """Tell whether the server is a web server without git's protocol."""
    return _DUMB.search(_strip_server_text(errors)) is not None


def is_refusing_objects(errors: str) -> bool:
    """Tell whether a server filters, but then refuses the omitted objects (protocol 0)."""
    return _REFUSING_OBJECTS.search(_strip_server_text(errors)) is not None


def _strip_server_text(errors: str) -> str:
    """Return the errors without text of the server, which git marks with a prefix."""
    return "\n".join(line for line in errors.splitlines() if not line.startswith("remote:"))
