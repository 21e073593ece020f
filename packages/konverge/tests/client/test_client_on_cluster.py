"""The client against both clusters, with the same results."""

from __future__ import annotations

import pytest

from konverge._internal.client.watch import INITIAL_EVENTS_END
from konverge.client import ApplyResponse, Client, ServerWarning
from konverge.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    KindNotServedError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
)
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
# A controller of the real cluster creates the other one at any time.
NOT_OTHERS = "metadata.name!=kube-root-ca.crt"


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
    with pytest.raises(KindNotServedError, match="does not serve unserved.example/v1/Thing"):
        await cluster.client.mapping(GroupVersionKind("unserved.example", "v1", "Thing"))


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
    async def apply(client: Client, **data: str) -> ApplyResponse:
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
    paged = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, field_selector=NOT_OTHERS, limit=2)
    whole = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, field_selector=NOT_OTHERS)

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
        CONFIG_MAP, namespace=cluster.namespace, initial_events=True, field_selector=NOT_OTHERS
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
        CONFIG_MAP,
        namespace=cluster.namespace,
        field_selector=NOT_OTHERS,
        resource_version=listed.resource_version,
        timeout_seconds=5,
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

    assert 0.9 <= cluster.clock.monotonic() - begun <= 60


# Parts of objects, and parts of collections.


async def test_items_are_those_of_the_list(cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        await cluster.client.create(config_map(cluster, name))
    listed = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, field_selector=NOT_OTHERS)
    reading = cluster.client.items(CONFIG_MAP, namespace=cluster.namespace, field_selector=NOT_OTHERS, limit=2)
    items = [item async for item in reading]

    assert items == listed.items


async def test_metadata_alone_is_the_metadata_of_the_whole(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster, "a", key="value"))
    wanted = {name: created[name] for name in ("apiVersion", "kind", "metadata")}
    where, by_name = cluster.namespace, "metadata.name=a"
    client = cluster.client
    read = await client.get(CONFIG_MAP, key(cluster, "a"), metadata_only=True)
    listed = await client.list(CONFIG_MAP, namespace=where, field_selector=by_name, metadata_only=True)
    page = await client.list_page(CONFIG_MAP, namespace=where, field_selector=by_name, metadata_only=True)
    watching = client.watch(
        CONFIG_MAP, namespace=where, field_selector=by_name, metadata_only=True, initial_events=True
    )
    async with watching as events:
        existing, end = await anext(events), await anext(events)

    assert read == wanted
    assert listed.items == [wanted]
    assert b'"data"' not in bytes(page.items[0])
    assert b'"kind":"PartialObjectMetadata"' in bytes(page.items[0])
    assert existing.object == wanted
    assert end.object["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}


async def test_a_server_that_knows_no_shards_sends_everything_and_says_so(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster, "a"))
    nothing = "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000001')"
    found = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, shard_selector=nothing)

    assert (found.shard_selector, bool(found.items)) in {("", True), (nothing, False)}


# Writes with conditions, and those that are only tried.


async def test_every_write_can_be_tried_without_effect(cluster: Cluster) -> None:
    client = cluster.client
    before = await client.create(config_map(cluster, a="1"))
    created = await client.create(config_map(cluster, "other", a="1"), dry_run=True)
    updated = await client.update({**before, "data": {"a": "2"}}, dry_run=True)
    patched = await client.patch(CONFIG_MAP, key(cluster), {"data": {"a": "3"}}, patch_type="merge", dry_run=True)
    await client.delete(CONFIG_MAP, key(cluster), dry_run=True)
    await client.delete_collection(CONFIG_MAP, namespace=cluster.namespace, dry_run=True)

    assert [obj["data"]["a"] for obj in (created, updated, patched)] == ["1", "2", "3"]
    assert await client.get(CONFIG_MAP, key(cluster)) == before
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAP, key(cluster, "other"))


async def test_unknown_fields_are_refused_where_that_is_asked_for(cluster: Cluster) -> None:
    misspelt = {**config_map(cluster), "daata": {}}

    with pytest.raises(BadRequestError, match="daata"):
        await cluster.client.create(misspelt, field_validation="Strict")
    with pytest.raises(BadRequestError, match="daata"):
        await cluster.client.create(misspelt, field_validation="Strict", dry_run=True)
    await cluster.client.create(misspelt, field_validation="Ignore")


