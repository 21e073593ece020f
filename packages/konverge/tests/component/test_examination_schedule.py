"""When the objects of a component that is not ready are examined."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.component.diagnosis.examination_schedule import ExaminationCache, ExaminationSchedule

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_examinations_double_their_distance_up_to_an_hour() -> None:
    schedule, now, found = ExaminationSchedule(START), START, []
    for _ in range(10):
        now = schedule.find_next_time(now)
        found.append((now - START).total_seconds())

    assert found == [15, 30, 60, 120, 240, 480, 960, 1920, 3840, 7440]
    assert [schedule.is_late(START + timedelta(seconds=seconds)) for seconds in (0, 14.9, 15, 999)] == [
        False,
        False,
        True,
        True,
    ]


@given(st.datetimes(timezones=st.just(UTC)))
def test_any_time_in_a_condition_gives_an_examination_within_an_hour(since: datetime) -> None:
    """Any client can write the transition time of a condition."""
    next_time = ExaminationSchedule(since).find_next_time(START)
    assert timedelta(0) < next_time - START <= timedelta(hours=1)


@pytest.mark.parametrize("ahead", [timedelta(days=1), datetime.max.replace(tzinfo=UTC) - START])
def test_a_time_in_the_far_future_counts_as_late(ahead: timedelta) -> None:
    assert ExaminationSchedule(START + ahead).is_late(START)


def test_a_clock_that_is_a_little_ahead_does_not_count_as_late() -> None:
    schedule = ExaminationSchedule(START + timedelta(seconds=20))
    assert not schedule.is_late(START)
    assert schedule.find_next_time(START) == START + timedelta(seconds=15)


def test_the_cache_has_a_limit_and_forgets_after_ten_seconds() -> None:
    cache = ExaminationCache(limit=2)
    for uid in ("a", "b", "c"):
        cache.store(uid, (uid,), START)

    assert [cache.find(uid, START) for uid in ("a", "b", "c")] == [None, ("b",), ("c",)]
    assert cache.find("c", START + timedelta(seconds=10)) is None
    assert cache.find("c", START - timedelta(seconds=1)) is None
    assert (cache.find_last("c"), cache.find_last("a")) == (("c",), ())
