"""Filter for aiohttp's log records about the connections of konverge's servers.

aiohttp answers 400 to a request that is not HTTP or has too long headers, and logs a traceback of 30 lines. Any client
that reaches the port could cause that at any rate. These records are dropped. All other records are logged, including
unexpected errors that aiohttp caught.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from aiohttp.http import HttpProcessingError

__all__ = ["build_connection_logger"]


def build_connection_logger(name: str, on_bad_request: Callable[[], None] = lambda: None) -> logging.Logger:
    """Return the logger for an ``aiohttp.web.AppRunner`` (its `logger`), which drops records about malformed requests.

    Args:
        name: Name of the logger that receives all other records.
        on_bad_request: Called for each request that is not HTTP.
    """
    target = logging.getLogger(name)

    def should_log(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            on_bad_request()
            return False
        return target.isEnabledFor(record.levelno)

    # One per server, collected with it. If the first request of a connection is not HTTP, aiohttp logs that only in
    # DEBUG.
    log = logging.Logger(name, logging.DEBUG)
    log.parent = target
    log.addFilter(should_log)
    return log
