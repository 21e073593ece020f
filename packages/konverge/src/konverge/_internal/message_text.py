"""Text from outside konverge in messages: shortened, quoted and on one line."""

from __future__ import annotations

__all__ = ["quote", "shorten", "to_printable"]

_ELLIPSIS = "…"
_DEFAULT_LIMIT = 60


def shorten(text: str, limit: int) -> str:
    """Return the text, or its beginning with an ellipsis: at most `limit` characters in all."""
    return text if len(text) <= limit else f"{text[: limit - len(_ELLIPSIS)]}{_ELLIPSIS}"


def quote(text: str, limit: int = _DEFAULT_LIMIT) -> str:
    """Return the shortened text in quotes and on one line; control characters are escaped."""
    return repr(shorten(text, limit))


def to_printable(text: str, limit: int) -> str:
    """Return the shortened text; in quotes if it contains characters that a terminal could interpret."""
    text = shorten(text, limit)
    return text if text.isprintable() else repr(text)
