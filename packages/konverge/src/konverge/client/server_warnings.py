"""What a server warns of: deprecated versions, unknown fields, what an admission policy has to say (KEP-1693)."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from konverge.client.server_text_filter import ServerTextFilter

__all__ = ["ServerWarning", "ServerWarningLog", "parse_warnings"]

# code, agent, quoted text, and perhaps a quoted date (RFC 9111, 5.5, in the form of its predecessor).
_WARNING = re.compile(r'\d{3} [^\s,]+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")

_MAX_PER_RESPONSE = 64
_MAX_TEXT = 1000
_MAX_REMEMBERED = 256

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerWarning:
    """One warning.

    Args:
        text: The server's sentence, without what may be the value of a Secret.
        method: The method of the request that it came with.
        path: The path of that.
    """

    text: str
    method: str
    path: str


def parse_warnings(header: str) -> list[str]:
    """The texts of a ``Warning`` header, or of several that were joined by commas; bounded in number and length."""
    texts = []
    for found in _WARNING.finditer(header):
        text = _ESCAPED.sub(r"\1", found.group(1))[:_MAX_TEXT]
        texts.append("".join(letter if letter.isprintable() else " " for letter in text))
        if len(texts) == _MAX_PER_RESPONSE:
            break
    return texts


class ServerWarningLog:
    """Passes warnings on: each to whoever asked for them, and a text that was not seen lately to the log.

    Args:
        listener: Hears of each warning; it may neither wait nor raise.
    """

    def __init__(self, listener: Callable[[ServerWarning], None] | None = None) -> None:
        self._listener = listener
        self._logged: OrderedDict[str, None] = OrderedDict()

    def process_headers(
        self, method: str, path: str, headers: Mapping[str, str], texts: ServerTextFilter, body: Any = None
    ) -> None:
        """Look through the headers of an answer; names are in lower case.

        Args:
            method: The method of the request.
            path: Its path.
            headers: The answer's.
            texts: Takes values of Secrets out of what is passed on.
            body: What the request sent.
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
