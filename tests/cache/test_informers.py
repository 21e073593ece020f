"""The shared collections on a scripted server, in simulated time: who waits for what, and what is told to whom."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable

import pytest

from konverge.cache import Informers
from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import (
    ConnectionFailedError,
    ForbiddenError,
    KindNotServedError,
    KonvergeError,
    NotConnectedError,
    NotFoundError,
    UnauthorizedError,
    UntrustedServerError,
)
from konverge.kube import GroupVersionKind
from konverge.kube.metadata import ObjectMeta
from tests.cache.objects import CONFIG_MAP, bookmark, config_map, key, line
from tests.client.scripted import Answer, Script, ScriptedTransport, Stream, failure

pytestmark = pytest.mark.anyio

ABSENT = GroupVersionKind("demo.dev", "v1", "Widget")


def synced(*lines: bytes, at: int = 10) -> Stream:
    """A streaming list with these lines, which stays open as a watch."""
    return Stream().send(*lines, bookmark(at, end=True))


class Set:
    """Informers of a scripted server, and what their one subscriber has heard: version before, version after."""

    def __init__(
        self,
        *script: Script,
        namespace: str = "",
        keep: Callable[[GroupVersionKind, ObjectMeta], bool] | None = None,
        start_timeout_seconds: float = 30.0,
    ) -> None:
        self.clock = SimulatedClock()
        self.transport = ScriptedTransport(*script)
        self.informers = Informers(
            Client(self.transport, clock=self.clock, entropy=SeededEntropy()),
            namespace=namespace,
            keep=keep,
            start_timeout_seconds=start_timeout_seconds,
            clock=self.clock,
            entropy=SeededEntropy(),
        )
        self.told: list[tuple[str, str]] = []
        self.informers.subscribe(self.hear)

    def hear(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        assert gvk == CONFIG_MAP
        self.told.append(("" if old is None else old.resource_version, "" if new is None else new.resource_version))

    async def settle(self) -> None:
        """Let everything that is under way arrive."""
        await self.clock.sleep(0.001)


async def test_a_reader_gets_what_exists() -> None:
    world = Set(synced(line("ADDED", config_map(7))))
    async with world.informers:
        informer = await world.informers.started(CONFIG_MAP)
        found = await informer.read(key())

    assert found == config_map(7)
    assert world.told == [("", "7")]


async def test_a_reader_is_told_when_there_is_nothing() -> None:
    world = Set(synced())
    async with world.informers:
        informer = await world.informers.started(CONFIG_MAP)
        with pytest.raises(NotFoundError, match="v1/ConfigMap/default/web not found"):
            await informer.read(key())


async def test_all_readers_share_one_watch() -> None:
    world = Set(synced())
    async with world.informers:
        found = await asyncio.gather(*(world.informers.started(CONFIG_MAP) for _ in range(10)))

    assert len(set(map(id, found))) == 1
    assert len(world.transport.asked) == 1


async def test_reads_cost_no_requests() -> None:
    world = Set(synced(line("ADDED", config_map(7))))
    async with world.informers:
        for _ in range(10):
            await (await world.informers.started(CONFIG_MAP)).read(key())

    assert len(world.transport.asked) == 1


async def test_changes_arrive_and_are_told_in_order() -> None:
    stream = synced(line("ADDED", config_map(7)))
    world = Set(stream)
    async with world.informers:
        informer = await world.informers.started(CONFIG_MAP)
        stream.send(line("MODIFIED", config_map(11)), line("DELETED", config_map(12)))
        await world.settle()

    assert world.told == [("", "7"), ("7", "11"), ("11", "")]
    assert informer.store.resource_version == "12"


async def test_an_own_write_is_read_at_once_and_told_once() -> None:
    stream = synced()
    world = Set(stream)
    async with world.informers:
        informer = await world.informers.started(CONFIG_MAP)
        informer.record_write(config_map(11))
        found, told_before_the_watch = await informer.read(key()), list(world.told)
        stream.send(line("ADDED", config_map(11)))
        await world.settle()

    assert found == config_map(11)
    assert world.told == told_before_the_watch == [("", "11")]


async def test_an_own_delete_is_read_at_once() -> None:
    world = Set(synced(line("ADDED", config_map(7))))
    async with world.informers:
        informer = await world.informers.started(CONFIG_MAP)
        informer.record_delete(key(), "uid-web")
        with pytest.raises(NotFoundError):
            await informer.read(key())


async def test_a_dropped_watch_is_resumed_where_it_was() -> None:
    first, second = synced(line("ADDED", config_map(7))), Stream()
    world = Set(first, second)
    async with world.informers:
        await world.informers.started(CONFIG_MAP)
        first.send(line("MODIFIED", config_map(11))).fail(ConnectionFailedError("broke"))
        await world.clock.sleep(2)
        second.send(line("MODIFIED", config_map(12)))
        await world.settle()

    assert world.told == [("", "7"), ("7", "11"), ("11", "12")]
    assert world.transport.asked[1].query["resourceVersion"] == "11"
    assert first.closed


async def test_what_vanished_during_an_outage_is_told() -> None:
    first = synced(line("ADDED", config_map(7)), line("ADDED", config_map(8, "gone")))
    world = Set(first, synced(line("ADDED", config_map(15)), at=20))
    async with world.informers:
        await world.informers.started(CONFIG_MAP)
        first.send(line("ERROR", failure(410, "Expired").json))
        await world.clock.sleep(2)

    assert world.told == [("", "7"), ("", "8"), ("7", "15"), ("8", "")]


async def test_reads_are_answered_during_an_outage() -> None:
    first = synced(line("ADDED", config_map(7)))
    world = Set(first)
    async with world.informers:
        informer = await world.informers.started(CONFIG_MAP)
        first.fail(ConnectionFailedError("broke"))
        await world.clock.sleep(300)
        found = await (await world.informers.started(CONFIG_MAP)).read(key())
        age, problem = informer.age_seconds, informer.problem

    assert found == config_map(7)
    assert age == pytest.approx(300, abs=1)
    assert isinstance(problem, NotConnectedError)


async def test_pages_are_read_where_there_is_no_streaming_list() -> None:
    page = {"metadata": {"resourceVersion": "10", "continue": "more"}, "items": [config_map(5)]}
    last = {"metadata": {"resourceVersion": "10"}, "items": [config_map(6, "other")]}
    world = Set(Stream(422, failure(422, "Invalid").json), Answer(json=page), Answer(json=last), Stream())
    async with world.informers:
        await world.informers.started(CONFIG_MAP)
        await world.settle()

    assert world.told == [("", "5"), ("", "6")]
    assert [asked.query.get("continue") for asked in world.transport.asked] == [None, None, "more", None]
    assert world.transport.asked[3].query["resourceVersion"] == "10"


# Kinds that cannot be read.


async def test_a_kind_that_is_not_served_is_told_at_once() -> None:
    world = Set()
    async with world.informers:
        with pytest.raises(KindNotServedError):
            await world.informers.started(ABSENT)

    assert world.clock.monotonic() == 0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (failure(401, "Unauthorized"), UnauthorizedError),
        (failure(403, "Forbidden"), ForbiddenError),
        (UntrustedServerError("expired"), UntrustedServerError),
    ],
    ids=["401", "403", "TLS"],
)
async def test_a_reader_who_would_wait_in_vain_is_told_at_once(answer: Script, error: type[KonvergeError]) -> None:
    world = Set(answer)
    async with world.informers:
        with pytest.raises(error):
            await world.informers.started(CONFIG_MAP)

    assert world.clock.monotonic() < 1


async def test_whoever_asks_again_is_answered_by_a_new_attempt() -> None:
    world = Set(failure(403, "Forbidden"), synced(line("ADDED", config_map(7))))
    async with world.informers:
        with pytest.raises(ForbiddenError):
            await world.informers.started(CONFIG_MAP)
        found = await (await world.informers.started(CONFIG_MAP)).read(key())

    assert found == config_map(7)


async def test_a_kind_that_goes_and_comes_back_is_read_again() -> None:
    first = synced(line("ADDED", config_map(7)))
    world = Set(first, Stream(404, b"404 page not found"), synced(line("ADDED", config_map(20)), at=20))
    async with world.informers:
        informer = await world.informers.started(CONFIG_MAP)
        first.end()
        await world.settle()
        gone = informer.problem
        found = await (await world.informers.started(CONFIG_MAP)).read(key())

    assert isinstance(gone, KindNotServedError)
    assert found == config_map(20)


async def test_a_server_that_does_not_answer_is_waited_for_up_to_the_deadline() -> None:
    world = Set(start_timeout_seconds=20)
    async with world.informers:
        with pytest.raises(ConnectionFailedError, match="could not be listed within 20 s: the script is used up"):
            await world.informers.started(CONFIG_MAP)

    assert world.clock.monotonic() == pytest.approx(20)


async def test_a_server_that_comes_back_in_time_is_waited_for() -> None:
    refused, busy = NotConnectedError("refused"), failure(429, "TooManyRequests", retry_after=5)
    world = Set(refused, busy, failure(503), synced(line("ADDED", config_map(7))))
    async with world.informers:
        found = await (await world.informers.started(CONFIG_MAP)).read(key())

    assert found == config_map(7)


async def test_an_outage_is_one_line_in_the_log_not_one_a_retry(caplog: pytest.LogCaptureFixture) -> None:
    first = synced()
    world = Set(first)
    with caplog.at_level(logging.INFO):
        async with world.informers:
            await world.informers.started(CONFIG_MAP)
            first.fail(ConnectionFailedError("broke"))
            await world.clock.sleep(600)

    assert [record.getMessage() for record in caplog.records] == ["v1/ConfigMap: its changes do not arrive now: broke"]


# What is held.


def keep_labelled(gvk: GroupVersionKind, meta: ObjectMeta) -> bool:
    return "keep" in meta.labels


async def test_an_object_that_is_not_held_is_read_live_once() -> None:
    stream = synced(line("ADDED", config_map(7)))
    world = Set(stream, Answer(json=config_map(7)), keep=keep_labelled)
    async with world.informers:
        informer = await world.informers.started(CONFIG_MAP)
        first, second = await informer.read(key()), await informer.read(key())
        stream.send(line("MODIFIED", config_map(11)))
        await world.settle()
        third = await informer.read(key())

    assert first == second == config_map(7)
    assert third == config_map(11)
    assert world.told == [("7", "11")]
    assert len(world.transport.asked) == 2


async def test_only_one_namespace_is_watched_when_that_is_asked_for() -> None:
    elsewhere = config_map(3, namespace="elsewhere")
    world = Set(synced(), Answer(json=elsewhere), namespace="default")
    async with world.informers:
        informer = await world.informers.started(CONFIG_MAP)
        informer.record_write(elsewhere)
        found = await informer.read(key()._replace(namespace="elsewhere"))

    assert found == elsewhere
    assert world.told == []
    assert world.transport.paths == [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/elsewhere/configmaps/web",
    ]


# Subscribers.


async def test_a_subscriber_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        raise RuntimeError("a mistake")

    stream = synced(line("ADDED", config_map(7)))
    world = Set(stream)
    world.informers.subscribe(fail)
    async with world.informers:
        await world.informers.started(CONFIG_MAP)
        stream.send(line("MODIFIED", config_map(11)))
        await world.settle()

    assert world.told == [("", "7"), ("7", "11")]
    assert "a subscriber failed" in caplog.text


async def test_a_subscription_can_be_ended() -> None:
    stream = synced()
    world = Set(stream)
    heard: list[object] = []
    end = world.informers.subscribe(lambda *change: heard.append(change))
    async with world.informers:
        await world.informers.started(CONFIG_MAP)
        end()
        stream.send(line("ADDED", config_map(11)))
        await world.settle()

    assert heard == []
    assert world.told == [("", "11")]


# The end.


async def test_leaving_the_block_ends_all_tasks_and_closes_the_watch() -> None:
    stream = synced()
    world = Set(stream)
    before = asyncio.all_tasks()
    async with world.informers:
        await world.informers.started(CONFIG_MAP)

    assert asyncio.all_tasks() == before
    assert stream.closed


async def test_an_error_in_the_block_comes_out_as_it_is() -> None:
    world = Set(synced())

    async def fail() -> None:
        async with world.informers:
            await world.informers.started(CONFIG_MAP)
            raise KonvergeError("mine")

    with pytest.raises(KonvergeError, match="^mine$"):
        await fail()


async def test_cancelling_a_reader_leaves_the_others_waiting_for_the_same_list() -> None:
    stream = Stream()
    world = Set(stream)
    async with world.informers:
        readers = [asyncio.create_task(world.informers.started(CONFIG_MAP)) for _ in range(2)]
        await world.settle()
        readers[0].cancel()
        stream.send(bookmark(10, end=True))
        informer = await readers[1]

    assert readers[0].cancelled()
    assert informer.synced


async def test_a_kind_that_is_stopped_is_watched_no_longer_and_starts_afresh() -> None:
    first = synced(line("ADDED", config_map(7)))
    world = Set(first, synced(at=20))
    async with world.informers:
        await world.informers.started(CONFIG_MAP)
        await world.informers.stop(CONFIG_MAP)
        stopped = (first.closed, dict(world.informers.running))
        informer = await world.informers.started(CONFIG_MAP)

    assert stopped == (True, {})
    assert len(informer.store) == 0


async def test_the_collector_runs_again_after_a_list() -> None:
    world = Set(synced(line("ADDED", config_map(7))))
    async with world.informers:
        await world.informers.started(CONFIG_MAP)

    assert gc.isenabled()
