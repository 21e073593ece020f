"""What aiohttp says of the connections of our servers.

A request that is no HTTP, or has headers that are too long, is answered 400; aiohttp logs a traceback of 30 lines for
each besides, which whoever can reach the port can have as often as he likes. Of those nothing is logged; everything
else, also a mistake of our own that aiohttp caught, is.
"""

from __future__ import annotations

import logging

from aiohttp.http import HttpProcessingError

__all__ = ["connection_log"]


def connection_log(name: str) -> logging.Logger:
    """The logger for an ``aiohttp.web.AppRunner`` (its `logger`), which passes over what clients did wrong.

    Args:
        name: The logger's name.
    """
    log = logging.getLogger(name)
    log.addFilter(_is_no_clients_mistake)  # the same one again is not added
    return log


def _is_no_clients_mistake(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)
