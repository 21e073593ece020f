"""What aiohttp says of the connections of our servers.

A request that is no HTTP, or has headers that are too long, is answered 400; aiohttp logs a traceback of 30 lines for
each besides, which whoever can reach the port can have as often as he likes. Of those nothing is logged; everything
else, also a mistake of our own that aiohttp caught, is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from aiohttp.http import HttpProcessingError

__all__ = ["build_connection_logger"]


def build_connection_logger(name: str, on_bad_request: Callable[[], None] = lambda: None) -> logging.Logger:
    """The logger for an ``aiohttp.web.AppRunner`` (its `logger`), which passes over what clients did wrong.

    Args:
        name: The name of the logger to which everything else goes.
        on_bad_request: Called for each request that is no HTTP.
    """
    heard = logging.getLogger(name)

    def should_log(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            on_bad_request()
            return False
        return heard.isEnabledFor(record.levelno)

    # One for each server, which is gone with it. Of a connection's first request that is no HTTP, aiohttp speaks in
    # DEBUG only.
    log = logging.Logger(name, logging.DEBUG)
    log.parent = heard
    log.addFilter(should_log)
    return log
