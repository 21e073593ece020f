"""The requests that a stream of recorded events requires."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from konverge._internal.runtime.event_series import EventLimits, EventRequest, EventSeries, EventTarget, Occurrence

START = datetime(2026, 1, 1, tzinfo=UTC)
WEB = EventTarget("demo.konverge.dev/v1", "WebApp", "default", "web", "uid-of-web")
CREATED = Occurrence("Normal", "CreatedService", "Create", "Created Service 'web'", WEB)
REFRESH_SECONDS = FINISH_SECONDS = 360.0


def at(now: float) -> datetime:
    return START + timedelta(seconds=now)


def record(series: EventSeries, now: float, occurrence: Occurrence = CREATED, times: int = 1) -> None:
    for _ in range(times):
        series.record(occurrence, at(now), now)


def take_all(series: EventSeries, now: float) -> list[EventRequest]:
    return list(iter(lambda: series.take(now), None))


def about(number: int) -> Occurrence:
    return replace(CREATED, regarding=replace(WEB, name=f"web-{number}", uid=f"uid-{number}"))


def test_the_first_occurrence_creates_an_event_without_a_series() -> None:
    series = EventSeries(0.0)
    record(series, 1.0)

    assert take_all(series, 2.0) == [EventRequest(CREATED, at(1), at(1), count=1, creates=True)]


def test_the_second_occurrence_writes_the_series_at_once() -> None:
    series = EventSeries(0.0)
    record(series, 1.0)
    take_all(series, 1.0)
    record(series, 5.0)

    assert take_all(series, 5.0) == [EventRequest(CREATED, at(1), at(5), count=2, creates=False)]


def test_further_occurrences_are_only_counted_until_the_refresh() -> None:
    series = EventSeries(0.0)
    for now in (0.0, 1.0):
        record(series, now)
        take_all(series, now)
    for now in range(2, 100):
        record(series, float(now))
        assert take_all(series, float(now)) == []

    assert series.compute_wait_seconds(100.0) == 2.0 + REFRESH_SECONDS - 100.0
    assert take_all(series, 2.0 + REFRESH_SECONDS) == [EventRequest(CREATED, at(0), at(99), count=100, creates=False)]


def test_what_waits_to_be_sent_is_counted_on() -> None:
    series = EventSeries(0.0)
    record(series, 1.0)
    record(series, 2.0, times=4)

    assert take_all(series, 3.0) == [EventRequest(CREATED, at(1), at(2), count=5, creates=True)]


def test_another_version_of_the_object_is_the_same_series_and_another_note_is_not() -> None:
    series = EventSeries(0.0)
    record(series, 0.0, replace(CREATED, regarding=replace(WEB, resource_version="1")))
    record(series, 0.0, replace(CREATED, regarding=replace(WEB, resource_version="2")))
    record(series, 0.0, replace(CREATED, note="Created Service 'other'"))

    assert [request.count for request in take_all(series, 0.0)] == [2, 1]


def test_after_a_quiet_time_the_same_occurrence_is_a_new_event() -> None:
    series = EventSeries(0.0)
    record(series, 0.0)
    take_all(series, 0.0)
    record(series, FINISH_SECONDS)

    assert take_all(series, FINISH_SECONDS) == [
        EventRequest(CREATED, at(FINISH_SECONDS), at(FINISH_SECONDS), count=1, creates=True)
    ]


def test_a_series_that_ends_has_its_last_count_written() -> None:
    series = EventSeries(0.0, EventLimits(finish=timedelta(seconds=60)))
    for now in (0.0, 1.0, 2.0):
        record(series, now)
        if now < 2:
            take_all(series, now)

    assert take_all(series, 62.0) == [EventRequest(CREATED, at(0), at(2), count=3, creates=False)]
    assert take_all(series, 63.0) == []
    assert series.compute_wait_seconds(63.0) is None


def test_one_object_gets_25_events_at_once_and_then_one_in_five_minutes() -> None:
    series = EventSeries(0.0)
    for number in range(40):
        record(series, 0.0, replace(CREATED, note=f"note {number}"))
    record(series, 0.0, about(1))

    assert len(take_all(series, 0.0)) == 25 + 1
    assert series.statistics.spared == 15
    record(series, 299.0, replace(CREATED, note="too soon"))
    record(series, 301.0, replace(CREATED, note="in time"))
    assert [request.occurrence.note for request in take_all(series, 301.0)] == ["in time"]


def test_all_objects_together_get_what_the_overall_rate_gives() -> None:
    series = EventSeries(0.0, EventLimits(burst=100, requests_per_second=10))
    for number in range(150):
        record(series, 0.0, about(number))

    assert len(take_all(series, 0.0)) == 100
    wait = series.compute_wait_seconds(0.0)
    assert wait is not None
    assert 0.09 < wait <= 0.1
    assert len(take_all(series, wait)) == 1
    assert len(take_all(series, 2.0)) == 19


def test_the_oldest_series_gives_way_when_there_are_too_many() -> None:
    series = EventSeries(0.0, EventLimits(series=3))
    for number in range(5):
        record(series, float(number), about(number))

    assert [request.occurrence for request in take_all(series, 5.0)] == [about(2), about(3), about(4)]
    assert series.statistics.overflowed == 2


def test_an_event_that_the_server_has_forgotten_is_created_again_with_its_count() -> None:
    series = EventSeries(0.0)
    record(series, 0.0)
    take_all(series, 0.0)
    record(series, 1.0)
    [request] = take_all(series, 1.0)
    series.mark_lost(request)

    assert take_all(series, 2.0) == [EventRequest(CREATED, at(0), at(1), count=2, creates=True)]


def test_what_is_put_back_goes_first() -> None:
    series = EventSeries(0.0)
    for number in range(3):
        record(series, 0.0, about(number))
    first = series.take(0.0)
    assert first is not None
    series.requeue(first)

    assert [request.occurrence for request in take_all(series, 0.0)] == [about(0), about(1), about(2)]


def test_the_end_writes_what_was_only_counted() -> None:
    series = EventSeries(0.0)
    for now in (0.0, 1.0, 2.0):
        record(series, now)
        if now < 2:
            take_all(series, now)
    series.finish()

    assert [request.count for request in take_all(series, 2.0)] == [3]


@example(
    [
        (0.0, 3, 1, False),
        (0.0, 3, 1, True),
        (0.0, 3, 1, False),
        *[(0.0, 0, note, False) for note in range(4)],
        (0.0, 1, 0, False),
    ]
)
@given(
    st.lists(
        st.tuples(st.floats(0.0, 400.0), st.integers(0, 6), st.integers(0, 3), st.booleans()), min_size=1, max_size=80
    )
)
def test_no_count_is_lost_and_nothing_grows_beyond_its_bounds(steps: list[tuple[float, int, int, bool]]) -> None:
    limits = EventLimits(object_burst=4, burst=6, requests_per_second=0.5, series=5)
    series = EventSeries(0.0, limits)
    now = 0.0
    sent_counts: dict[tuple[Occurrence, datetime], int] = {}
    for pause, number, note, takes in steps:
        now += pause
        record(series, now, replace(about(number), note=f"note {note}"))
        request = series.take(now) if takes else None
        if request is not None:
            key = (request.occurrence, request.first_time)
            assert request.creates == (key not in sent_counts)
            assert request.count > sent_counts.get(key, 0)
            sent_counts[key] = request.count
        assert series.pending <= limits.series
        wait = series.compute_wait_seconds(now)
        assert wait is not None
        assert wait >= 0
    statistics = series.statistics
    assert sum(sent_counts.values()) <= statistics.recorded == len(steps)
    if not (statistics.spared or statistics.overflowed):
        series.finish()
        for _ in range(50):
            now += 10
            for request in take_all(series, now):
                sent_counts[request.occurrence, request.first_time] = request.count
        assert sum(sent_counts.values()) == len(steps)
