"""The client against both clusters: what they agree on with it."""

from __future__ import annotations

import pytest

from konverge.client import Applied, Client
from konverge.client.watch import INITIAL_EVENTS_END
from konverge.errors import AlreadyExistsError, ConflictError, KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.testing import Cluster

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


def config_map(cluster: Cluster, name: str = "web", **data: str) -> Object:
    metadata = {"name": name, "namespace": cluster.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def key(cluster: Cluster, name: str = "web") -> ObjectKey:
    return ObjectKey(cluster.namespace, name)


async def test_discovery_knows_the_kinds(cluster: Cluster) -> None:
    found = await cluster.client.mapping(DEPLOYMENT)
    kinds = {mapping.gvk for mapping in await cluster.client.mappings()}

    assert (found.plural, found.singular, found.namespaced) == ("deployments", "deployment", True)
    assert found.short_names == ("deploy",)
    assert {"get", "list", "watch", "create", "update", "patch", "delete"} <= found.verbs
    assert {"status", "scale"} <= found.subresources
    assert {CONFIG_MAP, DEPLOYMENT, GroupVersionKind("", "v1", "Namespace")} <= kinds


async def test_a_kind_that_is_not_served_is_told(cluster: Cluster) -> None:
    with pytest.raises(KindNotServedError, match="does not serve nobody.example/v1/Thing"):
        await cluster.client.mapping(GroupVersionKind("nobody.example", "v1", "Thing"))


async def test_what_is_created_can_be_read_updated_and_deleted(cluster: Cluster) -> None:
    client = cluster.client
    created = await client.create(config_map(cluster, a="1"))
    created["data"]["a"] = "2"
    updated = await client.update(created)
    read = await client.get(CONFIG_MAP, key(cluster))
    gone = await client.delete(CONFIG_MAP, key(cluster), uid=read["metadata"]["uid"])

    assert read == updated
    assert read["data"] == {"a": "2"}
    assert gone is None
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, key(cluster))


async def test_an_update_of_what_has_changed_is_a_conflict(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster, a="1"))
    await cluster.client.update({**created, "data": {"a": "2"}})

    with pytest.raises(ConflictError):
        await cluster.client.update({**created, "data": {"a": "3"}})


async def test_a_name_is_given_once(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster))

    with pytest.raises(AlreadyExistsError):
        await cluster.client.create(config_map(cluster))


async def test_an_update_keeps_the_record_of_managers_whatever_it_says(cluster: Cluster) -> None:
    applied = (await cluster.client.apply(config_map(cluster, a="1"), field_manager="applier")).object
    await cluster.client.update({**applied, "metadata": {**applied["metadata"], "managedFields": []}})
    found = await cluster.client.get(CONFIG_MAP, key(cluster))

    assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["applier"]


async def test_apply_tells_creation_from_change(cluster: Cluster) -> None:
    async def apply(client: Client, **data: str) -> Applied:
        return await client.apply(config_map(cluster, **data), field_manager="applier")

    first, second, third = [await apply(cluster.client, a=value) for value in ("1", "2", "2")]

    assert [first.created, second.created, third.created] == [True, False, False]
    assert second.object["metadata"]["resourceVersion"] == third.object["metadata"]["resourceVersion"]


async def test_a_dry_run_stores_nothing(cluster: Cluster) -> None:
    found = await cluster.client.apply(config_map(cluster, a="1"), field_manager="applier", dry_run=True)

    assert found.object["data"] == {"a": "1"}
    with pytest.raises(NotFoundError):
        await cluster.client.get(CONFIG_MAP, key(cluster))


async def test_an_object_of_another_uid_is_not_deleted(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster))

    with pytest.raises(ConflictError):
        await cluster.client.delete(CONFIG_MAP, key(cluster), uid="another")


async def test_an_object_that_a_finalizer_holds_is_given_back(cluster: Cluster) -> None:
    obj = config_map(cluster)
    obj["metadata"]["finalizers"] = ["konverge.test/hold"]
    await cluster.client.create(obj)
    held = await cluster.client.delete(CONFIG_MAP, key(cluster))
    await cluster.client.patch(CONFIG_MAP, key(cluster), {"metadata": {"finalizers": None}}, patch_type="merge")

    assert held is not None
    assert held["metadata"]["deletionTimestamp"]
    with pytest.raises(NotFoundError):
        await cluster.client.get(CONFIG_MAP, key(cluster))


async def test_a_list_in_pages_is_the_whole_list(cluster: Cluster) -> None:
    for name in ("a", "b", "c", "d", "e"):
        await cluster.client.create(config_map(cluster, name))
    paged = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, limit=2)
    whole = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace)

    assert paged.items == whole.items
    assert {"a", "b", "c", "d", "e"} <= {item["metadata"]["name"] for item in paged.items}
    assert {(item["apiVersion"], item["kind"]) for item in paged.items} == {("v1", "ConfigMap")}


async def test_selectors_narrow_a_list(cluster: Cluster) -> None:
    labelled = config_map(cluster, "a")
    labelled["metadata"]["labels"] = {"app": "web"}
    await cluster.client.create(labelled)
    await cluster.client.create(config_map(cluster, "b"))

    async def names(label_selector: str = "", field_selector: str = "") -> list[str]:
        found = await cluster.client.list(
            CONFIG_MAP,
            namespace=cluster.namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        return [item["metadata"]["name"] for item in found.items]

    assert await names(label_selector="app in (web, site),!tier") == ["a"]
    assert await names(field_selector="metadata.name=b") == ["b"]


async def test_a_streaming_list_tells_what_exists_and_then_what_happens(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster, "before"))
    watching = cluster.client.watch(
        CONFIG_MAP, namespace=cluster.namespace, initial_events=True, field_selector="metadata.name!=kube-root-ca.crt"
    )
    async with watching as events:
        existing, end = await anext(events), await anext(events)
        await cluster.client.create(config_map(cluster, "after"))
        following = await anext(events)

    assert (existing.type, existing.object["metadata"]["name"]) == ("ADDED", "before")
    assert (end.type, end.object["metadata"]["annotations"]) == ("BOOKMARK", {INITIAL_EVENTS_END: "true"})
    assert (following.type, following.object["metadata"]["name"]) == ("ADDED", "after")


async def test_a_watch_goes_on_where_a_list_ended(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster, "before"))
    listed = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace)
    await cluster.client.create(config_map(cluster, "after"))
    watching = cluster.client.watch(
        CONFIG_MAP, namespace=cluster.namespace, resource_version=listed.resource_version, timeout_seconds=5
    )
    async with watching as events:
        first = await anext(events)

    assert (first.type, first.object["metadata"]["name"]) == ("ADDED", "after")


async def test_a_watch_ends_after_the_time_that_was_asked_for(cluster: Cluster) -> None:
    watching = cluster.client.watch(CONFIG_MAP, namespace=cluster.namespace, resource_version="", timeout_seconds=1)
    begun = cluster.clock.monotonic()
    async with watching as events:
        async for _ in events:
            pass

    assert 0.9 <= cluster.clock.monotonic() - begun <= 5
