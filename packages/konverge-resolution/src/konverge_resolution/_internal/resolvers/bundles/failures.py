"""What is wrong with what a registry gave: the sentences that its manifests, layouts and layers share. Pure."""

from __future__ import annotations

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason

__all__ = ["PLAIN_HTTP_HINT", "build_size_error", "build_unsupported_error"]

PLAIN_HTTP_HINT = "if it is meant to have none, name it in setting 'plain-http-registries'"
"""How a registry without TLS is asked."""


def build_unsupported_error(what: str, expected: str, found: str) -> ResolutionError:
    """``UnsupportedContent``: something is not of a form that is read here.

    Args:
        what: What it is.
        expected: What it should be.
        found: What it is instead; nothing of its content.
    """
    return ResolutionError(Reason.UNSUPPORTED_CONTENT, f"{what}: expected {expected}, found {found}")


def build_size_error(what: str, max_bytes: int, found: str) -> ResolutionError:
    """``TooLarge``: something has more bytes than there may be.

    Args:
        what: What it is.
        max_bytes: How many there may be.
        found: How many there are, or who says so.
    """
    return ResolutionError(Reason.TOO_LARGE, f"{what} is too large: expected at most {max_bytes} bytes, found {found}")