async def test_the_server_warns_of_unknown_fields(cluster: Cluster) -> None:
    heard: list[ServerWarning] = []
    client = Client(cluster.new_transport(), clock=cluster.clock, on_warning=heard.append)
    await client.create({**config_map(cluster), "daata": {}}, field_validation="Warn")

    assert [warning.text for warning in heard] == ['unknown field "daata"']
    assert heard[0].path == f"/api/v1/namespaces/{cluster.namespace}/configmaps"


async def test_an_object_that_has_changed_is_not_deleted(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster, a="1"))
    await cluster.client.update({**created, "data": {"a": "2"}})

    with pytest.raises(ConflictError):
        await cluster.client.delete(CONFIG_MAP, key(cluster), resource_version=created["metadata"]["resourceVersion"])


async def test_a_collection_is_deleted_by_labels(cluster: Cluster) -> None:
    for name, app in (("a", "web"), ("b", "web"), ("c", "db")):
        obj = config_map(cluster, name)
        obj["metadata"]["labels"] = {"app": app}
        await cluster.client.create(obj)
    await cluster.client.delete_collection(CONFIG_MAP, namespace=cluster.namespace, label_selector="app=web")
    left = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, label_selector="app")

    assert [obj["metadata"]["name"] for obj in left.items] == ["c"]


def deployment(cluster: Cluster) -> Object:
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": cluster.namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
    }


async def test_a_deployment_is_scaled(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster))
    tried = await cluster.client.scale(DEPLOYMENT, key(cluster), 5, dry_run=True)
    scaled = await cluster.client.scale(DEPLOYMENT, key(cluster), 2)
    read = await cluster.client.get(DEPLOYMENT, key(cluster), subresource="scale")

    assert (tried["kind"], tried["spec"]) == ("Scale", {"replicas": 5})
    assert scaled["spec"] == read["spec"] == {"replicas": 2}
    with pytest.raises(ConflictError):
        await cluster.client.scale(DEPLOYMENT, key(cluster), 3, resource_version="1")


async def test_a_subresource_that_no_object_of_the_kind_has_is_told(cluster: Cluster) -> None:
    obj = await cluster.client.create(config_map(cluster))

    with pytest.raises(ApiError, match=r'v1/ConfigMap has no subresource "status" \(it has none\)'):
        await cluster.client.update(obj, subresource="status")
    with pytest.raises(NotFoundError):
        await cluster.client.get(DEPLOYMENT, key(cluster, "none"), subresource="scale")


def pod(cluster: Cluster) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": cluster.namespace, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


async def is_ready(cluster: Cluster) -> bool:
    found = await cluster.client.get(GroupVersionKind("", "v1", "Pod"), key(cluster))
    conditions = found.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


async def test_a_pod_is_evicted_where_its_budget_allows_it(cluster: Cluster) -> None:
    await cluster.client.create(pod(cluster))
    await cluster.eventually(lambda: is_ready(cluster))  # no budget protects a Pod before
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "budget", "namespace": cluster.namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    await cluster.client.create(budget)
    with pytest.raises(TooManyRequestsError, match="disruption budget") as raised:
        await cluster.client.evict(key(cluster))
    await cluster.client.delete(GroupVersionKind.of(budget), key(cluster, "budget"))
    await cluster.client.evict(key(cluster), grace_period_seconds=0)

    assert [cause.reason for cause in raised.value.causes] == ["DisruptionBudget"]
    with pytest.raises(NotFoundError):
        await cluster.client.evict(key(cluster))


# Where the embedded cluster is behind.

on_the_real_one = pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)], indirect=True)


@on_the_real_one
async def test_a_pod_of_another_uid_is_not_evicted(cluster: Cluster) -> None:
    await cluster.client.create(pod(cluster))

    with pytest.raises(ConflictError):
        await cluster.client.evict(key(cluster), uid="another")


@on_the_real_one
async def test_the_log_of_a_container_that_is_not_there_is_told(cluster: Cluster) -> None:
    await cluster.client.create(pod(cluster))

    with pytest.raises(BadRequestError, match="container none is not valid for pod web"):
        async with cluster.client.logs(key(cluster), container="none"):
            pass
    with pytest.raises(NotFoundError):
        async with cluster.client.logs(key(cluster, "none")):
            pass


@on_the_real_one
async def test_the_log_of_a_node_that_does_not_answer_is_a_failure_of_the_server(cluster: Cluster) -> None:
    await cluster.client.create(pod(cluster))
    await cluster.eventually(lambda: is_ready(cluster))

    with pytest.raises(ServerError):
        async with cluster.client.logs(key(cluster)):
            pass
