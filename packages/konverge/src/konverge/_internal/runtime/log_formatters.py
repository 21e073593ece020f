"""Formatters for log records: JSON for machines, text for people, both with the reconcile of the record.

`install_formatter` puts a formatter and `konverge.runtime.ReconciliationFilter` on a handler of the standard `logging`;
a program needs nothing else. Records of other libraries and of author code get the same fields.

With structlog, send its events through the standard loggers, with `structlog.stdlib.render_to_log_kwargs` or
`structlog.stdlib.ProcessorFormatter.wrap_for_formatter` as the last processor. The formatters support both forms, and
values that are bound to a logger become fields of the line. ::

    structlog.configure(
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.contextvars.merge_contextvars, structlog.stdlib.render_to_log_kwargs],
    )

A formatter never raises: logging must not break the code that logs. It prints no ``repr`` of an object that is passed
as a field, since a ``repr`` may contain confidential values.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec

from konverge._internal.runtime.reconciliation import ReconciliationFilter

__all__ = ["JsonFormatter", "LogFormat", "TextFormatter", "install_formatter"]

LogFormat: TypeAlias = Literal["json", "text"]

_RECONCILE_FIELDS = ("controller", "object", "reconcile_id")

# The attributes of every record; all others were passed as `extra`.
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_OURS = frozenset({"time", "level", "logger", "message", "exception", "stack", *_RECONCILE_FIELDS})

_TEXT_LIMIT = 16_384
_FIELDS_LIMIT = 64
_DEPTH_LIMIT = 4
_LINE_LIMIT = 131_072
_SAFE_INTEGER = 2**63

# Characters that JSON allows in a string, but that end a line for some readers or move a cursor.
_BREAKS = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


def install_formatter(handler: logging.Handler, log_format: LogFormat = "text") -> None:
    """Make the handler write lines in the format, with the controller, object and id of the current reconcile.

    Args:
        handler: For example a ``StreamHandler``.
        log_format: ``json`` or ``text``.
    """
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    if not any(isinstance(entry, ReconciliationFilter) for entry in handler.filters):
        handler.addFilter(ReconciliationFilter())


class JsonFormatter(logging.Formatter):
    """One JSON object in one line per record.

    Fields: ``time`` (RFC 3339, UTC, milliseconds), ``level``, ``logger``, ``message``; ``controller``, ``object`` and
    ``reconcile_id`` within a reconcile; ``exception`` and ``stack`` if the record has them, with the traceback as text;
    and the fields that were passed as ``extra``, within the limit of a line. A field with a reserved name gets an
    underscore at its end.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a line break."""
        line: dict[str, Any] = {
            "time": _format_time(record),
            "level": _to_text(record.levelname),
            "logger": _to_text(record.name),
        }
        message, fields = _extract_content(record)
        line["message"] = message
        for name in _RECONCILE_FIELDS:
            if value := record.__dict__.get(name):
                line[name] = _to_plain(value, 0)
        for name, text in _format_traces(self, record).items():
            line[name] = text
        for name, value in fields.items():
            line[name if name not in _OURS else f"{name}_"] = _to_plain(value, 0)
        text = msgspec.json.encode(line).decode()
        if len(text) > _LINE_LIMIT:
            text = msgspec.json.encode({name: line[name] for name in line if name in _OURS}).decode()
        return text.translate(_BREAKS)


class TextFormatter(logging.Formatter):
    """One line per record for people: time, level, logger, message, then the fields as ``name=value``.

    Characters that would break the line (or a terminal) are escaped. A traceback follows in indented lines, so that
    none of them looks like a record.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and the lines of a traceback."""
        message, fields = _extract_content(record)
        passed = {name: record.__dict__.get(name) for name in _RECONCILE_FIELDS}
        formatted = {name: _format_value(value) for name, value in {**passed, **fields}.items() if value is not None}
        written = "".join(f" {_escape_controls(name)}={value}" for name, value in formatted.items() if value)[
            :_LINE_LIMIT
        ]
        line = (
            f"{_format_time(record)} {_escape_controls(_to_text(record.levelname)):<7} "
            f"{_escape_controls(_to_text(record.name))}: "
        )
        line += _escape_controls(message) + written
        for text in _format_traces(self, record).values():
            line += "".join(f"\n    {_escape_controls(part)}" for part in text.splitlines())
        return line


def _extract_content(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """Return the message and the other fields of the record."""
    fields = {
        name: value
        for name, value in record.__dict__.items()
        if name not in _STANDARD and name not in _RECONCILE_FIELDS and not name.startswith("_")
    }
    if isinstance(record.msg, Mapping):  # an event dictionary of structlog
        event = {_to_text(name): value for name, value in record.msg.items() if not _to_text(name).startswith("_")}
        message = _to_text(event.pop("event", ""))
        fields |= event
    else:
        message = _format_message(record)
    kept = list(fields.items())[:_FIELDS_LIMIT]
    return message, {_to_text(name): value for name, value in kept}


def _format_message(record: logging.LogRecord) -> str:
    try:
        return _to_text(record.getMessage())
    except Exception:  # noqa: BLE001  # formatting the arguments may raise anything: the line is still useful
        return f"{_to_text(record.msg)} (the arguments do not fit this message)"


def _format_traces(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, str]:
    traces: dict[str, str] = {}
    if record.exc_info or record.exc_text:
        traces["exception"] = _format_exception(formatter, record)
    if record.stack_info:
        traces["stack"] = _to_text(record.stack_info)
    return traces


def _format_exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    try:
        if isinstance(record.exc_info, tuple) and record.exc_info[0] is not None:
            return _to_text(formatter.formatException(record.exc_info))
    except Exception:  # noqa: BLE001  # an exception whose text cannot be formatted must still be logged
        return "the traceback cannot be formatted"
    return _to_text(record.exc_text or "")


def _format_time(record: logging.LogRecord) -> str:
    try:
        moment = datetime.fromtimestamp(record.created, UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def _to_plain(value: Any, depth: int) -> Any:
    """Return the value as JSON data; of any other object only its type."""
    match value:
        case None | bool():
            return value
        case str():
            return _to_text(value)
        case int():
            return value if -_SAFE_INTEGER <= value < _SAFE_INTEGER else hex(value)[:_TEXT_LIMIT]
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return value.isoformat()
        case Mapping() | list() | tuple() if depth >= _DEPTH_LIMIT:
            return "…"
        case tuple() if hasattr(value, "_fields"):  # for example an object's key, which has its own text
            return _to_text(value)
        case Mapping():
            kept = list(value.items())[:_FIELDS_LIMIT]
            return {_to_text(name): _to_plain(item, depth + 1) for name, item in kept}
        case list() | tuple():
            return [_to_plain(item, depth + 1) for item in value[:_FIELDS_LIMIT]]
    return f"<{type(value).__name__}>"


def _to_text(value: object) -> str:
    """Return the text, cut to the limit, without characters that cannot be encoded."""
    try:
        text = str(value)
    except Exception:  # noqa: BLE001  # an error in the object's own code
        text = f"<{type(value).__name__}>"
    if len(text) > _TEXT_LIMIT:
        text = text[: _TEXT_LIMIT - 1] + "…"
    return text.encode("utf-8", "backslashreplace").decode()


def _format_value(value: object) -> str:
    plain = _to_plain(value, 0)
    text = plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
    needs_quotes = any(letter in text for letter in ' "=')
    return msgspec.json.encode(_escape_controls(text)).decode() if needs_quotes else _escape_controls(text)


def _escape_controls(text: str) -> str:
    """Return the text with escapes for characters that end a line or move a cursor."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape_letter(letter) for letter in text)


def _escape_letter(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
