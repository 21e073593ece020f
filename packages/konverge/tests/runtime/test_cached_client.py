"""Reads and writes of a reconcile while the watch lags far behind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from konverge._internal.cache import InformerFactory
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.runtime.cached_client import CachedClient, CachedClientFactory
from konverge._internal.runtime.event_router import EventRouter, RoutedKind
from konverge._internal.runtime.read_tracking import ReadingOwner, ReadTracker
from konverge.client import Client, Response, StreamingResponse, Transport
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import ApiError, ConnectionFailedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.embedded import LocalCluster
from tests.runtime.test_event_router import Nothing

pytestmark = pytest.mark.anyio

CLOCK = SimulatedClock()
LAG_SECONDS = 10.0
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
WEB_APP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
ME = ReadingOwner(WEB_APP, ObjectKey("default", "me"))
OTHER = ReadingOwner(WEB_APP, ObjectKey("default", "other"))
KEY = ObjectKey("default", "settings")


class LaggingTransport:
    """Forwards requests at once, and delays all watch events."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.close = transport.close
        self.loses_answers = False
        self.lists_come = asyncio.Event()
        self.lists_come.set()

    async def request(self, method: str, path: str, **options: Any) -> Response:
        answer = await self._transport.request(method, path, **options)
        if method == "GET" and path.endswith("/configmaps"):
            await self.lists_come.wait()
        if self.loses_answers and method != "GET":
            raise ConnectionFailedError("the answer was lost")
        return answer

    @asynccontextmanager
    async def stream(self, method: str, path: str, **options: Any) -> AsyncIterator[StreamingResponse]:
        async with self._transport.stream(method, path, **options) as response:
            yield _Lagging(response)


class _Lagging:
    def __init__(self, response: StreamingResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = response.headers
        self.body = response.body

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.chunks():
            await CLOCK.sleep(LAG_SECONDS)
            yield chunk


@dataclass
class Desk:
    """Two owners' clients, and a record of the triggered owners."""

    clients: CachedClientFactory
    admin: Client
    transport: LaggingTransport
    woken: list[str] = field(default_factory=list)

    def client(self, reader: ReadingOwner = ME) -> CachedClient:
        self.clients.read_tracker.begin(reader)
        return self.clients.build_client(reader)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with LocalCluster(clock=CLOCK, entropy=SeededEntropy()) as cluster:
        woken: list[str] = []
        admin = Client(cluster.transport(), user_agent="admin", clock=CLOCK)
        transport = LaggingTransport(cluster.transport())
        client = Client(transport, user_agent="operator", clock=CLOCK)
        reads = ReadTracker()
        routing = EventRouter(reads, lookup=Nothing())
        routing.set_routes([RoutedKind(WEB_APP, namespaced=True)])

        def record_owners(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
            woken.extend(sorted(reader.key.name for reader in routing.find_owners(gvk, old, new)))

        async with InformerFactory(
            client, namespaces=["default"], keep=routing.is_needed, clock=CLOCK, entropy=SeededEntropy()
        ) as informers:
            informers.subscribe(record_owners)
            yield Desk(
                CachedClientFactory(client, informers, reads, routing, CLOCK, namespaces=["default"]),
                admin,
                transport,
                woken,
            )


def config_map(**data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "data": data,
    }


async def wait_for_watch() -> None:
    await CLOCK.sleep(5 * LAG_SECONDS)


async def test_a_read_sees_what_was_just_applied(desk: Desk) -> None:
    client = desk.client()
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, KEY)
    await client.apply(config_map(colour="blue"), field_manager="me")

    assert (await client.get(CONFIG_MAP, KEY))["data"] == {"colour": "blue"}


async def test_a_read_sees_what_was_just_updated(desk: Desk) -> None:
    await desk.admin.create(config_map(colour="blue"))
    client = desk.client()
    found = await client.get(CONFIG_MAP, KEY)
    await client.update(found | {"data": {"colour": "red"}})

    assert (await client.get(CONFIG_MAP, KEY))["data"] == {"colour": "red"}


async def test_a_read_does_not_see_what_was_just_deleted(desk: Desk) -> None:
    await desk.admin.create(config_map(colour="blue"))
    client = desk.client()
    found = await client.get(CONFIG_MAP, KEY)
    await client.delete(CONFIG_MAP, KEY, uid=found["metadata"]["uid"])

    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, KEY)


