"""The log of ``konverge resolve`` on stderr: warnings as one line each, and everything with ``--verbose``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from konverge._internal.runtime.log_formatters import install_formatter
from konverge_resolution._internal.cli.progress_display import CLEAR_LINE, is_terminal

__all__ = ["log_to_stderr"]

_LOGGER = "konverge"


@contextmanager
def log_to_stderr(*, is_verbose: bool) -> Iterator[None]:
    """Write the log of the block to stderr.

    Args:
        is_verbose: Whether to write everything; otherwise only warnings and errors.
    """
    logger, handler = logging.getLogger(_LOGGER), logging.StreamHandler(sys.stderr)
    if is_verbose:
        install_formatter(handler)
    else:
        # The line of the progress may be there.
        start = CLEAR_LINE if is_terminal(sys.stderr) else ""
        handler.setFormatter(logging.Formatter(f"{start}konverge: warning: %(message)s"))
    level, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if is_verbose else logging.WARNING)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates
