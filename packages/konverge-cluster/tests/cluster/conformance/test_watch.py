"""Watches: events, their order, and the revisions from which a watch can continue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from konverge._internal.client.watch import INITIAL_EVENTS_END
from konverge.client import WatchEvent
from konverge.errors import ExpiredError
from konverge.kube import ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import CONFIG_MAP, config_map
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio

# The initial objects of each namespace on a real cluster have no labels.
LABELLED = {"case": "yes"}
SELECTOR = "case=yes"


async def take(events: AsyncIterator[WatchEvent], count: int) -> list[WatchEvent]:
    """Return the next `count` events without bookmarks, if they arrive in time."""
    taken: list[WatchEvent] = []
    async with asyncio.timeout(10):
        async for event in events:
            taken += [event] if event.type != "BOOKMARK" else []
            if len(taken) == count:
                break
    return taken


def read_events(events: list[WatchEvent]) -> list[tuple[str, str]]:
    """Return (type, name) of each event."""
    return [(event.type, event.object["metadata"]["name"]) for event in events]


async def now(cluster: Cluster) -> str:
    """Return the current resource version of the collection."""
    return (await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace)).resource_version


async def test_changes_arrive_in_order_with_the_whole_object(cluster: Cluster) -> None:
    start = await now(cluster)
    created = await cluster.client.create(config_map(cluster.namespace, "one", labels=LABELLED, a="1"))
    updated = await cluster.client.update({**created, "data": {"a": "2"}})
    await cluster.client.delete(CONFIG_MAP, ObjectKey.of(created))

    async with cluster.client.watch(
        CONFIG_MAP, namespace=cluster.namespace, resource_version=start, label_selector=SELECTOR
    ) as events:
        taken = await take(events, 3)

    assert read_events(taken) == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]
    assert taken[0].object == created
    assert taken[1].object == updated
    assert taken[2].object["data"] == {"a": "2"}


async def test_a_deletion_has_a_resource_version_of_its_own(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, "one", labels=LABELLED))

    async with cluster.client.watch(
        CONFIG_MAP,
        namespace=cluster.namespace,
        resource_version=created["metadata"]["resourceVersion"],
        label_selector=SELECTOR,
    ) as events:
        await cluster.client.delete(CONFIG_MAP, ObjectKey.of(created))
        (deleted,) = await take(events, 1)

    assert deleted.type == "DELETED"
    assert int(deleted.object["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


async def test_changes_arrive_while_the_watch_is_open(cluster: Cluster) -> None:
    async with cluster.client.watch(
        CONFIG_MAP, namespace=cluster.namespace, resource_version=await now(cluster), label_selector=SELECTOR
    ) as events:
        await cluster.client.create(config_map(cluster.namespace, "one", labels=LABELLED))
        first = await take(events, 1)
        await cluster.client.create(config_map(cluster.namespace, "two", labels=LABELLED))
        second = await take(events, 1)

    assert read_events(first + second) == [("ADDED", "one"), ("ADDED", "two")]


async def test_a_watch_goes_on_after_the_last_event_that_was_seen(cluster: Cluster) -> None:
    start = await now(cluster)
    first = await cluster.client.create(config_map(cluster.namespace, "one", labels=LABELLED))
    await cluster.client.create(config_map(cluster.namespace, "two", labels=LABELLED))

    async with cluster.client.watch(
        CONFIG_MAP, namespace=cluster.namespace, resource_version=start, label_selector=SELECTOR
    ) as events:
        (seen,) = await take(events, 1)
    async with cluster.client.watch(
        CONFIG_MAP,
        namespace=cluster.namespace,
        resource_version=seen.object["metadata"]["resourceVersion"],
        label_selector=SELECTOR,
    ) as events:
        rest = await take(events, 1)

    assert seen.object == first
    assert read_events(rest) == [("ADDED", "two")]


async def test_without_a_resource_version_what_exists_comes_first(cluster: Cluster) -> None:
    for name in ("one", "two"):
        await cluster.client.create(config_map(cluster.namespace, name, labels=LABELLED))

    async with cluster.client.watch(CONFIG_MAP, namespace=cluster.namespace, label_selector=SELECTOR) as events:
        existing = await take(events, 2)
        await cluster.client.create(config_map(cluster.namespace, "three", labels=LABELLED))
        later = await take(events, 1)

    assert sorted(read_events(existing)) == [("ADDED", "one"), ("ADDED", "two")]
    assert read_events(later) == [("ADDED", "three")]


async def test_initial_events_end_with_a_marked_bookmark(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster.namespace, "one", labels=LABELLED))

    received: list[WatchEvent] = []
    async with (
        asyncio.timeout(20),
        cluster.client.watch(
            CONFIG_MAP, namespace=cluster.namespace, label_selector=SELECTOR, initial_events=True
        ) as events,
    ):
        async for event in events:
            received.append(event)
            if event.type == "BOOKMARK":
                break

    assert [event.type for event in received] == ["ADDED", "BOOKMARK"]
    metadata = received[1].object["metadata"]
    assert metadata["annotations"] == {INITIAL_EVENTS_END: "true"}
    assert int(metadata["resourceVersion"]) >= int(received[0].object["metadata"]["resourceVersion"])
    assert received[1].object["kind"] == "ConfigMap"


async def test_initial_events_are_there_for_an_empty_collection_too(cluster: Cluster) -> None:
    async with (
        asyncio.timeout(20),
        cluster.client.watch(
            CONFIG_MAP, namespace=cluster.namespace, label_selector="case=none", initial_events=True
        ) as events,
    ):
        first = await anext(events)

    assert first.type == "BOOKMARK"
    assert first.object["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}


async def test_an_object_that_leaves_the_selection_is_deleted_for_the_watcher(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, "one", labels=LABELLED))
    key = ObjectKey.of(created)

    async with cluster.client.watch(
        CONFIG_MAP,
        namespace=cluster.namespace,
        resource_version=created["metadata"]["resourceVersion"],
        label_selector=SELECTOR,
    ) as events:
        left = await cluster.client.patch(CONFIG_MAP, key, {"metadata": {"labels": {"case": "no"}}}, patch_type="merge")
        back = await cluster.client.patch(CONFIG_MAP, key, {"metadata": {"labels": LABELLED}}, patch_type="merge")
        taken = await take(events, 2)

    assert read_events(taken) == [("DELETED", "one"), ("ADDED", "one")]
    assert taken[0].object["metadata"]["labels"] == LABELLED
    assert taken[0].object["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
    assert taken[1].object == back


async def test_one_object_can_be_watched_by_its_name(cluster: Cluster) -> None:
    start = await now(cluster)
    await cluster.client.create(config_map(cluster.namespace, "one"))
    await cluster.client.create(config_map(cluster.namespace, "two"))

    async with cluster.client.watch(
        CONFIG_MAP, namespace=cluster.namespace, resource_version=start, field_selector="metadata.name=two"
    ) as events:
        taken = await take(events, 1)

    assert read_events(taken) == [("ADDED", "two")]


async def test_a_watch_of_a_namespace_does_not_see_others(cluster: Cluster) -> None:
    start = await now(cluster)
    await cluster.client.create(config_map("default", f"{cluster.namespace}-outside", labels=LABELLED))
    await cluster.client.create(config_map(cluster.namespace, "inside", labels=LABELLED))

    async with cluster.client.watch(
        CONFIG_MAP, namespace=cluster.namespace, resource_version=start, label_selector=SELECTOR
    ) as events:
        taken = await take(events, 1)

    assert read_events(taken) == [("ADDED", "inside")]
    await cluster.client.delete(CONFIG_MAP, ObjectKey("default", f"{cluster.namespace}-outside"))


async def test_an_update_that_changes_nothing_is_no_event(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, "one", labels=LABELLED))
    await cluster.client.update(created)
    await cluster.client.update({**created, "data": {"a": "1"}})

    async with cluster.client.watch(
        CONFIG_MAP,
        namespace=cluster.namespace,
        resource_version=created["metadata"]["resourceVersion"],
        label_selector=SELECTOR,
    ) as events:
        (event,) = await take(events, 1)

    assert event.object["data"] == {"a": "1"}


async def test_a_resource_version_from_before_the_history_is_expired(widgets: Widgets, cluster: Cluster) -> None:
    with pytest.raises(ExpiredError, match="too old resource version"):
        async with cluster.client.watch(widgets.gvk, namespace=cluster.namespace, resource_version="1") as events:
            await take(events, 1)


async def test_a_watch_ends_after_the_time_that_was_asked_for(cluster: Cluster) -> None:
    begin = cluster.clock.monotonic()

    async with cluster.client.watch(
        CONFIG_MAP,
        namespace=cluster.namespace,
        resource_version=await now(cluster),
        label_selector=SELECTOR,
        timeout_seconds=1,
    ) as events:
        received = [event async for event in events if event.type != "BOOKMARK"]

    assert received == []
    assert 0.9 <= cluster.clock.monotonic() - begin < 60


async def test_custom_resources_are_watched_like_others(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new())
    ready = await cluster.client.update({**created, "status": {"phase": "Ready"}}, subresource="status")

    async with cluster.client.watch(
        widgets.gvk, namespace=cluster.namespace, resource_version=created["metadata"]["resourceVersion"]
    ) as events:
        (event,) = await take(events, 1)

    assert (event.type, event.object) == ("MODIFIED", ready)
