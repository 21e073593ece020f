from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.kube.durations import CALENDAR_UNITS, format_duration, parse_duration, parse_microseconds


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("0", timedelta(0)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5s", timedelta(seconds=1.5)),
        (".5m", timedelta(seconds=30)),
        ("-2s", timedelta(seconds=-2)),
        ("1500ms", timedelta(seconds=1.5)),
        ("3us", timedelta(microseconds=3)),
    ],
)
def test_durations_are_read_as_kubernetes_writes_them(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "5", "m", "1d", "PT5M", "1h 30m", "1.2.3s", "9" * 60 + "h", "1s" * 100])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.timedeltas())
def test_a_written_duration_reads_back(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (300, "5m"), (5400, "1h30m"), (61.25, "1m1.25s"), (-3600, "-1h")]
)
def test_durations_are_written_without_empty_parts(seconds: float, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


def test_calendar_units_have_days_and_no_sign() -> None:
    assert parse_duration("1y2mo3w4d", CALENDAR_UNITS) == timedelta(days=365 + 60 + 21 + 4)
    with pytest.raises(ValueError, match="90d, found '-1d'"):
        parse_duration("-1d", CALENDAR_UNITS)


def test_microseconds_are_not_rounded() -> None:
    assert parse_microseconds("1ns") != parse_microseconds("2ns")
    assert parse_microseconds("1h") == parse_microseconds("60m")
