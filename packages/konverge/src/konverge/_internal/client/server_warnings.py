"""The warnings of a server: deprecated versions, unknown fields, texts of admission policies (KEP-1693)."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from konverge._internal.client.server_text_filter import ServerTextFilter

__all__ = ["ServerWarning", "ServerWarningLog", "parse_warnings"]

# code, agent, quoted text, and optionally a quoted date (RFC 9111, 5.5, in the form of its predecessor).
_WARNING = re.compile(r'\d{3} [^\s,]+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")

_MAX_PER_RESPONSE = 64
_MAX_TEXT = 1000
_MAX_REMEMBERED = 256

_logger = logging.getLogger("konverge.client")


@dataclass(frozen=True, slots=True)
class ServerWarning:
    """One warning of the server.

    Args:
        text: The server's text, without possible values of Secrets.
        method: The method of the request.
        path: The path of the request.
    """

    text: str
    method: str
    path: str


def parse_warnings(header: str) -> list[str]:
    """Parse the texts of one or more ``Warning`` headers that are joined by commas; number and length are limited."""
    texts = []
    for match in _WARNING.finditer(header):
        text = _ESCAPED.sub(r"\1", match.group(1))[:_MAX_TEXT]
        texts.append("".join(letter if letter.isprintable() else " " for letter in text))
        if len(texts) == _MAX_PER_RESPONSE:
            break
    return texts


class ServerWarningLog:
    """The receiver of warnings: it passes each one to the listener, and logs a text that is new.

    Args:
        listener: The callback for each warning; it must neither block nor raise.
    """

    def __init__(self, listener: Callable[[ServerWarning], None] | None = None) -> None:
        self._listener = listener
        self._logged: OrderedDict[str, None] = OrderedDict()

    def process_headers(
        self, method: str, path: str, headers: Mapping[str, str], texts: ServerTextFilter, body: Any = None
    ) -> None:
        """Process the warnings in the headers of a response.

        Args:
            method: The method of the request.
            path: The path of the request.
            headers: The headers of the response; names are in lower case.
            texts: The filter that removes values of Secrets.
            body: The body of the request.
        """
        header = headers.get("warning")
        if not header:
            return
        for text in dict.fromkeys(texts.filter_warning(text, path, body) for text in parse_warnings(header)):
            if text not in self._logged:
                _logger.warning("the API server warns: %s (%s %s)", text, method, path)
            self._logged[text] = None
            self._logged.move_to_end(text)
            if len(self._logged) > _MAX_REMEMBERED:
                self._logged.popitem(last=False)
            if self._listener is not None:
                self._listener(ServerWarning(text, method, path))
