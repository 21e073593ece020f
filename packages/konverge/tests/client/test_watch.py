"""Watches: their requests, and their ends."""

from __future__ import annotations

import asyncio

import pytest

from konverge._internal.client.watch import SilentWatchError
from konverge.client import Client, WatchEvent
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import ConnectionFailedError, ExpiredError, InvalidError, KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind
from tests.client.scripted_transport import ScriptedResponse, ScriptedStream, ScriptedTransport, build_failure

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
FIRST = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}'
SECOND = b'{"type":"DELETED","object":{"metadata":{"name":"a"}}}'


def client_of(answer: ScriptedStream | ScriptedResponse) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(answer)
    return Client(transport, clock=SimulatedClock(), entropy=SeededEntropy()), transport


async def test_events_come_until_the_server_ends_the_watch() -> None:
    client, _ = client_of(ScriptedStream().send(FIRST, SECOND).end())
    async with client.watch(CONFIG_MAP) as events:
        found = [event async for event in events]

    assert found == [
        WatchEvent("ADDED", {"metadata": {"name": "a"}}),
        WatchEvent("DELETED", {"metadata": {"name": "a"}}),
    ]


async def test_lines_that_come_together_are_given_together() -> None:
    client, _ = client_of(
        ScriptedStream().send_chunk(FIRST + b"\n" + SECOND + b"\n" + FIRST[:9]).send_chunk(FIRST[9:] + b"\n")
    )
    async with client.watch(CONFIG_MAP) as events:
        assert await events.next_lines() == [FIRST, SECOND]
        assert await events.next_lines() == [FIRST]


async def test_a_plain_watch_asks_for_bookmarks_and_a_time_out() -> None:
    client, transport = client_of(ScriptedStream().end())
    async with client.watch(CONFIG_MAP, namespace="default", resource_version="7", timeout_seconds=300):
        pass

    (asked,) = transport.asked
    assert asked.path == "/api/v1/namespaces/default/configmaps"
    assert asked.query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
        "resourceVersion": "7",
    }


async def test_a_streaming_list_is_asked_for_as_fresh_as_can_be() -> None:
    client, transport = client_of(ScriptedStream().end())
    async with client.watch(CONFIG_MAP, initial_events=True):
        pass

    query = transport.asked[0].query
    assert query["sendInitialEvents"] == "true"
    assert query["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in query


async def test_leaving_the_block_closes_the_stream() -> None:
    stream = ScriptedStream().send(FIRST)
    client, _ = client_of(stream)
    async with client.watch(CONFIG_MAP) as events:
        await anext(events)

    assert stream.closed


async def test_an_error_of_the_block_comes_out_as_it_is() -> None:
    client, _ = client_of(ScriptedStream())

    async def fail() -> None:
        async with client.watch(CONFIG_MAP):
            raise NotFoundError("mine")

    with pytest.raises(NotFoundError, match="^mine$"):
        await fail()


async def test_an_error_event_is_raised_after_the_events_before_it() -> None:
    error = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'
    client, _ = client_of(ScriptedStream().send(FIRST, error))
    async with client.watch(CONFIG_MAP) as events:
        await anext(events)
        with pytest.raises(ExpiredError, match="too old"):
            await anext(events)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ScriptedStream(422, build_failure(422, "Invalid").json), InvalidError),
        (ScriptedStream(410, build_failure(410, "Expired").json), ExpiredError),
        (ScriptedStream(404, b"404 page not found"), KindNotServedError),
    ],
    ids=["422", "410", "404"],
)
async def test_a_refusal_has_its_class(answer: ScriptedStream, error: type[Exception]) -> None:
    client, _ = client_of(answer)

    with pytest.raises(error):
        async with client.watch(CONFIG_MAP):
            pass


@pytest.mark.parametrize("last", [b"{", b'{"type":7}', b"[]"])
async def test_what_is_no_event_ends_the_watch(last: bytes) -> None:
    client, _ = client_of(ScriptedStream().send(last))
    async with client.watch(CONFIG_MAP) as events:
        with pytest.raises(ConnectionFailedError, match="expected an event"):
            await anext(events)


async def test_an_end_in_the_middle_of_an_event_is_a_failure() -> None:
    client, _ = client_of(ScriptedStream().send(FIRST).send_chunk(SECOND[:20]).end())
    async with client.watch(CONFIG_MAP) as events:
        await anext(events)
        with pytest.raises(ConnectionFailedError, match="in the middle of an event"):
            await anext(events)


@pytest.mark.parametrize("chunk", [b"\n", b"\n\n\n", FIRST[:1]], ids=["a blank line", "blank lines", "a byte"])
async def test_what_never_makes_an_event_is_silence_too(chunk: bytes) -> None:
    stream = ScriptedStream()
    client, _ = client_of(stream)
    clock = SimulatedClock()

    async def trickle() -> None:
        while True:
            await clock.sleep(10)
            stream.send_chunk(chunk)

    trickling = asyncio.create_task(trickle())
    async with client.watch(CONFIG_MAP, idle_timeout_seconds=145) as events, asyncio.timeout(3600):
        with pytest.raises(SilentWatchError, match="145 s"):
            await anext(events)
    trickling.cancel()

    assert clock.monotonic() == pytest.approx(145)


async def test_silence_is_a_failure_after_a_while() -> None:
    client, _ = client_of(ScriptedStream().send(FIRST))
    clock = SimulatedClock()
    async with client.watch(CONFIG_MAP, idle_timeout_seconds=150) as events:
        await anext(events)
        with pytest.raises(SilentWatchError, match="150 s"):
            await anext(events)

    assert clock.monotonic() == pytest.approx(150)
