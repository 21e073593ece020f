"""The state that the collections of one server share."""

from __future__ import annotations

import pytest

from konverge._internal.cache import Store
from konverge._internal.cache.reflector import Reflector
from konverge._internal.cache.reflector_steps import HistoryComparison, OpenWatch, WaitStep
from konverge._internal.cache.server_state import ServerState
from konverge.client import ListPage
from konverge.clock import SeededEntropy
from konverge.errors import (
    ConnectionFailedError,
    ForbiddenError,
    KonvergeError,
    NotConnectedError,
    ServerError,
    TooManyRequestsError,
)
from konverge.kube import Object
from tests.cache.objects import CONFIG_MAP, bookmark, config_map, item, line


class Kind:
    """A collection with a complete list and a watch that was open."""

    def __init__(self, server: ServerState, now: float = 0.0, *objects: Object, at: int = 10) -> None:
        self.store = Store(CONFIG_MAP)
        self.reflector = Reflector(CONFIG_MAP, self.store, SeededEntropy(), server=server)
        self.read(now, *objects, at=at)

    def read(self, now: float, *objects: Object, at: int) -> None:
        step = self.reflector.next_step(now)
        assert isinstance(step, OpenWatch)
        assert step.initial_events
        self.reflector.on_watch_opened(now)
        self.reflector.process_lines([*(line("ADDED", obj) for obj in objects), bookmark(at, end=True)], now)

    def seconds_left(self, now: float) -> float:
        step = self.reflector.next_step(now)
        return step.seconds if isinstance(step, WaitStep) else 0.0

    def fail_until(self, error: KonvergeError, now: float, end: float) -> float:
        """Let each attempt fail until the given time; return the time of the last failure."""
        failed_at = now
        while now < end:
            self.reflector.on_failure(error, now)
            failed_at = now
            now += self.seconds_left(now)
        return failed_at

    def resume(self, now: float) -> None:
        """Reopen the watch after its connection broke."""
        self.reflector.on_failure(ConnectionFailedError("broke"), now)
        assert isinstance(self.reflector.next_step(now + 30.0), OpenWatch)
        self.reflector.on_watch_opened(now + 30.0)

    def compare(self, now: float, at: int, *objects: Object) -> None:
        assert self.reflector.plan_comparison() is not None
        self.reflector.on_comparison(ListPage([item(obj) for obj in objects], str(at), ""), now)


# A server that is back.


def test_the_first_answer_after_an_outage_lets_the_others_try_within_seconds() -> None:
    server = ServerState()
    owners, others = Kind(server), Kind(server)
    failed_at = owners.fail_until(NotConnectedError("connection refused"), 0.0, 300.0)
    before = owners.seconds_left(failed_at)
    others.reflector.on_watch_opened(failed_at + 0.5)

    assert before >= 30.0
    assert owners.seconds_left(failed_at + 0.5) <= 3.5
    assert owners.seconds_left(failed_at + 4.0) == 0.0


@pytest.mark.parametrize("error", [ServerError("starting"), ForbiddenError("not yet")], ids=["503", "403"])
def test_what_a_starting_server_answers_after_an_outage_counts_as_the_outage(error: KonvergeError) -> None:
    server = ServerState()
    owners, others = Kind(server), Kind(server)
    refused_at = owners.fail_until(NotConnectedError("connection refused"), 0.0, 300.0) + 45.0
    owners.reflector.on_failure(error, refused_at)
    before = owners.seconds_left(refused_at)
    others.reflector.on_watch_opened(refused_at + 1.0)

    assert before >= 30.0
    assert owners.seconds_left(refused_at + 1.0) <= 3.5


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ServerError("the conversion webhook failed"), id="of the kind alone"),
        pytest.param(TooManyRequestsError("busy", retry_after_seconds=60.0), id="wanted by the server"),
    ],
)
def test_answers_for_other_kinds_do_not_shorten_a_pause_that_is_not_of_an_outage(error: KonvergeError) -> None:
    server = ServerState()
    kind, others = Kind(server), Kind(server)
    failed_at = kind.fail_until(error, 0.0, 600.0)
    before = kind.seconds_left(failed_at)
    others.reflector.on_watch_opened(failed_at)

    assert kind.seconds_left(failed_at) == before >= 30.0


def test_a_kind_that_alone_is_not_answered_is_tried_every_few_seconds_at_most() -> None:
    server = ServerState()
    kind, others = Kind(server), Kind(server)
    now, attempts = 0.0, 0
    while now < 600.0:
        kind.reflector.on_failure(ConnectionFailedError("no answer"), now)
        attempts += 1
        others.reflector.process_lines([bookmark(11)], now)
        now += kind.seconds_left(now)

    assert attempts <= 600 / 3 + 5


