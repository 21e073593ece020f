"""Collections object by object and as metadata, shards, and logs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from konverge._internal.client.pod_logs import LogLineSplitter
from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import BadRequestError, ConnectionFailedError, ExpiredError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from tests.client.scripted_transport import (
    DISCOVERY,
    Script,
    ScriptedResponse,
    ScriptedStream,
    ScriptedTransport,
    build_failure,
)

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
POD = ObjectKey("default", "web")
SHARD = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"

WITH_PODS: dict[str, Object] = {
    **DISCOVERY,
    "/api": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "pods",
                                "responseKind": {"kind": "Pod"},
                                "scope": "Namespaced",
                                "subresources": [{"subresource": "log"}],
                            }
                        ],
                    }
                ],
            }
        ],
    },
}


def client_of(*script: Script, discovery: dict[str, Object] = DISCOVERY) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(*script, discovery=discovery)
    return Client(transport, clock=SimulatedClock(), entropy=SeededEntropy()), transport


def page(*names: str, more: str = "") -> ScriptedResponse:
    metadata = {"resourceVersion": "9"} | ({"continue": more} if more else {})
    return ScriptedResponse(json={"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]})


async def names_of(items: AsyncIterator[Object]) -> list[str]:
    return [item["metadata"]["name"] async for item in items]


# Object by object.


async def test_items_come_one_by_one_and_a_page_is_asked_for_when_it_is_needed() -> None:
    client, transport = client_of(page("a", "b", more="t"), page("c"))
    items = client.items(CONFIG_MAP, label_selector="x=y", limit=2)
    first = await anext(items)
    asked_so_far = len(transport.asked)

    assert first == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert asked_so_far == 1
    assert await names_of(items) == ["b", "c"]
    assert transport.asked[1].query == {"labelSelector": "x=y", "limit": "2", "continue": "t"}


async def test_items_that_expire_on_the_way_are_an_error_that_says_what_to_do() -> None:
    client, _ = client_of(page("a", "b", more="t"), build_failure(410, "Expired"))
    items = client.items(CONFIG_MAP)
    found = [(await anext(items))["metadata"]["name"] for _ in range(2)]

    assert found == ["a", "b"]
    with pytest.raises(ExpiredError, match="expired after 2 objects.*Start again, use larger pages, or use list"):
        await anext(items)


# Metadata alone.


@pytest.mark.parametrize("item", [7, None, "web", []])
async def test_a_list_that_holds_what_is_no_object_is_an_error_of_the_connection(item: object) -> None:
    client, _ = client_of(ScriptedResponse(json={"metadata": {}, "items": [item]}))

    with pytest.raises(ConnectionFailedError, match="v1/ConfigMap: the list has an invalid item: expected an object"):
        await client.list(CONFIG_MAP)


async def test_a_list_of_metadata_says_the_kind_of_its_objects_and_nothing_else_of_them() -> None:
    reduced = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}
    whole = {"metadata": {"name": "b"}, "data": {"k": "v"}}
    client, transport = client_of(
        ScriptedResponse(json={"metadata": {"resourceVersion": "9"}, "items": [reduced, whole]})
    )
    found = await client.list(CONFIG_MAP, metadata_only=True)

    assert transport.asked[0].headers["accept"] == METADATA_LIST
    assert found.items == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in "ab"]


async def test_the_metadata_of_one_object_can_be_read() -> None:
    client, transport = client_of(ScriptedResponse(json={"kind": "PartialObjectMetadata", "metadata": {"name": "a"}}))
    found = await client.get(CONFIG_MAP, ObjectKey("default", "a"), metadata_only=True)

    assert transport.asked[0].headers["accept"] == METADATA
    assert found == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


async def test_a_watch_of_metadata_says_the_kind_of_its_objects() -> None:
    line = b'{"type":"ADDED","object":{"kind":"PartialObjectMetadata","metadata":{"name":"a"}}}'
    client, transport = client_of(ScriptedStream().send(line).end())
    async with client.watch(CONFIG_MAP, metadata_only=True) as events:
        (event,) = [event async for event in events]

    assert transport.asked[0].headers["accept"] == METADATA
    assert event.object == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


# Shards.


async def test_a_list_tells_whether_the_server_went_by_the_shard_selector() -> None:
    filtered = {"metadata": {"resourceVersion": "9", "shardInfo": {"selector": SHARD}}, "items": []}
    client, transport = client_of(ScriptedResponse(json=filtered), page("a"))
    found = [await client.list(CONFIG_MAP, shard_selector=SHARD) for _ in range(2)]

    assert [one.shard_selector for one in found] == [SHARD, ""]
    assert transport.asked[0].query["shardSelector"] == SHARD


async def test_a_watch_passes_its_shard_selector_on() -> None:
    client, transport = client_of(ScriptedStream())
    async with client.watch(CONFIG_MAP, shard_selector=SHARD):
        pass

    assert transport.asked[0].query["shardSelector"] == SHARD


# Logs.


async def test_a_log_comes_line_by_line() -> None:
    stream = ScriptedStream().send_chunk(b"one\ntw").send_chunk(b"o\n\nla\xffst").end()
    client, transport = client_of(stream, discovery=WITH_PODS)
    async with client.logs(POD, container="app", follow=True, tail_lines=5, since_seconds=9) as log:
        lines = [line async for line in log]

    assert lines == ["one", "two", "", "la\ufffdst"]
    assert transport.paths == ["/api/v1/namespaces/default/pods/web/log"]
    assert transport.asked[0].query == {"container": "app", "follow": "true", "tailLines": "5", "sinceSeconds": "9"}
    assert stream.closed


async def test_a_log_that_does_not_end_in_time_is_told() -> None:
    client, _ = client_of(ScriptedStream().send(b"one"), discovery=WITH_PODS)
    async with client.logs(POD, follow=True, timeout_seconds=3) as log:
        first = await anext(log)
        with pytest.raises(ConnectionFailedError, match="the log of Pod default/web did not end within 3 s"):
            await anext(log)

    assert first == "one"


async def test_a_log_that_breaks_is_told() -> None:
    broken = ConnectionFailedError("the connection broke")
    client, _ = client_of(ScriptedStream().send_chunk(b"one\ntwo").fail(broken), discovery=WITH_PODS)
    async with client.logs(POD) as log:
        first = await anext(log)
        with pytest.raises(ConnectionFailedError, match="the connection broke"):
            await anext(log)

    assert first == "one"


async def test_a_log_that_is_refused_is_told() -> None:
    words = {"kind": "Status", "message": "container zz is not valid for pod web", "reason": "BadRequest"}
    client, _ = client_of(ScriptedStream(400, words), discovery=WITH_PODS)

    with pytest.raises(BadRequestError, match="container zz is not valid"):
        async with client.logs(POD, container="zz"):
            pass


@pytest.mark.parametrize("chunk_size", [1, 3, 4, 5, 100])
def test_lines_that_are_too_long_come_in_pieces(chunk_size: int) -> None:
    log = b"12345678\n1234\n123456789\nab"
    cutter = LogLineSplitter(max_line_bytes=4)
    lines: list[bytes] = []
    for at in range(0, len(log), chunk_size):
        lines += cutter.feed(log[at : at + chunk_size])
    lines += cutter.flush()

    assert lines == [b"1234", b"5678", b"1234", b"1234", b"5678", b"9", b"ab"]
