"""The informer factory on a scripted server, in simulated time: waits, reads and reported changes."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Mapping, Sequence

import pytest

from konverge._internal.cache import CacheOptions, InformerFactory, label_index
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.kube.selectors import LabelSelector
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
from konverge.kube import GroupVersionKind, Object
from tests.cache.objects import CONFIG_MAP, bookmark, config_map, key, line
from tests.cancellation_leaks import run_loop_turns
from tests.client.scripted_transport import (
    Script,
    ScriptedRequest,
    ScriptedResponse,
    ScriptedStream,
    ScriptedTransport,
    build_failure,
)

pytestmark = pytest.mark.anyio

ABSENT = GroupVersionKind("demo.dev", "v1", "Widget")


def build_synced_stream(*lines: bytes, at: int = 10) -> ScriptedStream:
    """Build a streaming list with these lines, which stays open as a watch."""
    return ScriptedStream().send(*lines, bookmark(at, end=True))


def at(version: int, *objects: Object) -> ScriptedResponse:
    """Build the response to a comparison after a watch that ended early."""
    return ScriptedResponse(json={"metadata": {"resourceVersion": str(version)}, "items": list(objects)})


class Set:
    """Informers of a scripted server, with the changes at their one subscriber: version before, version after."""

    def __init__(
        self,
        *script: Script,
        namespaces: Sequence[str] = (),
        options: CacheOptions | None = None,
        keep: Callable[[GroupVersionKind, ObjectMeta], bool] | None = None,
        start_timeout_seconds: float = 30.0,
    ) -> None:
        self.clock = SimulatedClock()
        self.transport = ScriptedTransport(*script)
        self.informers = InformerFactory(
            Client(self.transport, clock=self.clock, entropy=SeededEntropy()),
            namespaces=namespaces,
            options={} if options is None else {CONFIG_MAP: options},
            keep=keep,
            start_timeout_seconds=start_timeout_seconds,
            clock=self.clock,
            entropy=SeededEntropy(),
        )
        self.changes: list[tuple[str, str]] = []
        self.informers.subscribe(self.hear)

    def hear(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        assert gvk == CONFIG_MAP
        self.changes.append(("" if old is None else old.resource_version, "" if new is None else new.resource_version))

    async def settle(self) -> None:
        """Wait until all pending data has arrived."""
        await self.clock.sleep(0.001)


async def test_a_reader_gets_what_exists() -> None:
    world = Set(build_synced_stream(line("ADDED", config_map(7))))
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        found = await informer.read(key())

    assert found == config_map(7)
    assert world.changes == [("", "7")]


async def test_a_reader_is_told_when_there_is_nothing() -> None:
    world = Set(build_synced_stream())
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        with pytest.raises(NotFoundError, match="v1/ConfigMap/default/web not found"):
            await informer.read(key())


async def test_all_readers_share_one_watch() -> None:
    world = Set(build_synced_stream())
    async with world.informers:
        found = await asyncio.gather(*(world.informers.get_informer(CONFIG_MAP) for _ in range(10)))

    assert len(set(map(id, found))) == 1
    assert len(world.transport.asked) == 1


async def test_reads_cost_no_requests() -> None:
    world = Set(build_synced_stream(line("ADDED", config_map(7))))
    async with world.informers:
        for _ in range(10):
            await (await world.informers.get_informer(CONFIG_MAP)).read(key())

    assert len(world.transport.asked) == 1


async def test_changes_arrive_and_are_told_in_order() -> None:
    stream = build_synced_stream(line("ADDED", config_map(7)))
    world = Set(stream)
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        stream.send(line("MODIFIED", config_map(11)), line("DELETED", config_map(12)))
        await world.settle()

    assert world.changes == [("", "7"), ("7", "11"), ("11", "")]
    assert informer.statistics.last_resource_version == "12"


async def test_an_own_write_is_read_at_once_and_told_once() -> None:
    stream = build_synced_stream()
    world = Set(stream)
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        informer.record_write(config_map(11))
        found, changes_before_the_watch = await informer.read(key()), list(world.changes)
        stream.send(line("ADDED", config_map(11)))
        await world.settle()

    assert found == config_map(11)
    assert world.changes == changes_before_the_watch == [("", "11")]


async def test_an_own_delete_is_read_at_once() -> None:
    world = Set(build_synced_stream(line("ADDED", config_map(7))))
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        informer.record_delete(key(), "uid-web")
        with pytest.raises(NotFoundError):
            await informer.read(key())


async def test_a_dropped_watch_is_resumed_where_it_was() -> None:
    first, second = build_synced_stream(line("ADDED", config_map(7))), ScriptedStream()
    world = Set(first, second, at(11, config_map(11)))
    async with world.informers:
        await world.informers.get_informer(CONFIG_MAP)
        first.send(line("MODIFIED", config_map(11))).fail(ConnectionFailedError("broke"))
        await world.clock.sleep(2)
        second.send(line("MODIFIED", config_map(12)))
        await world.settle()

    assert world.changes == [("", "7"), ("7", "11"), ("11", "12")]
    assert world.transport.asked[1].query["resourceVersion"] == "11"
    assert first.closed


async def test_what_vanished_during_an_outage_is_told() -> None:
    first = build_synced_stream(line("ADDED", config_map(7)), line("ADDED", config_map(8, "gone")))
    world = Set(first, build_synced_stream(line("ADDED", config_map(15)), at=20))
    async with world.informers:
        await world.informers.get_informer(CONFIG_MAP)
        first.send(line("ERROR", build_failure(410, "Expired").json))
        await world.clock.sleep(2)

    assert world.changes == [("", "7"), ("", "8"), ("7", "15"), ("8", "")]


async def test_an_own_write_is_unconfirmed_until_the_watch_has_come_so_far() -> None:
    stream = build_synced_stream()
    world = Set(stream)
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        informer.record_write(config_map(11))
        await world.clock.sleep(3)
        informer.record_write(config_map(13))
        before = informer.unconfirmed_writes, informer.own_write_lag_seconds
        stream.send(line("ADDED", config_map(11)))
        await world.clock.sleep(2)
        between = informer.unconfirmed_writes, informer.own_write_lag_seconds
        stream.send(bookmark(14))
        await world.settle()
        after = informer.unconfirmed_writes, informer.own_write_lag_seconds

    assert before == pytest.approx((2, 3), abs=0.1)
    assert between == pytest.approx((1, 2), abs=0.1)
    assert after == (0, 0.0)


async def test_the_age_of_a_list_grows_while_the_watch_tells_news() -> None:
    stream = build_synced_stream()
    world = Set(stream)
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        await world.clock.sleep(100)
        stream.send(line("ADDED", config_map(11)))
        await world.settle()
        ages = informer.list_age_seconds, informer.age_seconds

    assert ages == pytest.approx((100, 0), abs=1)


async def test_reads_are_answered_during_an_outage() -> None:
    first = build_synced_stream(line("ADDED", config_map(7)))
    world = Set(first)
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        first.fail(ConnectionFailedError("broke"))
        await world.clock.sleep(300)
        found = await (await world.informers.get_informer(CONFIG_MAP)).read(key())
        age, problem = informer.age_seconds, informer.last_error

    assert found == config_map(7)
    assert age == pytest.approx(300, abs=1)
    assert isinstance(problem, NotConnectedError)


async def test_pages_are_read_where_there_is_no_streaming_list() -> None:
    page = {"metadata": {"resourceVersion": "10", "continue": "more"}, "items": [config_map(5)]}
    last = {"metadata": {"resourceVersion": "10"}, "items": [config_map(6, "other")]}
    world = Set(
        ScriptedStream(422, build_failure(422, "Invalid").json),
        ScriptedResponse(json=page),
        ScriptedResponse(json=last),
        ScriptedStream(),
    )
    async with world.informers:
        await world.informers.get_informer(CONFIG_MAP)
        await world.settle()

    assert world.changes == [("", "5"), ("", "6")]
    assert [asked.query.get("continue") for asked in world.transport.asked] == [None, None, "more", None]
    assert world.transport.asked[3].query["resourceVersion"] == "10"


# Kinds that cannot be read.


async def test_a_kind_that_is_not_served_is_told_at_once() -> None:
    world = Set()
    async with world.informers:
        with pytest.raises(KindNotServedError):
            await world.informers.get_informer(ABSENT)

    assert world.clock.monotonic() == 0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (build_failure(401, "Unauthorized"), UnauthorizedError),
        (build_failure(403, "Forbidden"), ForbiddenError),
        (UntrustedServerError("expired"), UntrustedServerError),
    ],
    ids=["401", "403", "TLS"],
)
async def test_a_reader_who_would_wait_in_vain_is_told_at_once(answer: Script, error: type[KonvergeError]) -> None:
    world = Set(answer)
    async with world.informers:
        with pytest.raises(error):
            await world.informers.get_informer(CONFIG_MAP)

    assert world.clock.monotonic() < 1


async def test_whoever_asks_again_is_answered_by_a_new_attempt() -> None:
    world = Set(build_failure(403, "Forbidden"), build_synced_stream(line("ADDED", config_map(7))))
    async with world.informers:
        with pytest.raises(ForbiddenError):
            await world.informers.get_informer(CONFIG_MAP)
        found = await (await world.informers.get_informer(CONFIG_MAP)).read(key())

    assert found == config_map(7)


async def test_a_kind_that_goes_and_comes_back_is_read_again() -> None:
    first = build_synced_stream(line("ADDED", config_map(7)))
    world = Set(
        first, ScriptedStream(404, b"404 page not found"), build_synced_stream(line("ADDED", config_map(20)), at=20)
    )
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        await world.clock.sleep(1)  # discovery is asked once a second at most
        first.end()
        await world.settle()
        gone = informer.last_error
        found = await (await world.informers.get_informer(CONFIG_MAP)).read(key())

    assert isinstance(gone, KindNotServedError)
    assert found == config_map(20)


async def test_a_server_that_does_not_answer_is_waited_for_up_to_the_deadline() -> None:
    world = Set(start_timeout_seconds=20)
    async with world.informers:
        with pytest.raises(
            ConnectionFailedError, match="the list failed: expected it within 20 s: the script is used up"
        ):
            await world.informers.get_informer(CONFIG_MAP)

    assert world.clock.monotonic() == pytest.approx(20)


async def test_a_server_that_comes_back_in_time_is_waited_for() -> None:
    refused, busy = NotConnectedError("refused"), build_failure(429, "TooManyRequests", retry_after=5)
    world = Set(refused, busy, build_failure(503), build_synced_stream(line("ADDED", config_map(7))))
    async with world.informers:
        found = await (await world.informers.get_informer(CONFIG_MAP)).read(key())

    assert found == config_map(7)


async def test_an_outage_is_one_line_in_the_log_not_one_a_retry(caplog: pytest.LogCaptureFixture) -> None:
    first = build_synced_stream()
    world = Set(first)
    with caplog.at_level(logging.INFO):
        async with world.informers:
            await world.informers.get_informer(CONFIG_MAP)
            first.fail(ConnectionFailedError("broke"))
            await world.clock.sleep(600)

    (message,) = [record.getMessage() for record in caplog.records]
    assert message == "v1/ConfigMap: list or watch failed (retried with backoff): the script is used up"


async def test_a_mistake_is_logged_once_and_following_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def mistaken(asked: ScriptedRequest) -> ScriptedResponse:
        raise ValueError("a control character in a header")

    world = Set(
        build_synced_stream().end(), *[mistaken] * 3, ScriptedStream().send(line("ADDED", config_map(12))), at(11)
    )
    with caplog.at_level(logging.ERROR):
        async with world.informers:
            informer = await world.informers.get_informer(CONFIG_MAP)
            await world.clock.sleep(30.0)
            found = await informer.read(key())

    assert found == config_map(12)
    assert [(record.name, record.exc_info is not None) for record in caplog.records] == [("konverge.cache", True)]
    assert "unexpected error in list or watch: ValueError: a control character" in caplog.text


async def test_a_kind_that_was_just_defined_is_no_cause_for_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    busy = build_failure(429, "TooManyRequests", "storage is (re)initializing", retry_after=1)
    world = Set(busy, build_synced_stream())
    with caplog.at_level(logging.INFO):
        async with world.informers:
            await world.informers.get_informer(CONFIG_MAP)

    assert {record.levelno for record in caplog.records} == {logging.INFO}


# What is held.


def keep_noted(noted: set[str]) -> Callable[[GroupVersionKind, ObjectMeta], bool]:
    return lambda gvk, meta: meta.name in noted


async def test_an_object_that_is_not_held_is_read_live_once() -> None:
    stream = build_synced_stream(line("ADDED", config_map(7)))
    noted: set[str] = set()
    world = Set(stream, ScriptedResponse(json=config_map(7)), keep=keep_noted(noted))
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        noted.add("web")
        first, second = await informer.read(key()), await informer.read(key())
        stream.send(line("MODIFIED", config_map(11)))
        await world.settle()
        third = await informer.read(key())

    assert first == second == config_map(7)
    assert third == config_map(11)
    assert world.changes == [("7", "11")]
    assert len(world.transport.asked) == 2


async def test_when_more_is_kept_all_of_it_is_held_once_widened() -> None:
    stream = build_synced_stream(line("ADDED", config_map(7)), line("ADDED", config_map(8, "other")))
    again = build_synced_stream(line("ADDED", config_map(7)), line("ADDED", config_map(8, "other")), at=20)
    noted = {"web"}
    world = Set(stream, again, keep=keep_noted(noted))
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        dropped_before = informer.dropped
        noted.add("other")
        await asyncio.gather(informer.widen(), informer.widen())
        held = [obj["metadata"]["name"] for obj in informer.list()]
        again.send(line("MODIFIED", config_map(21)))
        await world.settle()

    assert held == ["other", "web"]
    assert (dropped_before, informer.dropped) == (1, 0)
    assert world.changes == [("", "7"), ("", "8"), ("7", "21")]
    assert len(world.transport.asked) == 2, "one more list for all who asked"
    assert stream.closed
    assert world.clock.monotonic() < 1


async def test_widening_that_the_server_refuses_is_told() -> None:
    noted: set[str] = set()
    world = Set(
        build_synced_stream(line("ADDED", config_map(7))), build_failure(403, "Forbidden"), keep=keep_noted(noted)
    )
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        with pytest.raises(ForbiddenError):
            await informer.widen()


async def test_widening_costs_nothing_when_nothing_was_dropped() -> None:
    world = Set(build_synced_stream(line("ADDED", config_map(7))), keep=keep_noted({"web"}))
    async with world.informers:
        await (await world.informers.get_informer(CONFIG_MAP)).widen()

    assert len(world.transport.asked) == 1


async def test_what_is_sifted_out_is_read_live() -> None:
    noted = {"web"}
    world = Set(
        build_synced_stream(line("ADDED", config_map(7))), ScriptedResponse(json=config_map(7)), keep=keep_noted(noted)
    )
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        noted.clear()
        informer.evict_rejected()
        held = len(informer.store)
        found = await informer.read(key())

    assert held == 0
    assert found == config_map(7)
    assert world.changes == [("", "7")]


async def test_only_one_namespace_is_watched_when_that_is_asked_for() -> None:
    elsewhere = config_map(3, namespace="elsewhere")
    world = Set(build_synced_stream(), ScriptedResponse(json=elsewhere), namespaces=["default"])
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        informer.record_write(elsewhere)
        found = await informer.read(key()._replace(namespace="elsewhere"))

    assert found == elsewhere
    assert world.changes == []
    assert world.transport.paths == [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/elsewhere/configmaps/web",
    ]


async def test_several_namespaces_have_a_watch_each() -> None:
    here, there = config_map(7), config_map(5, namespace="there")
    outside = config_map(3, namespace="outside")
    first, second = build_synced_stream(line("ADDED", here)), build_synced_stream(line("ADDED", there), at=8)
    world = Set(first, second, ScriptedResponse(json=outside), namespaces=["default", "there", "default"])
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        read = [await informer.read(key()._replace(namespace=name)) for name in ("default", "there", "outside")]
        listed, narrowed = informer.list(), informer.list(namespace="there")
        second.send(line("MODIFIED", config_map(9, namespace="there")))
        await world.settle()

    assert read == [here, there, outside]
    assert (listed, narrowed) == ([here, there], [there])
    assert world.changes == [("", "7"), ("", "5"), ("5", "9")]
    assert [asked.path for asked in world.transport.asked] == [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/there/configmaps",
        "/api/v1/namespaces/outside/configmaps/web",
    ]


async def test_a_kind_may_have_namespaces_and_selectors_of_its_own() -> None:
    options = CacheOptions(namespaces=("there",), label_selector="app=web", field_selector="metadata.name=web")
    world = Set(build_synced_stream(), namespaces=["default"], options=options)
    async with world.informers:
        await world.informers.get_informer(CONFIG_MAP)

    (asked,) = world.transport.asked
    assert asked.path == "/api/v1/namespaces/there/configmaps"
    assert (asked.query["labelSelector"], asked.query["fieldSelector"]) == ("app=web", "metadata.name=web")


@pytest.mark.parametrize(
    "sent",
    [
        {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": config_map(7)["metadata"]},
        config_map(7),
    ],
    ids=["metadata", "a server that cannot"],
)
async def test_of_a_metadata_only_kind_reads_give_the_metadata(sent: Object) -> None:
    stream = build_synced_stream(line("ADDED", sent))
    world = Set(stream, ScriptedResponse(json=config_map(12)), options=CacheOptions(metadata_only=True))
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        from_watch = await informer.read(key())
        informer.record_write(config_map(11))
        from_write = await informer.read(key())
        informer.mark_uncertain(key())
        from_server = await informer.read(key())

    found = [from_watch, from_write, from_server]
    assert [obj["metadata"]["resourceVersion"] for obj in found] == ["7", "11", "12"]
    assert all(obj.keys() == {"apiVersion", "kind", "metadata"} for obj in found)
    assert {obj["kind"] for obj in found} == {"ConfigMap"}
    assert "as=PartialObjectMetadata" in world.transport.asked[0].headers["accept"]


async def test_a_list_is_narrowed_by_labels_and_each_object_is_the_callers_own() -> None:
    web, db = config_map(7, labels={"app": "web"}), config_map(8, "db", labels={"app": "db"})
    world = Set(build_synced_stream(line("ADDED", web), line("ADDED", db)))
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        (first,) = informer.list(labels=LabelSelector.parse("app in (web)"))
        first["data"].clear()
        (second,) = informer.list(labels=LabelSelector.parse("app!=db"))

    assert second == web


# Indexes.


def revisions(obj: Object) -> list[str]:
    return [obj["data"]["revision"]]


async def test_an_index_may_come_before_the_kind_or_after() -> None:
    stream = build_synced_stream(line("ADDED", config_map(7)))
    world = Set(stream)
    world.informers.add_index(CONFIG_MAP, "early", revisions)
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        world.informers.add_index(CONFIG_MAP, "late", revisions)
        at_first = [informer.list_keys_by_index(name, "7") for name in ("early", "late")]
        stream.send(line("MODIFIED", config_map(11)))
        await world.settle()
        now = [informer.list_keys_by_index(name, value) for name in ("early", "late") for value in ("7", "11")]

    assert at_first == [[key()], [key()]]
    assert now == [[], [key()], [], [key()]]


async def test_an_index_knows_own_writes_and_deletes() -> None:
    world = Set(build_synced_stream())
    world.informers.add_index(CONFIG_MAP, "revision", revisions)
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        informer.record_write(config_map(11))
        written = informer.list_keys_by_index("revision", "11")
        informer.record_delete(key(), "uid-web")

    assert written == [key()]
    assert informer.list_keys_by_index("revision", "11") == []


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize(
    "selector", ["app=web", "app in (web), tier!=back", "app=web, tier=front", "tier", "app in (a, web)"]
)
async def test_a_list_is_the_same_with_an_index_of_the_label(selector: str, is_indexed: bool) -> None:
    stream = build_synced_stream(
        line("ADDED", config_map(7, labels={"app": "web", "tier": "front"})),
        line("ADDED", config_map(8, "db", labels={"app": "db", "tier": "back"})),
        line("ADDED", config_map(9, "plain")),
    )
    world = Set(stream)
    name, values_of = label_index("app")
    looked_at: list[str] = []
    if is_indexed:
        world.informers.add_index(CONFIG_MAP, name, values_of)
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        chosen = LabelSelector.parse(selector)

        class Noting(LabelSelector):
            def matches(self, labels: Mapping[str, str]) -> bool:
                looked_at.append(str(labels.get("app")))
                return super().matches(labels)

        found = [obj["metadata"]["name"] for obj in informer.list(labels=Noting(chosen.requirements))]
        stream.send(line("MODIFIED", config_map(11, "db", labels={"app": "web", "tier": "front"})))
        await world.settle()
        after = [obj["metadata"]["name"] for obj in informer.list(labels=chosen)]

    assert found == (["db", "web"] if selector == "tier" else ["web"])
    assert after == ["db", "web"]
    finds_by_label = is_indexed and selector not in ("tier", "app in (a, web)")
    assert (looked_at == ["web"]) is finds_by_label


async def test_an_index_follows_a_list_that_replaces_everything() -> None:
    first = build_synced_stream(
        line("ADDED", config_map(7)), line("ADDED", config_map(8, "same")), line("ADDED", config_map(9, "old"))
    )
    again = build_synced_stream(line("ADDED", config_map(15)), line("ADDED", config_map(8, "same")), at=20)
    world = Set(first, again)
    world.informers.add_index(CONFIG_MAP, "revision", revisions)
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        first.send(line("ERROR", build_failure(410, "Expired").json))
        await world.clock.sleep(2)
        found = {
            value: [name for _, name in informer.list_keys_by_index("revision", value)]
            for value in ("7", "8", "9", "15")
        }

    assert found == {"7": [], "8": ["same"], "9": [], "15": ["web"]}


async def test_an_index_that_fails_on_an_object_finds_the_others(caplog: pytest.LogCaptureFixture) -> None:
    def fail(obj: Object) -> list[str]:
        return ["value"] if obj["metadata"]["labels"] else []

    good, bad = config_map(7, labels={"a": "b"}), config_map(8, "bad")
    world = Set(build_synced_stream(line("ADDED", bad), line("ADDED", good), line("ADDED", config_map(9, "worse"))))
    world.informers.add_index(CONFIG_MAP, "labels", fail)
    with caplog.at_level(logging.INFO):
        async with world.informers:
            informer = await world.informers.get_informer(CONFIG_MAP)

    assert informer.list_keys_by_index("labels", "value") == [key()]
    assert len(informer.store) == 3
    assert caplog.messages == ["v1/ConfigMap default/bad: cannot index the object: index 'labels': KeyError: 'labels'"]


async def test_an_unknown_index_is_named() -> None:
    world = Set(build_synced_stream())
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        with pytest.raises(KeyError, match="the index 'a' does not exist"):
            informer.list_keys_by_index("a", "b")


# Writes of unknown outcome.


async def test_after_a_write_of_unknown_outcome_the_next_read_asks_the_server_once() -> None:
    stream = build_synced_stream(line("ADDED", config_map(7)))
    world = Set(stream, ScriptedResponse(json=config_map(11)))
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        informer.mark_uncertain(key())
        first, second = await informer.read(key()), await informer.read(key())
        stream.send(line("MODIFIED", config_map(11)))
        await world.settle()

    assert first == second == config_map(11)
    assert world.changes == [("", "7"), ("7", "11")]
    assert len(world.transport.asked) == 2


async def test_what_a_doubtful_delete_took_away_is_not_found_again_before_the_watch_shows_it() -> None:
    stream = build_synced_stream(line("ADDED", config_map(7)))
    gone = build_failure(404, "NotFound", name="web")
    world = Set(stream, gone, gone)
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        informer.mark_uncertain(key())
        for _ in range(2):
            with pytest.raises(NotFoundError):
                await informer.read(key())
        stream.send(line("DELETED", config_map(12)))
        await world.settle()
        world.transport.extend_script([gone])
        for _ in range(2):
            with pytest.raises(NotFoundError):
                await informer.read(key())

    assert len(world.transport.asked) == 4


async def test_a_read_of_the_server_that_fails_leaves_the_doubt() -> None:
    world = Set(build_synced_stream(), build_failure(403, "Forbidden"), ScriptedResponse(json=config_map(11)))
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        informer.mark_uncertain(key())
        with pytest.raises(ForbiddenError):
            await informer.read(key())
        found = await informer.read(key())

    assert found == config_map(11)


async def test_an_answered_write_ends_the_doubt() -> None:
    world = Set(build_synced_stream())
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        informer.mark_uncertain(key())
        informer.record_write(config_map(11))
        found = await informer.read(key())

    assert found == config_map(11)


# Large lists.


async def test_a_large_list_is_told_in_blocks_and_whole_before_it_counts_as_synced() -> None:
    turns = 0
    world = Set(build_synced_stream(*(line("ADDED", config_map(7, f"web-{number}")) for number in range(1000))))

    async def others_work() -> None:
        nonlocal turns
        while True:
            turns += bool(0 < len(world.changes) < 1000)
            await world.clock.sleep(0)

    async with world.informers:
        working = asyncio.create_task(others_work())
        await world.informers.get_informer(CONFIG_MAP)
        count = len(world.changes)
        working.cancel()

    assert count == 1000
    assert turns >= 3


async def test_what_changes_while_a_large_list_ends_is_told_in_order() -> None:
    lines = [line("ADDED", config_map(7, f"web-{number:03}")) for number in range(1000)]
    lines += [bookmark(10, end=True), line("MODIFIED", config_map(11, "web-000"))]
    world = Set(ScriptedStream().send_chunk(b"\n".join([*lines, b""])))
    async with world.informers:
        await world.informers.get_informer(CONFIG_MAP)

    assert len(world.changes) == 1001
    assert world.changes[:2] == [("", "7"), ("7", "11")]


async def test_a_list_that_is_being_told_is_told_to_the_end_when_another_is_wanted() -> None:
    lines = [line("ADDED", config_map(7, f"web-{number:03}")) for number in range(1000)]
    noted = {f"web-{number:03}" for number in range(999)}
    world = Set(build_synced_stream(*lines), build_synced_stream(*lines, at=20), keep=keep_noted(noted))
    async with world.informers:
        starting = asyncio.create_task(world.informers.get_informer(CONFIG_MAP))
        while not world.changes:
            await world.clock.sleep(0)
        noted.add("web-999")
        await world.informers.running[CONFIG_MAP].widen()
        await starting

    assert world.changes == [("", "7")] * 1000


async def test_an_own_write_while_a_list_is_told_is_told_after_the_list_has_told_that_object() -> None:
    lines = [line("ADDED", config_map(7, f"web-{number:03}")) for number in range(1000)]
    world = Set(build_synced_stream(*lines))
    heard: list[tuple[str, str]] = []

    def hear(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        assert new is not None
        if new.name == "web-999":
            heard.append(("" if old is None else old.resource_version, new.resource_version))

    async with world.informers:
        world.informers.subscribe(hear)
        starting = asyncio.create_task(world.informers.get_informer(CONFIG_MAP))
        while not world.changes:
            await world.clock.sleep(0)
        informer = world.informers.running[CONFIG_MAP]
        informer.record_write(config_map(11, "web-999"))
        reported_at_once = list(heard)
        await starting

    assert reported_at_once == heard == [("", "7"), ("7", "11")]


# Subscribers.


async def test_a_subscriber_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        raise RuntimeError("a mistake")

    stream = build_synced_stream(line("ADDED", config_map(7)))
    world = Set(stream)
    world.informers.subscribe(fail)
    async with world.informers:
        await world.informers.get_informer(CONFIG_MAP)
        stream.send(line("MODIFIED", config_map(11)))
        await world.settle()

    assert world.changes == [("", "7"), ("7", "11")]
    assert "a subscriber raised an error" in caplog.text


async def test_a_subscription_can_be_ended() -> None:
    stream = build_synced_stream()
    world = Set(stream)
    heard: list[object] = []
    end = world.informers.subscribe(lambda *change: heard.append(change))
    async with world.informers:
        await world.informers.get_informer(CONFIG_MAP)
        end()
        stream.send(line("ADDED", config_map(11)))
        await world.settle()

    assert heard == []
    assert world.changes == [("", "11")]


# The end.


async def test_leaving_the_block_ends_all_tasks_and_closes_the_watch() -> None:
    stream = build_synced_stream()
    world = Set(stream)
    before = asyncio.all_tasks()
    async with world.informers:
        await world.informers.get_informer(CONFIG_MAP)

    assert asyncio.all_tasks() == before
    assert stream.closed


async def test_an_error_in_the_block_comes_out_as_it_is() -> None:
    world = Set(build_synced_stream())

    async def fail() -> None:
        async with world.informers:
            await world.informers.get_informer(CONFIG_MAP)
            raise KonvergeError("mine")

    with pytest.raises(KonvergeError, match="^mine$"):
        await fail()


async def test_cancelling_a_reader_leaves_the_others_waiting_for_the_same_list() -> None:
    stream = ScriptedStream()
    world = Set(stream)
    async with world.informers:
        readers = [asyncio.create_task(world.informers.get_informer(CONFIG_MAP)) for _ in range(2)]
        await world.settle()
        readers[0].cancel()
        stream.send(bookmark(10, end=True))
        informer = await readers[1]

    assert readers[0].cancelled()
    assert informer.synced


async def test_a_kind_that_is_stopped_is_watched_no_longer_and_starts_afresh() -> None:
    first = build_synced_stream(line("ADDED", config_map(7)))
    world = Set(first, build_synced_stream(at=20))
    async with world.informers:
        await world.informers.get_informer(CONFIG_MAP)
        await world.informers.stop(CONFIG_MAP)
        stopped = (first.closed, dict(world.informers.running))
        informer = await world.informers.get_informer(CONFIG_MAP)

    assert stopped == (True, {})
    assert len(informer.store) == 0


async def test_the_collector_runs_again_after_a_list() -> None:
    world = Set(build_synced_stream(line("ADDED", config_map(7))))
    async with world.informers:
        await world.informers.get_informer(CONFIG_MAP)

    assert gc.isenabled()


async def test_several_may_widen_at_once_while_the_watch_is_being_left() -> None:
    noted = {"web"}
    listed = [line("ADDED", config_map(7)), line("ADDED", config_map(8, "other"))]
    world = Set(
        build_synced_stream(*listed),
        *(build_synced_stream(*listed, at=20 + number) for number in range(3)),
        keep=keep_noted(noted),
    )
    async with world.informers:
        informer = await world.informers.get_informer(CONFIG_MAP)
        noted.add("other")

        async def widen(turns: int) -> None:
            await run_loop_turns(turns)
            await informer.widen()

        await asyncio.gather(*(widen(turns) for turns in range(6)))

        assert key("other") in informer.store