async def test_a_failed_update_of_a_deleted_object_hides_it_from_reads(desk: Desk) -> None:
    client = desk.client()
    held = await client.create(config_map(greeting="Hello"))
    desk.clients.read_tracker.finish(ME, complete=True)
    desk.woken.clear()
    await desk.admin.delete(CONFIG_MAP, KEY)
    assert await client.get(CONFIG_MAP, KEY), "the watch has not delivered it yet"

    with pytest.raises(NotFoundError):
        await client.update(held | {"data": {"greeting": "Ahoy"}})

    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, KEY)
    assert desk.woken == ["me"]


async def test_what_has_no_such_subresource_has_not_gone(desk: Desk) -> None:
    client = desk.client()
    held = await client.create(config_map(greeting="Hello"))

    with pytest.raises(ApiError, match="has no subresource"):
        await client.update(held, subresource="status")

    assert await client.get(CONFIG_MAP, KEY)


async def test_a_live_read_sees_a_change_before_the_watch(desk: Desk) -> None:
    client = desk.client()
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, KEY)
    await desk.admin.create(config_map(colour="blue"))

    assert (await client.get(CONFIG_MAP, KEY, live=True))["data"] == {"colour": "blue"}
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, KEY)


async def test_what_is_out_of_the_informers_namespace_is_read_live(desk: Desk) -> None:
    elsewhere = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}
    await desk.admin.create(elsewhere)
    obj = config_map(colour="blue")
    obj["metadata"]["namespace"] = "elsewhere"
    await desk.admin.create(obj)

    found = await desk.client().get(CONFIG_MAP, ObjectKey("elsewhere", KEY.name))

    assert found["data"] == {"colour": "blue"}
    assert CONFIG_MAP not in desk.clients.informers.running


async def test_a_write_wakes_all_readers_at_once_and_only_once(desk: Desk) -> None:
    await desk.admin.create(config_map(colour="blue"))
    await desk.client(OTHER).get(CONFIG_MAP, KEY)
    client = desk.client()
    await client.get(CONFIG_MAP, KEY)
    desk.woken.clear()

    await client.apply(config_map(colour="red"), field_manager="me")
    at_once = list(desk.woken)
    await wait_for_watch()

    assert at_once == ["me", "other"]
    assert desk.woken == at_once


async def test_a_list_sees_what_was_just_written_and_later_changes_wake_its_reader(desk: Desk) -> None:
    client = desk.client()
    assert await client.list(CONFIG_MAP, labels={"app": "web"}) == []

    obj = config_map(colour="blue")
    obj["metadata"]["labels"] = {"app": "web"}
    await client.apply(obj, field_manager="me")
    [found] = await client.list(CONFIG_MAP, namespace="default", labels="app in (web, db)")
    assert found["data"] == {"colour": "blue"}

    desk.woken.clear()
    second = config_map() | {"metadata": {"name": "second", "namespace": "default", "labels": {"app": "web"}}}
    await desk.admin.create(second)
    await wait_for_watch()

    assert desk.woken == ["me"]
    assert len(await client.list(CONFIG_MAP, labels={"app": "web"})) == 2


async def test_a_list_contains_objects_from_before_its_first_read(desk: Desk) -> None:
    obj = config_map(colour="blue")
    obj["metadata"]["labels"] = {"app": "web"}
    await desk.admin.create(obj)
    client = desk.client()
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, ObjectKey("default", "another"))  # starts the informer, which drops the object

    assert [found["metadata"]["name"] for found in await client.list(CONFIG_MAP, labels="app=web")] == [KEY.name]


