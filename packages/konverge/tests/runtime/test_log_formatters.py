"""Log records as lines."""

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.runtime.reconciliation import Reconciliation, current_reconciliation
from konverge.kube import ObjectKey
from konverge.observability import JsonFormatter, LogFormat, TextFormatter, install_formatter

MOMENT = datetime(2026, 1, 31, 8, 0, 0, 123456, tzinfo=UTC)


class Odd:
    """An object whose texts cannot be computed."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __repr__(self) -> str:
        raise RuntimeError("no text either")


@pytest.fixture
def in_a_pass() -> Iterator[None]:
    token = current_reconciliation.set(Reconciliation("webapp", ObjectKey("default", "web"), "id-1"))
    yield
    current_reconciliation.reset(token)


def write_log(log_format: LogFormat, message: Any, *args: Any, **options: Any) -> str:
    """Return the lines that one call of a logger with an installed handler writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    install_formatter(handler, log_format)
    logger = logging.Logger("author.code")
    logger.addFilter(_stamp)
    logger.addHandler(handler)
    logger.warning(message, *args, **options)
    return stream.getvalue()


def _stamp(record: logging.LogRecord) -> bool:
    record.created = MOMENT.timestamp()
    return True


def as_json(message: Any, *args: Any, **options: Any) -> dict[str, Any]:
    text = write_log("json", message, *args, **options)
    assert text.endswith("\n")
    assert text.count("\n") == 1
    line: dict[str, Any] = json.loads(text)
    return line


def test_a_json_line_has_time_level_logger_and_message() -> None:
    assert as_json("hello %s", "world") == {
        "time": "2026-01-31T08:00:00.123Z",
        "level": "WARNING",
        "logger": "author.code",
        "message": "hello world",
    }


@pytest.mark.usefixtures("in_a_pass")
def test_a_line_within_a_reconcile_has_its_fields() -> None:
    line = as_json("hello")
    assert (line["controller"], line["object"], line["reconcile_id"]) == ("webapp", "default/web", "id-1")
    assert write_log("text", "hello") == (
        "2026-01-31T08:00:00.123Z WARNING author.code: hello controller=webapp object=default/web reconcile_id=id-1\n"
    )


def test_a_traceback_is_a_field_of_the_line() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        line = as_json("it failed", exc_info=True)

    assert line["message"] == "it failed"
    assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert line["exception"].endswith("ValueError: two\nlines")


def test_a_traceback_in_text_cannot_be_taken_for_records() -> None:
    try:
        raise ValueError("two\n2026-01-31T08:00:00.123Z ERROR   root: forged")
    except ValueError:
        text = write_log("text", "it failed", exc_info=True)

    assert [line for line in text.splitlines() if line.startswith("2026")] == [
        "2026-01-31T08:00:00.123Z WARNING author.code: it failed"
    ]


def test_what_is_passed_as_extra_becomes_fields() -> None:
    line = as_json("hello", extra={"count": 3, "tags": ["a", {"b": None}], "level": "mine", "when": MOMENT})
    assert (line["count"], line["tags"], line["level"]) == (3, ["a", {"b": None}], "WARNING")
    assert (line["level_"], line["when"]) == ("mine", "2026-01-31T08:00:00.123456+00:00")
    assert write_log("text", "hello", extra={"count": 3, "why": "no space left"}).endswith(
        'hello count=3 why="no space left"\n'
    )


def test_no_repr_of_an_object_is_shown() -> None:
    class Credentials:
        def __repr__(self) -> str:
            return "hunter2"

    formats: tuple[LogFormat, ...] = ("json", "text")
    for log_format in formats:
        text = write_log(log_format, "hello", extra={"login": Credentials(), "all": [Credentials()]})
        assert "hunter2" not in text
        assert "<Credentials>" in text


def test_the_bridges_of_structlog_are_understood() -> None:
    wrapped = as_json({"event": "hello", "user": "me", "_record": object()}, extra={"_logger": object(), "_name": "x"})
    rendered = as_json("hello", extra={"user": "me"})

    assert wrapped == rendered
    assert (rendered["message"], rendered["user"]) == ("hello", "me")


@pytest.mark.parametrize("log_format", ["json", "text"])
@pytest.mark.parametrize(
    ("message", "args", "extra"),
    [
        pytest.param("%d and %d", ("one",), {}, id="arguments that do not fit"),
        pytest.param("%s", (Odd(),), {}, id="an argument without a text"),
        pytest.param(Odd(), (), {}, id="a message without a text"),
        pytest.param("a\ud800b", (), {"c\ud800": "\udfff"}, id="half a surrogate pair"),
        pytest.param("two\r\nlines\x1b[2J\u2028\x85", (), {"a\nb": "c\nd"}, id="ends of lines"),
        pytest.param("", (), {"n": float("nan"), "i": 10**400, "b": b"\xff", "o": Odd(), "s": {1}}, id="odd values"),
        pytest.param({Odd(): 1, 2: {3: Odd()}}, (), {}, id="a mapping of odd things"),
        pytest.param("x" * 1_000_000, (), {"y": "z" * 1_000_000}, id="a flood"),
    ],
)
def test_odd_records_become_one_bounded_line(
    log_format: LogFormat, message: Any, args: tuple[Any, ...], extra: dict[str, Any]
) -> None:
    text = write_log(log_format, message, *args, extra=extra)

    assert len(text.splitlines()) == 1
    assert len(text) < 50_000


def test_a_value_that_holds_itself_is_cut() -> None:
    endless: list[Any] = []
    endless.append(endless)

    assert as_json("hello", extra={"endless": endless})["endless"] == [[[["…"]]]]


@given(st.text(), st.dictionaries(st.text(min_size=1), st.none() | st.text() | st.integers() | st.floats()))
def test_any_text_and_any_fields_are_one_line(message: str, fields: dict[str, Any]) -> None:
    record = logging.makeLogRecord({"msg": message, **{f"x{name}": value for name, value in fields.items()}})

    assert json.loads(JsonFormatter().format(record))["message"] == message
    assert len(TextFormatter().format(record).splitlines()) == 1


def test_more_fields_than_a_line_should_hold_are_left_out() -> None:
    wide = {str(number): "x" * 5_000 for number in range(60)}

    assert set(as_json("hello", extra={"wide": wide})) == {"time", "level", "logger", "message"}


def test_an_odd_time_is_no_reason_to_fail() -> None:
    record = logging.makeLogRecord({"msg": "hello", "created": float("inf")})

    assert TextFormatter().format(record).startswith("1970-01-01T00:00:00.000Z")


def test_installing_twice_filters_once() -> None:
    handler = logging.StreamHandler(io.StringIO())
    install_formatter(handler, "json")
    install_formatter(handler, "text")

    assert len(handler.filters) == 1
    assert isinstance(handler.formatter, TextFormatter)