# A server whose storage was set back.


def test_a_watch_that_ends_at_its_time_needs_no_comparison() -> None:
    kind = Kind(ServerState())
    kind.reflector.on_watch_ended(700.0)
    kind.reflector.next_step(700.0)
    kind.reflector.on_watch_opened(700.0)

    assert kind.reflector.plan_comparison() is None


def test_after_a_watch_that_broke_the_newest_object_is_compared() -> None:
    kind = Kind(ServerState(), 0.0, config_map(7), config_map(9, "newest"))
    kind.resume(5.0)

    assert kind.reflector.plan_comparison() == HistoryComparison("default", "newest")
    kind.compare(36.0, 12, config_map(9, "newest"))
    assert not kind.reflector.should_leave_watch
    assert kind.reflector.plan_comparison() is None


@pytest.mark.parametrize(
    ("at", "live"),
    [
        pytest.param(8, (config_map(7),), id="older than what is known"),
        pytest.param(20, (config_map(8, "newest"),), id="passed it, with an older object"),
        pytest.param(20, (config_map(10, "newest"),), id="passed it, with a change that is not known"),
    ],
)
def test_a_proof_makes_all_kinds_list_again(at: int, live: tuple[Object, ...]) -> None:
    server = ServerState()
    kind = Kind(server, 0.0, config_map(7), config_map(9, "newest"))
    other = Kind(server, 0.0, config_map(3, "other"))
    heard: list[str] = []
    server.subscribe(lambda: heard.append("set back"))
    kind.resume(5.0)
    heard.clear()
    kind.compare(36.0, at, *live)

    assert heard == ["set back"]
    assert kind.reflector.should_leave_watch
    assert other.reflector.should_leave_watch
    other.reflector.on_watch_left(36.0)
    other.read(36.0, config_map(3, "other") | {"data": {"of": "the new history"}}, at=at)
    assert other.store.get(next(other.store.iter_metadata()).key) == config_map(3, "other") | {
        "data": {"of": "the new history"}
    }
    assert not other.reflector.should_leave_watch


@pytest.mark.parametrize("live", [(), (config_map(15, "newest"),)], ids=["gone", "newer"])
def test_what_the_watch_should_tell_of_is_listed_once_in_a_while(live: tuple[Object, ...]) -> None:
    server = ServerState()
    kind, other = Kind(server, 0.0, config_map(9, "newest")), Kind(server)
    kind.resume(5.0)
    kind.compare(36.0, 20, *live)

    assert kind.reflector.should_leave_watch
    assert not other.reflector.should_leave_watch, "it is no proof"
    kind.reflector.on_watch_left(36.0)
    kind.read(36.0, config_map(15, "newest"), at=20)
    kind.resume(40.0)
    kind.compare(71.0, 30)
    assert not kind.reflector.should_leave_watch, "on a busy kind it means nothing"


@pytest.mark.parametrize("old", [line("MODIFIED", config_map(8)), bookmark(8)], ids=["event", "bookmark"])
def test_what_is_older_than_the_collection_leads_to_a_list(old: bytes) -> None:
    kind = Kind(ServerState(), 0.0, config_map(9, "newest"))
    kind.reflector.process_lines([old], 5.0)

    assert kind.reflector.should_leave_watch


def test_a_list_that_is_older_than_what_is_known_is_a_proof_and_is_read_once_more() -> None:
    server = ServerState()
    kind, other = Kind(server, 0.0, config_map(9)), Kind(server)
    kind.reflector.process_lines([bookmark(8)], 5.0)
    kind.reflector.on_watch_left(5.0)
    kind.read(5.0, config_map(7), at=8)

    assert not kind.reflector.synced
    assert other.reflector.should_leave_watch
    kind.reflector.on_watch_left(5.0)
    kind.read(10.0, config_map(7), at=8)
    assert kind.reflector.synced
    assert [meta.resource_version for meta in kind.store.iter_metadata()] == ["7"]


def test_servers_that_contradict_each_other_make_no_loop_of_lists() -> None:
    server = ServerState()
    kind = Kind(server, 0.0, config_map(9))
    kind.reflector.process_lines([bookmark(8)], 5.0)
    kind.reflector.on_watch_left(5.0)
    now, lists = 5.0, 0
    while now < 305.0:
        now += kind.seconds_left(now)
        kind.store.record_write(config_map(50 + lists))  # answered by a server that is ahead of the one that lists
        kind.read(now, config_map(7), at=8)
        lists += 1

    assert lists == server.history
    assert lists <= 300 / 0.8
