"""Errors about content of a registry that manifests, layouts and layers share. Pure."""

from __future__ import annotations

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason

__all__ = ["PLAIN_HTTP_HINT", "build_size_error", "build_unsupported_error"]

PLAIN_HTTP_HINT = "if it has no TLS on purpose, add it to setting 'plain-http-registries'"
"""Hint for a registry without TLS."""


def build_unsupported_error(what: str, expected: str, found: str) -> ResolutionError:
    """Return an ``UnsupportedContent`` error for content in an unsupported form.

    Args:
        what: The name of the content.
        expected: The supported form.
        found: The actual form, without parts of the content.
    """
    return ResolutionError(Reason.UNSUPPORTED_CONTENT, f"{what}: expected {expected}, found {found}")


def build_size_error(what: str, max_bytes: int, found: str) -> ResolutionError:
    """Return a ``TooLarge`` error for content above its size limit.

    Args:
        what: The name of the content.
        max_bytes: The limit in bytes.
        found: The actual size, or its source.
    """
    return ResolutionError(Reason.TOO_LARGE, f"{what}: too large: expected at most {max_bytes} bytes, found {found}")
