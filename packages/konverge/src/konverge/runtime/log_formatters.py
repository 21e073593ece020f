"""Log records as lines: JSON for machines, text for people, both with the pass that they belong to.

`install` puts a formatter and `konverge.runtime.ReconciliationFilter` on a handler of the standard `logging`; that is
all that a
program needs. Records of other libraries and of author's code get the same fields.

With structlog, let its events go through the standard loggers, with `structlog.stdlib.render_to_log_kwargs` or
`structlog.stdlib.ProcessorFormatter.wrap_for_formatter` as the last processor: both forms are understood here, and what
is bound to a logger becomes fields of the line. ::

    structlog.configure(
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.contextvars.merge_contextvars, structlog.stdlib.render_to_log_kwargs],
    )

A formatter never raises: a log line must not fail what it tells of. And it shows no ``repr`` of an object that is
passed as a field: nobody knows what that would print.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec

from konverge.runtime.reconciliation import ReconciliationFilter

__all__ = ["JsonFormatter", "LogFormat", "TextFormatter", "install_formatter"]

LogFormat: TypeAlias = Literal["json", "text"]

_RECONCILE_FIELDS = ("controller", "object", "reconcile_id")

# What every record has; all else was passed as `extra`.
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_OURS = frozenset({"time", "level", "logger", "message", "exception", "stack", *_RECONCILE_FIELDS})

_TEXT_LIMIT = 16_384
_FIELDS_LIMIT = 64
_DEPTH_LIMIT = 4
_LINE_LIMIT = 131_072
_SAFE_INTEGER = 2**63

# What JSON admits in a string as it is, and what ends a line for some readers or moves a cursor.
_BREAKS = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


def install_formatter(handler: logging.Handler, log_format: LogFormat = "text") -> None:
    """Let the handler write lines of that format, with the running pass's controller, object and reconcile id.

    Args:
        handler: For example a ``StreamHandler``.
        log_format: ``json`` or ``text``.
    """
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    if not any(isinstance(found, ReconciliationFilter) for found in handler.filters):
        handler.addFilter(ReconciliationFilter())


class JsonFormatter(logging.Formatter):
    """One JSON object in one line per record.

    Fields: ``time`` (RFC 3339, UTC, milliseconds), ``level``, ``logger``, ``message``; ``controller``, ``object`` and
    ``reconcile_id`` within a pass; ``exception`` and ``stack`` where the record has them, with the traceback as text;
    and what was passed as ``extra``, if that is not more than a line should hold. A name that is taken gets an
    underscore at its end.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
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

    What would break the line (or a terminal) is escaped. A traceback follows in lines of its own, indented, so that no
    line of it can be taken for a record.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, and those of a traceback."""
        message, fields = _extract_content(record)
        passed = {name: record.__dict__.get(name) for name in _RECONCILE_FIELDS}
        shown = {name: _format_value(value) for name, value in {**passed, **fields}.items() if value is not None}
        written = "".join(f" {_escape_controls(name)}={value}" for name, value in shown.items() if value)[:_LINE_LIMIT]
        line = (
            f"{_format_time(record)} {_escape_controls(_to_text(record.levelname)):<7} "
            f"{_escape_controls(_to_text(record.name))}: "
        )
        line += _escape_controls(message) + written
        for text in _format_traces(self, record).values():
            line += "".join(f"\n    {_escape_controls(part)}" for part in text.splitlines())
        return line


def _extract_content(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """The message and the fields besides."""
    fields = {
        name: value
        for name, value in record.__dict__.items()
        if name not in _STANDARD and name not in _RECONCILE_FIELDS and not name.startswith("_")
    }
    if isinstance(record.msg, Mapping):  # structlog's event dictionary
        said = {_to_text(name): value for name, value in record.msg.items() if not _to_text(name).startswith("_")}
        message = _to_text(said.pop("event", ""))
        fields |= said
    else:
        message = _format_message(record)
    kept = list(fields.items())[:_FIELDS_LIMIT]
    return message, {_to_text(name): value for name, value in kept}


def _format_message(record: logging.LogRecord) -> str:
    try:
        return _to_text(record.getMessage())
    except Exception:  # noqa: BLE001  # whatever formatting the arguments raises: the line is still worth having
        return f"{_to_text(record.msg)} (the arguments do not fit this message)"


def _format_traces(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, str]:
    found: dict[str, str] = {}
    if record.exc_info or record.exc_text:
        found["exception"] = _format_exception(formatter, record)
    if record.stack_info:
        found["stack"] = _to_text(record.stack_info)
    return found


def _format_exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    try:
        if isinstance(record.exc_info, tuple) and record.exc_info[0] is not None:
            return _to_text(formatter.formatException(record.exc_info))
    except Exception:  # noqa: BLE001  # an exception whose text cannot be had is still one
        return "the traceback cannot be shown"
    return _to_text(record.exc_text or "")


def _format_time(record: logging.LogRecord) -> str:
    try:
        moment = datetime.fromtimestamp(record.created, UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def _to_plain(value: Any, depth: int) -> Any:
    """The value as JSON has it; of any other object no more than its type."""
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
        case tuple() if hasattr(value, "_fields"):  # an object's key, for one, has a text of its own
            return _to_text(value)
        case Mapping():
            kept = list(value.items())[:_FIELDS_LIMIT]
            return {_to_text(name): _to_plain(each, depth + 1) for name, each in kept}
        case list() | tuple():
            return [_to_plain(each, depth + 1) for each in value[:_FIELDS_LIMIT]]
    return f"<{type(value).__name__}>"


def _to_text(value: object) -> str:
    """The text, bounded, and such as can be encoded."""
    try:
        text = str(value)
    except Exception:  # noqa: BLE001  # an odd object's own mistake
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
    """Without anything that ends a line or moves a cursor."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape_letter(letter) for letter in text)


def _escape_letter(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
