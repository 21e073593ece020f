"""The steps of the reflector, and its reactions to responses."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec
import pytest

from konverge._internal.cache import InformerStatistics, Reflector, Store, StoreChange
from konverge._internal.cache.reflector_steps import OpenWatch, ReadPage, WaitStep
from konverge._internal.client.watch import SilentWatchError
from konverge.client import ListPage
from konverge.clock import SeededEntropy
from konverge.errors import (
    ApiError,
    ConnectionFailedError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    KindNotServedError,
    KonvergeError,
    NotConnectedError,
    ServerError,
    TooManyRequestsError,
)
from konverge.kube import Object
from tests.cache.objects import CONFIG_MAP, bookmark, config_map, item, key, line

UNREADABLE = b'{"type":"MODIFIED","object":{"spec":"\xff"}}'


class Run:
    """A reflector with the time and the changes that it reported."""

    def __init__(self, *, streaming: bool = True, keep: set[str] | None = None) -> None:
        self.keep = keep if keep is not None else set()
        self.statistics = InformerStatistics()
        self.store = Store(
            CONFIG_MAP, None if keep is None else lambda meta: meta.name in self.keep, statistics=self.statistics
        )
        self.reflector = Reflector(
            CONFIG_MAP, self.store, SeededEntropy(), streaming=streaming, statistics=self.statistics
        )
        self.now = 100.0
        self.changes: list[tuple[str, str]] = []

    def step(self) -> OpenWatch | ReadPage | WaitStep:
        return self.reflector.next_step(self.now)

    def after_waiting(self) -> OpenWatch | ReadPage:
        """Return the next step after any delay."""
        step = self.step()
        if isinstance(step, WaitStep):
            self.now += step.seconds
            step = self.step()
        assert not isinstance(step, WaitStep)
        return step

    def page(self, *objects: Object, version: str = "10", following: str = "") -> None:
        page = ListPage([item(obj) for obj in objects], version, following)
        self.reflector.add_items(page.items)
        self.hear(self.reflector.finish_page(page, self.now))

    def lines(self, *lines: bytes) -> KonvergeError | None:
        changes, error = self.reflector.process_lines(list(lines), self.now)
        self.hear(changes)
        if error is not None:
            self.reflector.on_failure(error, self.now)
        return error

    def fail(self, error: KonvergeError) -> None:
        self.reflector.on_failure(error, self.now)

    def watching(self) -> Run:
        """Drive the reflector to an open watch after an empty list at version 10."""
        self.step()
        if self.reflector.synced:
            return self
        self.reflector.on_watch_opened(self.now)
        self.lines(bookmark(10, end=True))
        return self

    def hear(self, changes: list[StoreChange]) -> None:
        for change in changes:
            old = "" if change.old is None else change.old.resource_version
            new = "" if change.new is None else change.new.resource_version
            self.changes.append((old, new))


def list_again(run: Run, *objects: Object, version: int) -> None:
    """Leave the watch, and stream a list with these objects."""
    assert run.reflector.should_leave_watch
    run.reflector.on_watch_left(run.now)
    step = run.step()
    assert isinstance(step, OpenWatch)
    assert step.initial_events
    run.reflector.on_watch_opened(run.now)
    run.lines(*(line("ADDED", obj) for obj in objects), bookmark(version, end=True))


def error_line(code: int, reason: str = "") -> bytes:
    return line("ERROR", {"kind": "Status", "code": code, "reason": reason, "message": "words of the server"})


# The first list.


def test_it_begins_with_a_streaming_list() -> None:
    step = Run().step()

    assert isinstance(step, OpenWatch)
    assert (step.initial_events, step.resource_version) == (True, "")


def test_a_streaming_list_is_complete_at_its_bookmark() -> None:
    run = Run()
    run.step()
    run.reflector.on_watch_opened(run.now)
    run.lines(line("ADDED", config_map(7)), line("ADDED", config_map(5, "other")))
    before = (run.reflector.synced, len(run.store), list(run.changes))
    run.lines(bookmark(8), bookmark(10, end=True))

    assert before == (False, 0, [])
    assert run.reflector.synced
    assert sorted(run.changes) == [("", "5"), ("", "7")]
    assert run.store.resource_version == "10"


def test_silence_is_borne_longer_once_the_streaming_list_is_complete() -> None:
    run = Run()
    step = run.step()
    assert isinstance(step, OpenWatch)
    run.reflector.on_watch_opened(run.now)
    while_streaming = run.reflector.idle_timeout_seconds
    run.lines(bookmark(10, end=True))

    assert step.idle_timeout_seconds == while_streaming
    assert while_streaming < 60 < run.reflector.idle_timeout_seconds, "bookmarks come about once a minute"


def test_changes_during_a_streaming_list_count() -> None:
    run = Run()
    run.step()
    run.reflector.on_watch_opened(run.now)
    run.lines(line("ADDED", config_map(7)), line("ADDED", config_map(8, "other")))
    run.lines(line("MODIFIED", config_map(9)), line("DELETED", config_map(10, "other")), bookmark(10, end=True))

    assert run.changes == [("", "9")]


def test_the_stream_goes_on_as_a_watch() -> None:
    run = Run().watching()
    run.lines(line("ADDED", config_map(11)))

    assert run.changes == [("", "11")]
    assert run.store.resource_version == "11"


ENDS: dict[str, Callable[[Run], None]] = {
    "refused": lambda run: run.fail(InvalidError("sendInitialEvents is forbidden for watch")),
    "no bookmark": lambda run: run.fail(SilentWatchError("no bookmark came")),
    "ended early": lambda run: run.reflector.on_watch_ended(run.now),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_when_no_streaming_list_comes_all_is_listed_page_by_page(end: Callable[[Run], None]) -> None:
    run = Run()
    run.step()
    run.reflector.on_watch_opened(run.now)
    end(run)

    assert run.after_waiting() == ReadPage("", 500)
    run.page(config_map(7))
    assert run.changes == [("", "7")]


@pytest.mark.parametrize(("end", "is_tried_again"), [("refused", False), ("no bookmark", True), ("ended early", True)])
def test_only_a_server_that_refuses_is_not_asked_for_a_streaming_list_again(end: str, is_tried_again: bool) -> None:
    run = Run()
    run.step()
    run.reflector.on_watch_opened(run.now)
    ENDS[end](run)
    run.after_waiting()
    run.fail(ServerError("no"))
    again = run.after_waiting()
    run.page(config_map(7))
    run.step()
    run.fail(ExpiredError("too old"))

    assert again == ReadPage("", 500), "the pages are tried until they are through"
    assert isinstance(run.after_waiting(), OpenWatch) is is_tried_again


def test_a_streaming_list_whose_end_is_late_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    run = Run()
    run.step()
    run.reflector.on_watch_opened(run.now)
    for revision in range(1, 16):
        run.now += 1
        run.lines(line("ADDED", config_map(revision, f"web-{revision}")))

    assert caplog.messages == [
        "v1/ConfigMap: the streaming list is incomplete after 10 s: "
        "expected a bookmark that ends it (10 objects so far)"
    ]


def test_a_streaming_list_that_breaks_is_tried_again_from_the_start() -> None:
    run = Run()
    run.step()
    run.reflector.on_watch_opened(run.now)
    run.lines(line("ADDED", config_map(7)))
    run.fail(ConnectionFailedError("broke"))
    step = run.after_waiting()
    run.reflector.on_watch_opened(run.now)
    run.lines(line("ADDED", config_map(8, "other")), bookmark(10, end=True))

    assert isinstance(step, OpenWatch)
    assert run.changes == [("", "8")]


# Pages.


def test_pages_are_read_to_the_end_before_anything_is_seen() -> None:
    run = Run(streaming=False)
    first = run.step()
    run.page(config_map(5), version="10", following="more")
    second, seen = run.step(), len(run.store)
    run.page(config_map(6, "other"), version="10")
    third = run.step()

    assert (first, second) == (ReadPage("", 500), ReadPage("more", 500))
    assert seen == 0
    assert run.changes == [("", "5"), ("", "6")]
    assert isinstance(third, OpenWatch)
    assert (third.resource_version, third.initial_events) == ("10", False)


def test_pages_that_expire_are_read_again_in_one_piece() -> None:
    run = Run(streaming=False)
    run.step()
    run.page(config_map(5), following="more")
    run.fail(ExpiredError("the continue token is too old"))
    step = run.after_waiting()
    run.page(config_map(6, "other"))

    assert step == ReadPage("", 0)
    assert run.changes == [("", "6")]


def test_pages_that_lead_around_are_a_failure_and_the_list_begins_anew() -> None:
    run = Run(streaming=False)
    for token in ("A", "B"):
        run.step()
        run.page(config_map(7), following=token)
    with pytest.raises(ConnectionFailedError, match="expected a new continue token, found a repeated one") as failure:
        run.page(config_map(7), following="A")
    run.fail(failure.value)

    assert run.after_waiting() == ReadPage("", 500)
    run.page(config_map(7), following="A")
    assert run.step() == ReadPage("A", 500)


def test_an_item_that_cannot_be_read_is_left_out_with_a_word(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(streaming=False)
    run.step()
    page = ListPage([msgspec.Raw(b'{"metadata": 7}'), item(config_map(5))], "10", "")
    with caplog.at_level(logging.WARNING):
        run.reflector.add_items(page.items)
        run.hear(run.reflector.finish_page(page, run.now))

    assert run.changes == [("", "5")]
    assert "cannot parse an object that the server sent" in caplog.text


# Watching.


def test_watches_end_at_random_so_that_a_fleet_does_not_come_back_together() -> None:
    run = Run().watching()
    lengths = {step.timeout_seconds for step in (run.step() for _ in range(20)) if isinstance(step, OpenWatch)}

    assert len(lengths) == 20
    assert min(lengths) >= 300
    assert max(lengths) <= 600


def test_a_watch_that_ends_is_resumed_at_once_where_it_ended() -> None:
    run = Run().watching()
    run.lines(line("ADDED", config_map(11)))
    run.now += 300
    run.reflector.on_watch_ended(run.now)
    step = run.step()

    assert isinstance(step, OpenWatch)
    assert (step.resource_version, step.initial_events) == ("11", False)


def test_bookmarks_alone_move_where_a_watch_is_resumed() -> None:
    run = Run().watching()
    run.lines(bookmark(50))
    run.fail(ConnectionFailedError("broke"))
    step = run.after_waiting()

    assert isinstance(step, OpenWatch)
    assert step.resource_version == "50"
    assert run.changes == []


@pytest.mark.parametrize(
    "error",
    [
        NotConnectedError("connection refused"),
        ServerError("etcd has no leader"),
        TooManyRequestsError("slow down"),
        ForbiddenError("no"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failed_watch_is_resumed_after_a_pause_without_a_list(error: KonvergeError) -> None:
    run = Run().watching()
    run.fail(error)
    pause = run.step()
    step = run.after_waiting()

    assert isinstance(pause, WaitStep)
    assert isinstance(step, OpenWatch)
    assert step.resource_version == "10"
    assert run.reflector.synced


TOO_LARGE = ApiError(
    "Too large resource version",
    code=504,
    reason="Timeout",
    details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
)


@pytest.mark.parametrize(
    "error", [ExpiredError("too old"), SilentWatchError("silent"), TOO_LARGE], ids=["410", "silence", "too large"]
)
def test_when_the_server_does_not_know_the_version_all_is_listed_again(error: KonvergeError) -> None:
    run = Run().watching()
    run.lines(line("ADDED", config_map(11)), line("ADDED", config_map(12, "vanished")))
    run.changes.clear()
    run.fail(error)
    step = run.after_waiting()
    seen_meanwhile = len(run.store)
    run.reflector.on_watch_opened(run.now)
    run.lines(line("ADDED", config_map(15)), bookmark(20, end=True))

    assert isinstance(step, OpenWatch)
    assert step.initial_events
    assert seen_meanwhile == 2
    assert sorted(run.changes) == [("11", "15"), ("12", "")]


def test_an_error_event_in_a_watch_counts_after_what_came_before_it() -> None:
    run = Run().watching()
    error = run.lines(line("ADDED", config_map(11)), error_line(410, "Expired"), line("ADDED", config_map(12, "other")))
    step = run.after_waiting()

    assert isinstance(error, ExpiredError)
    assert run.changes == [("", "11")]
    assert isinstance(step, OpenWatch)
    assert step.initial_events


def test_a_watch_that_is_cut_on_its_way_is_resumed_at_once_where_it_was_cut() -> None:
    run = Run().watching()
    for version in range(11, 20):
        run.step()
        run.reflector.on_watch_opened(run.now)
        run.lines(bookmark(version))
        run.now += 2.0
        run.fail(ConnectionFailedError("a load balancer closed it"))
        step = run.step()

        assert isinstance(step, OpenWatch)
        assert step.resource_version == str(version)
        assert run.reflector.last_error is None


def test_a_watch_that_is_cut_as_soon_as_it_is_open_is_asked_for_with_pauses() -> None:
    run = Run().watching()
    run.reflector.on_watch_opened(run.now)
    run.now += 0.1
    run.fail(ConnectionFailedError("a load balancer closed it"))

    assert isinstance(run.step(), WaitStep)


def test_a_watch_that_is_cut_each_time_it_has_brought_something_is_resumed_every_second() -> None:
    run = Run().watching()
    begun = run.now
    for version in range(11, 41):
        step = run.after_waiting()
        assert isinstance(step, OpenWatch)
        assert step.resource_version == str(version - 1)
        run.reflector.on_watch_opened(run.now)
        run.lines(line("MODIFIED", config_map(version)))
        run.now += 0.01
        run.fail(ConnectionFailedError("a load balancer closed it"))

    assert len(run.changes) == 30
    assert 28 <= run.now - begun <= 30


@pytest.mark.parametrize("ends_well", [True, False])
def test_watches_that_open_but_bring_nothing_are_asked_for_with_pauses_of_a_few_seconds(ends_well: bool) -> None:
    run = Run().watching()
    found = []
    for _ in range(9):
        run.reflector.on_watch_opened(run.now)
        if ends_well:
            run.reflector.on_watch_ended(run.now)
        else:
            run.fail(ConnectionFailedError("a load balancer closed it"))
        step = run.step()
        assert isinstance(step, WaitStep)
        found.append(step.seconds)
        run.after_waiting()

    bounds = [0.8, 1.6, 3.2, 3.2, 3.2, 3.2, 3.2, 3.2, 3.2]
    assert all(low <= pause <= 1.5 * low for low, pause in zip(bounds, found, strict=True))


def test_a_watch_that_always_ends_at_once_is_asked_for_with_pauses() -> None:
    run = Run().watching()
    run.now += 300
    run.reflector.on_watch_ended(run.now)
    run.step()
    run.reflector.on_watch_opened(run.now)
    run.now += 0.1
    run.reflector.on_watch_ended(run.now)

    assert isinstance(run.step(), WaitStep)


def test_a_short_watch_with_events_is_resumed_at_once() -> None:
    run = Run().watching()
    run.reflector.on_watch_opened(run.now)
    run.lines(line("ADDED", config_map(11)))
    run.reflector.on_watch_ended(run.now)

    assert isinstance(run.step(), OpenWatch)


@pytest.mark.parametrize(
    "brought", [line("ADDED", config_map(11)), bookmark(12), b'{"type":"ADDED","object":{}}', b'{"object":{}}']
)
def test_short_watches_in_a_row_are_asked_for_with_pauses_whatever_they_bring(brought: bytes) -> None:
    run = Run().watching()
    run.lines(UNREADABLE)
    list_again(run, version=10)  # the list for what cannot be read was made a moment ago
    for _ in range(2):
        run.after_waiting()
        run.reflector.on_watch_opened(run.now)
        run.lines(brought)
        run.reflector.on_watch_ended(run.now)

    assert isinstance(run.step(), WaitStep)


@pytest.mark.parametrize(
    "broken",
    [
        b'{"type":"ADDED","object":{"spec":"\xff"}}',
        b'{"type":"\xff","object":{}}',
        b'{"type":"ADDED","object":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    ],
    ids=["spec is not UTF-8", "type is not UTF-8", "too deep"],
)
def test_an_event_that_no_parser_reads_is_left_out_and_the_others_are_not(broken: bytes) -> None:
    run = Run().watching()

    assert run.lines(broken, line("ADDED", config_map(11))) is None
    assert run.changes


def test_when_watches_come_to_nothing_for_a_minute_all_is_listed_again() -> None:
    run = Run().watching()
    run.fail(ServerError("no"))
    began = run.now
    steps = []
    while run.now - began < 59:
        steps.append(run.after_waiting())
        run.fail(ServerError("no"))
    run.now += 1
    last = run.after_waiting()

    assert len(steps) > 4
    assert not any(step.initial_events for step in steps if isinstance(step, OpenWatch))
    assert isinstance(last, OpenWatch)
    assert last.initial_events


@pytest.mark.parametrize("error", [TooManyRequestsError("slow down"), NotConnectedError("refused")])
def test_a_busy_or_unreachable_server_is_never_asked_for_a_list(error: KonvergeError) -> None:
    run = Run().watching()
    steps = []
    for _ in range(50):
        run.fail(error)
        steps.append(run.after_waiting())

    assert not any(step.initial_events for step in steps if isinstance(step, OpenWatch))


@pytest.mark.parametrize(
    "odd",
    [
        b'{"type": "ADDED", "object": null}',
        b'{"type": "ADDED", "object": {"apiVersion": "v1", "kind": "ConfigMap"}}',
        b'{"type": 7}',
        b"[]",
        line("ADDED", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "resourceVersion": "11"}}),
        line("SOMETHING", config_map(11, "x")),
        line("BOOKMARK", {"metadata": []}),
    ],
    ids=["no object", "no metadata", "no type", "no event", "another kind", "another type", "odd bookmark"],
)
def test_an_odd_event_ends_nothing(odd: bytes) -> None:
    run = Run().watching()
    error = run.lines(odd, line("ADDED", config_map(12)))

    assert error is None
    assert run.changes == [("", "12")]


def test_after_an_event_that_cannot_be_read_all_is_listed_again() -> None:
    run = Run().watching()
    run.lines(line("ADDED", config_map(11)), UNREADABLE, line("ADDED", config_map(13, "other")))
    list_again(run, config_map(12), config_map(13, "other"), version=13)

    assert run.changes == [("", "11"), ("", "13"), ("11", "12")]
    assert not run.reflector.should_leave_watch


def test_events_that_cannot_be_read_make_a_list_every_ten_minutes_at_most() -> None:
    run = Run().watching()
    run.lines(UNREADABLE)
    list_again(run, version=11)
    lists = []
    for _ in range(100):
        run.now += 60
        run.lines(UNREADABLE, UNREADABLE)
        if run.reflector.should_leave_watch:
            lists.append(run.now)
            list_again(run, version=11)

    assert len(lists) == 10


def test_the_list_for_an_event_that_comes_too_soon_is_made_up_for() -> None:
    run = Run().watching()
    run.lines(UNREADABLE)
    list_again(run, version=11)
    run.lines(UNREADABLE)
    at_once = run.reflector.should_leave_watch
    run.now += 600
    run.lines(bookmark(12))

    assert not at_once
    assert run.reflector.should_leave_watch


def test_an_object_that_a_list_cannot_show_makes_no_other_list() -> None:
    run = Run()
    run.step()
    run.reflector.on_watch_opened(run.now)
    run.lines(UNREADABLE, bookmark(10, end=True))

    assert run.reflector.synced
    assert not run.reflector.should_leave_watch


def test_what_is_not_json_ends_the_watch_but_not_the_store() -> None:
    run = Run().watching()
    error = run.lines(line("ADDED", config_map(11)), b'{"type": "ADD')
    step = run.after_waiting()

    assert isinstance(error, ConnectionFailedError)
    assert isinstance(step, OpenWatch)
    assert step.resource_version == "11"


# Pauses.


def pauses(run: Run, count: int) -> list[float]:
    found = []
    for _ in range(count):
        run.fail(ServerError("no"))
        step = run.step()
        assert isinstance(step, WaitStep)
        found.append(step.seconds)
        run.now += step.seconds
    return found


def test_pauses_grow_to_a_cap_with_jitter() -> None:
    found = pauses(Run(), 9)

    bounds = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30]
    assert all(low <= pause <= 1.5 * low for low, pause in zip(bounds, found, strict=True))
    assert len(set(found)) == 9


def test_healthy_seconds_take_failures_back_one_by_one() -> None:
    run = Run().watching()
    pauses(run, 50)
    run.lines(bookmark(11))
    run.now += 6.1
    (long,) = pauses(run, 1)
    run.lines(bookmark(12))
    run.now += 12.1
    (shorter,) = pauses(run, 1)
    run.lines(bookmark(13))
    run.now += 30.1
    (short,) = pauses(run, 1)

    assert long >= 25.6
    assert 3.2 <= shorter <= 1.5 * 3.2
    assert short <= 1.2


def test_pauses_do_not_grow_while_it_works_for_much_longer_than_they_take() -> None:
    run = Run().watching()
    found = []
    for version in range(11, 20):
        run.lines(bookmark(version, end=True))
        run.now += 10.0
        found += pauses(run, 1)

    assert max(found) <= 1.2


def test_pauses_grow_where_it_works_for_a_moment_only() -> None:
    run = Run().watching()
    found = []
    for version in range(11, 20):
        run.lines(bookmark(version, end=True))
        run.now += 1.0
        found += pauses(run, 1)

    assert found[-1] >= 30


def test_the_server_may_ask_for_a_longer_pause() -> None:
    run = Run().watching()
    run.fail(TooManyRequestsError("slow down", retry_after_seconds=60.0))
    run.reflector.expedite(run.now)
    step = run.step()

    assert isinstance(step, WaitStep)
    assert step.seconds == pytest.approx(60)


# A kind that is not served.


def test_a_kind_that_is_gone_makes_the_store_unsynced_but_tells_no_deletions() -> None:
    run = Run().watching()
    run.lines(line("ADDED", config_map(11)))
    run.changes.clear()
    run.fail(KindNotServedError("gone"))

    assert not run.reflector.synced
    assert run.changes == []
    assert key() in run.store


def test_somebody_who_waits_shortens_the_pause_to_a_second() -> None:
    run = Run()
    pauses(run, 5)
    run.fail(KindNotServedError("not yet"))
    run.reflector.expedite(run.now)
    step = run.step()

    assert isinstance(step, WaitStep)
    assert step.seconds == pytest.approx(1)


# Health.


def test_the_last_problem_is_known_until_something_works() -> None:
    run = Run().watching()
    healthy = run.reflector.last_error
    run.fail(ServerError("no"))
    failing = run.reflector.last_error
    run.lines(bookmark(11))

    assert (healthy, str(failing), run.reflector.last_error) == (None, "no", None)


def test_any_word_of_the_server_proves_freshness() -> None:
    run = Run()
    before = run.reflector.confirmed_at
    run.watching()
    run.now += 60
    run.lines(bookmark(11))

    assert before is None
    assert run.reflector.confirmed_at == run.now


# Wanting another list.


def test_when_more_is_kept_the_watch_is_left_for_a_list() -> None:
    run = Run(keep=set()).watching()
    run.lines(line("ADDED", config_map(11)))
    run.keep.add("web")
    number = run.reflector.widen()
    leaves = run.reflector.should_leave_watch
    run.reflector.on_watch_left(run.now)
    step = run.step()
    run.reflector.on_watch_opened(run.now)
    run.lines(line("ADDED", config_map(11)), bookmark(20, end=True))

    assert leaves
    assert isinstance(step, OpenWatch)
    assert step.initial_events
    assert run.reflector.lists_done >= number
    assert run.changes == [("", "11")]
    assert not run.reflector.should_leave_watch


def test_when_more_is_kept_during_a_list_another_follows_it() -> None:
    run = Run(keep=set())
    run.step()
    run.reflector.on_watch_opened(run.now)
    run.lines(line("ADDED", config_map(7)))
    run.keep.add("web")
    numbers = {run.reflector.widen() for _ in range(10)}
    left_too_early = run.reflector.should_leave_watch
    run.lines(bookmark(10, end=True))
    done = run.reflector.lists_done

    assert not left_too_early
    assert numbers == {done + 1}, "one for all"
    assert run.reflector.should_leave_watch


def test_when_nothing_was_dropped_nothing_is_listed_again() -> None:
    run = Run().watching()

    assert run.reflector.widen() == run.reflector.lists_done
    assert not run.reflector.should_leave_watch


# Statistics.


def test_what_the_upkeep_costs_is_counted() -> None:
    run = Run()
    run.step()
    run.reflector.on_watch_opened(run.now)
    run.lines(line("ADDED", config_map(7)), line("ADDED", config_map(8, "other")))
    run.now += 2
    run.lines(bookmark(10, end=True))
    run.lines(line("MODIFIED", config_map(11)), line("MODIFIED", config_map(9)))
    run.now += 300
    run.reflector.on_watch_ended(run.now)
    run.step()
    run.reflector.on_watch_opened(run.now)
    run.reflector.on_watch_ended(run.now)

    assert run.statistics.lists == 1
    assert run.statistics.list_seconds == pytest.approx(2)
    assert run.statistics.items_listed == 2
    assert run.statistics.watches == 2
    assert run.statistics.short_watches == 1
    assert run.statistics.watch_seconds == pytest.approx(302)
    assert run.statistics.events == 5
    assert run.statistics.stale_events == 1
    assert run.statistics.last_resource_version == "11"
