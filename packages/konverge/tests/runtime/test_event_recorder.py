"""Events of an operator, as the API server stores them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from konverge._internal.runtime.event_recorder import ClusterEventRecorder
from konverge._internal.runtime.event_series import EventLimits
from konverge.client import Client, Response, StreamingResponse, Transport
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.component import EventRecorder
from konverge.errors import ConnectionFailedError
from konverge.kube import GroupVersionKind, Object, ObjectKey, parse_time
from konverge_cluster.embedded import LocalCluster
from konverge_cluster.testing import Cluster

pytestmark = pytest.mark.anyio

EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
CORE_EVENT = GroupVersionKind("", "v1", "Event")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
AGENT = "events-under-test"
CLOCK = SimulatedClock()


@asynccontextmanager
async def sending(cluster: Cluster, **options: Any) -> AsyncIterator[ClusterEventRecorder]:
    """A running recorder; leaving the block sends the waiting events."""
    events = ClusterEventRecorder(
        cluster.new_client(AGENT), controller="webapp", clock=cluster.clock, entropy=SeededEntropy(), **options
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(events.run())
        yield events
        events.stop(timedelta(seconds=20))


async def owner(cluster: Cluster, name: str = "web") -> Object:
    return await cluster.client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": cluster.namespace}}
    )


async def list_events(cluster: Cluster, gvk: GroupVersionKind = EVENT) -> list[Object]:
    found = await cluster.client.list(gvk, namespace=cluster.namespace)
    # On the real cluster its own controllers report too.
    name = "reportingController" if gvk == EVENT else "reportingComponent"
    return [event for event in found.items if event.get(name) == "webapp"]


async def test_an_event_contains_the_incident_and_its_object(cluster: Cluster) -> None:
    web = await owner(cluster)
    child = await owner(cluster, "child")
    recorder: EventRecorder
    async with sending(cluster, instance="webapp-0") as recorder:
        recorder.event(web, reason="CreatedChild", message="Created Child 'child'", action="Create", related=child)

    [event] = await list_events(cluster)
    assert event["metadata"]["name"].startswith("web.")
    assert parse_time(event.pop("eventTime")) <= cluster.clock.now()
    del event["metadata"]
    named = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": cluster.namespace}
    assert {name: value for name, value in event.items() if not name.startswith("deprecated")} == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "type": "Normal",
        "reason": "CreatedChild",
        "action": "Create",
        "note": "Created Child 'child'",
        "reportingController": "webapp",
        "reportingInstance": "webapp-0",
        "regarding": named | {"name": "web", **_version(web)},
        "related": named | {"name": "child", **_version(child)},
    }


async def test_kubectl_finds_the_event_by_its_object(cluster: Cluster) -> None:
    web = await owner(cluster)
    async with sending(cluster) as events:
        events.warning(web, reason="InvalidSpec", message="spec.image: expected a string", action="Reconcile")

    selector = f"involvedObject.uid={web['metadata']['uid']},type=Warning"
    [event] = (await cluster.client.list(CORE_EVENT, namespace=cluster.namespace, field_selector=selector)).items
    assert (event["involvedObject"]["name"], event["reason"]) == ("web", "InvalidSpec")
    assert (event["message"], event["reportingComponent"]) == ("spec.image: expected a string", "webapp")


async def test_repetition_is_a_series_of_one_event(cluster: Cluster) -> None:
    web = await owner(cluster)
    async with sending(cluster) as events:
        for _ in range(5):
            events.event(web, reason="UpdatedService", message="Updated Service 'web'", action="Update")
            await cluster.clock.sleep(0.05)

    [event] = await list_events(cluster)
    assert event["series"]["count"] == 5
    assert event["series"]["lastObservedTime"] > event["eventTime"]
    assert [request.verb for request in cluster.list_requests(AGENT) if "/events" in request.path] == [
        "create",
        "patch",
        "patch",
    ]


async def test_a_series_goes_on_when_its_object_changes(cluster: Cluster) -> None:
    web = await owner(cluster)
    async with sending(cluster) as events:
        for number in range(4):
            events.event(web, reason="UpdatedService", message="Updated Service 'web'", action="Update")
            await cluster.clock.sleep(0.05)
            web = await cluster.client.patch(
                GroupVersionKind("", "v1", "ConfigMap"),
                ObjectKey.of(web),
                {"data": {"number": str(number)}},
                patch_type="merge",
            )

    [event] = await list_events(cluster)
    assert event["series"]["count"] == 4
    assert {request.code for request in cluster.list_requests(AGENT) if request.verb == "patch"} == {200}


async def test_an_event_that_was_deleted_meanwhile_is_created_again(cluster: Cluster) -> None:
    web = await owner(cluster)
    async with sending(cluster) as events:
        events.event(web, reason="UpdatedService", message="Updated Service 'web'", action="Update")

        async def first() -> Object | None:
            return next(iter(await list_events(cluster)), None)

        await cluster.client.delete(EVENT, ObjectKey.of(await cluster.eventually(first)))
        events.event(web, reason="UpdatedService", message="Updated Service 'web'", action="Update")

    [event] = await list_events(cluster)
    assert event["series"]["count"] == 2


async def test_what_is_too_long_is_cut_between_two_characters(cluster: Cluster) -> None:
    web = await owner(cluster)
    async with sending(cluster, instance="i" * 200) as events:
        events.event(web, reason="R" * 200, message="ä" * 1000, action="A" * 200)
        events.event(web, reason="", message="", action="")

    long, empty = sorted(await list_events(cluster), key=lambda event: str(event["reason"]))
    assert (len(long["reason"]), len(long["action"]), len(long["reportingInstance"])) == (128, 128, 128)
    assert long["note"] == "ä" * 510 + "…"
    assert (empty["reason"], empty["action"], empty.get("note", "")) == ("Unspecified", "Unspecified", "")


@pytest.mark.parametrize("controller", ["my operator!", "-web-", "x" * 90, "", "example.com/web", "a/b/c"])
async def test_whatever_an_operator_is_called_its_events_are_accepted(cluster: Cluster, controller: str) -> None:
    web = await owner(cluster)
    events = ClusterEventRecorder(
        cluster.new_client(AGENT), controller=controller, clock=cluster.clock, entropy=SeededEntropy()
    )
    events.event(web, reason="Tried", message="tried", action="Try")
    events.stop(timedelta(seconds=20))
    await events.run()

    assert events.statistics.sent == 1


async def test_events_on_cluster_scoped_objects_are_in_the_default_namespace(cluster: Cluster) -> None:
    namespace = await cluster.client.get(NAMESPACE, ObjectKey("", cluster.namespace))
    async with sending(cluster) as events:
        events.event(namespace, reason="Seen", message="seen", action="Look")

    found = await cluster.client.list(
        CORE_EVENT, namespace="default", field_selector=f"involvedObject.uid={namespace['metadata']['uid']}"
    )
    assert [event["reason"] for event in found.items] == ["Seen"]


async def test_names_that_only_role_objects_may_have_get_events_too(cluster: Cluster) -> None:
    role = await cluster.client.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "web:Admin_", "namespace": cluster.namespace},
            "rules": [],
        }
    )
    async with sending(cluster) as events:
        events.event(role, reason="Seen", message="seen", action="Look")

    [event] = await list_events(cluster)
    assert event["metadata"]["name"].startswith("web-admin.")
    assert event["regarding"]["name"] == "web:Admin_"


async def test_a_namespace_that_is_not_there_is_given_up_with_one_line(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "konverge.runtime")
    stray = await owner(cluster)
    stray["metadata"]["namespace"] = f"{cluster.namespace}-none"
    async with sending(cluster) as events:
        for number in range(3):
            events.event(stray, reason="Seen", message=f"seen {number}", action="Look")
        await cluster.eventually(lambda: events.statistics.refused == 3)
        events.event(stray, reason="Seen", message="again", action="Look")
        assert events.statistics.refused == 4

    assert [request.code for request in cluster.list_requests(AGENT) if "/events" in request.path] == [404]
    lines = [record.message for record in caplog.records if "namespace" in record.message]
    assert len(lines) == 1
    assert f"namespace {cluster.namespace}-none: no events for 600 s" in lines[0]


async def test_a_namespace_that_is_being_deleted_is_given_up_without_a_warning(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "konverge.runtime")
    name = f"{cluster.namespace}-ending"
    await cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    web = await cluster.client.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "web", "namespace": name, "finalizers": ["konverge.test/hold"]},
        }
    )
    await cluster.client.delete(NAMESPACE, ObjectKey("", name))
    try:
        async with sending(cluster) as events:
            events.event(web, reason="Seen", message="seen", action="Look")
    finally:
        held = GroupVersionKind("", "v1", "ConfigMap"), ObjectKey(name, "web")
        await cluster.client.patch(*held, {"metadata": {"finalizers": None}}, patch_type="merge")

    assert [request.code for request in cluster.list_requests(AGENT) if "/events" in request.path] == [403]
    assert [record.levelname for record in caplog.records if f"namespace {name}: no events" in record.message] == [
        "INFO"
    ]


class Switch:
    """A permit that a test switches."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def seconds_left(self) -> float:
        return self.seconds