async def test_a_write_whose_answer_was_lost_is_seen_by_the_next_read(desk: Desk) -> None:
    client = desk.client()
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, KEY)

    desk.transport.loses_answers = True
    with pytest.raises(ConnectionFailedError):
        await client.apply(config_map(colour="blue"), field_manager="me")

    assert (await client.get(CONFIG_MAP, KEY))["data"] == {"colour": "blue"}


async def test_a_delete_whose_answer_was_lost_is_seen_by_the_next_read(desk: Desk) -> None:
    await desk.admin.create(config_map(colour="blue"))
    client = desk.client()
    found = await client.get(CONFIG_MAP, KEY)
    desk.transport.loses_answers = True
    with pytest.raises(ConnectionFailedError):
        await client.delete(CONFIG_MAP, KEY, uid=found["metadata"]["uid"])

    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, KEY)


async def test_two_concurrent_readers_of_a_forgotten_list_both_see_all_of_it(desk: Desk) -> None:
    first = desk.client()
    assert await first.list(CONFIG_MAP, namespace="default", labels={"app": "web"}) == []
    desk.clients.read_tracker.finish(ME, complete=True)
    desk.clients.read_tracker.forget(ME)
    obj = config_map(colour="blue")
    obj["metadata"]["labels"] = {"app": "web"}
    await desk.admin.create(obj)
    await wait_for_watch()  # the watch has delivered it, and no owner needs it

    found = await asyncio.gather(
        *(desk.client(who).list(CONFIG_MAP, namespace="default", labels={"app": "web"}) for who in (ME, OTHER))
    )

    assert [len(objects) for objects in found] == [1, 1]


async def test_what_was_created_under_a_name_of_the_servers_wakes_its_owner(desk: Desk) -> None:
    client = desk.client()
    obj = config_map(colour="blue")
    obj["metadata"] = {"generateName": "note-", "namespace": "default"}
    made = ObjectKey.of(await client.create(obj))
    await wait_for_watch()
    desk.woken.clear()
    await desk.admin.delete(CONFIG_MAP, made)
    await wait_for_watch()

    assert desk.woken == ["me"]


async def test_a_reconcile_sees_a_create_of_one_that_was_cancelled_during_the_list(
    desk: Desk,
) -> None:
    desk.transport.lists_come.clear()
    listing = asyncio.create_task(desk.client(OTHER).list(CONFIG_MAP, namespace="default"))
    await CLOCK.sleep(1)
    creating = asyncio.create_task(desk.client().create(config_map(colour="blue")))
    await CLOCK.sleep(1)
    creating.cancel()
    desk.transport.lists_come.set()
    await asyncio.wait([creating, listing])

    assert (await desk.client().get(CONFIG_MAP, KEY))["data"] == {"colour": "blue"}


async def test_what_can_only_be_created_is_created(desk: Desk) -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    }

    assert (await desk.client().create(review))["status"]["allowed"] is True


async def test_each_new_list_asks_for_its_own_objects_alone(desk: Desk) -> None:
    for number in range(6):
        obj = config_map(number=str(number))
        obj["metadata"] |= {"name": f"note-{number}", "labels": {"app": f"app-{number}"}}
        await desk.admin.create(obj)
    client = desk.client()
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, ObjectKey("default", "another"))  # starts the informer, which drops the notes
    lists = desk.clients.informers.running[CONFIG_MAP].statistics.lists

    for number in range(6):
        (found,) = await desk.client().list(CONFIG_MAP, labels={"app": f"app-{number}"})
        assert found["metadata"]["name"] == f"note-{number}"

    assert desk.clients.informers.running[CONFIG_MAP].statistics.lists == lists, "the kind is not listed again"
