"""Late calls of `konverge._internal.certificates`, whose package ``cryptography`` is an extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from konverge.errors import ConfigurationError

__all__ = ["require_cryptography"]


@contextmanager
def require_cryptography(what: str) -> Iterator[None]:
    """Report a failed import of ``cryptography`` in the block.

    Args:
        what: The feature.

    Raises:
        konverge.errors.ConfigurationError: The package is not installed.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "cryptography":
            raise
        raise ConfigurationError(
            f"{what} requires the package cryptography, which is not installed: pip install 'konverge[webhooks]'"
        ) from error
