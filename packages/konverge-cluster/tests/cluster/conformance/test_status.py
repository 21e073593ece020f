"""The status subresource, the generation and the resource version."""

from __future__ import annotations

import json

import pytest

from konverge.errors import ConflictError
from konverge.kube import ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import (
    CONFIG_MAP,
    DEPLOYMENT,
    STATEFUL_SET,
    config_map,
    deployment,
    service,
    stateful_set,
)
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio


async def test_status_in_a_create_is_ignored(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new() | {"status": {"phase": "Forged"}})

    assert "status" not in created


async def test_update_of_the_object_leaves_the_status_alone(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new())
    ready = await cluster.client.update({**created, "status": {"phase": "Ready"}}, subresource="status")

    updated = await cluster.client.update({**ready, "spec": {"size": 2}, "status": {"phase": "Forged"}})

    assert updated["status"] == {"phase": "Ready"}
    assert updated["spec"]["size"] == 2


async def test_update_of_the_status_leaves_the_object_alone(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new(size=1))
    changed = {**created, "spec": {"size": 2}, "status": {"phase": "Ready"}}
    changed["metadata"] = {**created["metadata"], "labels": {"forged": "yes"}}

    updated = await cluster.client.update(changed, subresource="status")

    assert updated["status"] == {"phase": "Ready"}
    assert updated["spec"]["size"] == 1
    assert "labels" not in updated["metadata"]


async def test_status_can_be_patched(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new(size=1))
    change = {"status": {"phase": "Ready"}, "spec": {"size": 2}}

    patched = await cluster.client.patch(
        widgets.gvk, ObjectKey.of(created), change, patch_type="merge", subresource="status"
    )

    assert patched["status"] == {"phase": "Ready"}
    assert patched["spec"]["size"] == 1


async def test_status_update_of_an_object_that_has_changed_conflicts(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new())
    await cluster.client.update({**created, "spec": {"size": 2}})

    with pytest.raises(ConflictError):
        await cluster.client.update({**created, "status": {"phase": "Ready"}}, subresource="status")


async def test_status_update_that_changes_nothing_is_not_stored(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new())
    ready = await cluster.client.update({**created, "status": {"phase": "Ready"}}, subresource="status")

    again = await cluster.client.update(ready, subresource="status")

    assert again["metadata"]["resourceVersion"] == ready["metadata"]["resourceVersion"]


async def test_a_kind_without_status_has_no_status_path(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace))

    path = (await cluster.client.mapping(CONFIG_MAP)).build_path(ObjectKey.of(created))
    answer = await cluster.new_transport().request(
        "PUT",
        f"{path}/status",
        headers={"content-type": "application/json", "accept": "application/json"},
        body=json.dumps(created).encode(),
        timeout_seconds=60,
    )

    assert answer.status == 404


async def test_generation_counts_changes_of_the_spec_alone(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new(size=1))
    labelled = await cluster.client.patch(
        widgets.gvk, ObjectKey.of(created), {"metadata": {"labels": {"a": "b"}}}, patch_type="merge"
    )
    ready = await cluster.client.update({**labelled, "status": {"phase": "Ready"}}, subresource="status")
    resized = await cluster.client.update({**ready, "spec": {"size": 2}})

    generations = [obj["metadata"]["generation"] for obj in (created, labelled, ready, resized)]
    assert generations == [1, 1, 1, 2]


async def test_generation_cannot_be_set(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new(metadata={"generation": 7}))

    assert created["metadata"]["generation"] == 1


async def test_kinds_without_a_spec_have_no_generation(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace))

    assert "generation" not in created["metadata"]


async def test_generation_of_a_built_in_kind_counts_changes_of_its_spec(cluster: Cluster) -> None:
    created = await cluster.client.create(stateful_set(cluster.namespace, replicas=0))
    key = ObjectKey.of(created)

    annotated = await cluster.client.patch(
        STATEFUL_SET, key, {"metadata": {"annotations": {"a": "b"}}}, patch_type="merge"
    )
    scaled = await cluster.client.patch(STATEFUL_SET, key, {"spec": {"replicas": 1}}, patch_type="merge")

    generations = [obj["metadata"]["generation"] for obj in (created, annotated, scaled)]
    assert generations == [1, 1, 2]


async def test_a_service_has_no_generation_although_it_has_a_spec(cluster: Cluster) -> None:
    created = await cluster.client.create(service(cluster.namespace))

    assert "generation" not in created["metadata"]


async def test_generation_of_a_deployment_counts_changes_of_its_annotations_too(cluster: Cluster) -> None:
    created = await cluster.client.create(deployment(cluster.namespace, paused=True, replicas=0))
    key = ObjectKey.of(created)

    labelled = await cluster.client.patch(DEPLOYMENT, key, {"metadata": {"labels": {"a": "b"}}}, patch_type="merge")
    annotated = await cluster.client.patch(
        DEPLOYMENT, key, {"metadata": {"annotations": {"a": "b"}}}, patch_type="merge"
    )

    generations = [obj["metadata"]["generation"] for obj in (created, labelled, annotated)]
    assert generations == [1, 1, 2]


async def test_generation_rises_when_a_deletion_has_to_wait(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new(metadata={"finalizers": ["konverge.test/hold"]}))

    answer = await cluster.client.delete(widgets.gvk, ObjectKey.of(created))

    assert answer is not None
    assert answer["metadata"]["generation"] == 2
    await cluster.client.patch(widgets.gvk, ObjectKey.of(created), {"metadata": {"finalizers": []}}, patch_type="merge")


async def test_resource_versions_rise_over_all_objects(cluster: Cluster) -> None:
    first = await cluster.client.create(config_map(cluster.namespace, "first"))
    second = await cluster.client.create(config_map(cluster.namespace, "second"))
    changed = await cluster.client.update({**first, "data": {"a": "1"}})
    listed = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace)

    versions = [int(obj["metadata"]["resourceVersion"]) for obj in (first, second, changed)]
    assert versions == sorted(set(versions))
    assert int(listed.resource_version) >= versions[-1]