async def test_without_the_permit_to_write_nothing_is_sent(cluster: Cluster) -> None:
    web = await owner(cluster)
    permit = Switch(0.0)
    async with sending(cluster, permit=permit) as events:
        events.event(web, reason="Seen", message="seen", action="Look")
        await cluster.clock.sleep(0.5)

    assert events.statistics.sent == 0
    assert cluster.list_requests(AGENT) == []


async def test_events_wait_for_the_permit(cluster: Cluster) -> None:
    web = await owner(cluster)
    permit = Switch(-1.0)
    async with sending(cluster, permit=permit) as events:
        events.event(web, reason="Seen", message="seen", action="Look")
        await cluster.clock.sleep(0.1)
        permit.seconds = 60.0
        await cluster.eventually(lambda: events.statistics.sent == 1)

    assert len(await list_events(cluster)) == 1


class Unreliable:
    """A transport on which each request fails until it is repaired, before or after it reached the server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.close = transport.close
        self.is_broken = False
        self.swallows_answers = False
        self.is_mistaken = False
        self.tries = 0

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if "/events" in path:
            self.tries += 1
            if self.is_broken:
                raise ConnectionFailedError("the server hung up")
            if self.is_mistaken:
                raise ValueError("a control character in a header")
        answer = await self._transport.request(method, path, **options)
        if self.swallows_answers and "/events" in path:
            self.swallows_answers = False
            raise ConnectionFailedError("the answer never came")
        return answer

    @asynccontextmanager
    async def stream(self, method: str, path: str, **options: Any) -> AsyncIterator[StreamingResponse]:
        async with self._transport.stream(method, path, **options) as response:
            yield response


@asynccontextmanager
async def unreliable() -> AsyncIterator[tuple[Unreliable, ClusterEventRecorder, Client]]:
    async with LocalCluster(clock=CLOCK, entropy=SeededEntropy()) as cluster:
        transport = Unreliable(cluster.transport())
        async with Client(transport, clock=CLOCK) as client:
            events = ClusterEventRecorder(
                client, controller="webapp", clock=CLOCK, entropy=SeededEntropy(), limits=EventLimits(series=10)
            )
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(events.run())
                yield transport, events, client
                events.stop()


def thing(name: str = "web") -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "uid": name}}


async def test_an_event_whose_answer_was_lost_is_there_once() -> None:
    async with unreliable() as (transport, events, client):
        transport.swallows_answers = True
        events.event(thing(), reason="Seen", message="seen", action="Look")
        await CLOCK.sleep(10)

        assert events.statistics.sent == 1
        assert len((await client.list(EVENT)).items) == 1


async def test_a_mistake_costs_its_event_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with unreliable() as (transport, events, client):
        transport.is_mistaken = True
        for name in ("a", "b"):
            events.event(thing(name), reason="Seen", message="seen", action="Look")
        await CLOCK.sleep(10)
        transport.is_mistaken = False
        events.event(thing("c"), reason="Seen", message="seen", action="Look")
        await CLOCK.sleep(10)

        assert (events.statistics.sent, events.statistics.refused) == (1, 2)
        assert [event["regarding"]["name"] for event in (await client.list(EVENT)).items] == ["c"]
    [record] = [record for record in caplog.records if "by an unexpected error: ValueError" in record.message]
    assert record.exc_info


async def test_recording_goes_on_while_the_server_is_gone_and_the_oldest_events_give_way(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with unreliable() as (transport, events, client):
        transport.is_broken = True
        for number in range(50):
            events.event(thing(f"web-{number}"), reason="Seen", message="seen", action="Look")
            await CLOCK.sleep(0.01)
        transport.is_broken = False
        await CLOCK.sleep(60)

        assert events.statistics.dropped == 39  # one was being sent at the time of the recovery
        noted = {event["regarding"]["name"] for event in (await client.list(EVENT)).items}
        assert noted == {"web-0", *(f"web-{number}" for number in range(40, 50))}
    assert len([record for record in caplog.records if "events dropped: " in record.message]) == 1


async def test_the_drain_ends_in_time_when_the_server_is_gone() -> None:
    async with unreliable() as (transport, events, _):
        transport.is_broken = True
        for number in range(5):
            events.event(thing(f"web-{number}"), reason="Seen", message="seen", action="Look")
        begin = CLOCK.monotonic()
        events.stop(timedelta(seconds=3))
    assert CLOCK.monotonic() - begin <= 3.0


async def test_cancelling_leaves_nothing_behind() -> None:
    async with LocalCluster(clock=CLOCK, entropy=SeededEntropy()) as cluster, Client(cluster.transport()) as client:
        events = ClusterEventRecorder(client, controller="webapp", clock=CLOCK, entropy=SeededEntropy())
        before = asyncio.all_tasks()
        run = asyncio.create_task(events.run())
        events.event(thing(), reason="Seen", message="seen", action="Look")
        await CLOCK.sleep(1)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)

        assert asyncio.all_tasks() == before


def _version(obj: Object) -> Object:
    return {"uid": obj["metadata"]["uid"], "resourceVersion": obj["metadata"]["resourceVersion"]}
